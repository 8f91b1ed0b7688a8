package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// Difference is one between the books and a bill.
type Difference struct {
	Day   string `json:"day"`
	Model string `json:"model,omitempty"` // empty: of all tools of the day
	Key   string `json:"key,omitempty"`   // the provider's id of a key that the gateway does not have
	Kind  Kind   `json:"kind"`
	What  string `json:"what"`  // the unit of both figures: requests, input tokens, output tokens, images and other units, nanodollars
	Books int64  `json:"books"` // how much the books have
	Bill  int64  `json:"bill"`  // how much the provider has
}

// Kind is why the books and a bill differ, as far as their numbers show it.
type Kind string

// The kinds of differences.
const (
	PastGateway Kind = "past the gateway" // calls that the gateway has not seen
	Unbilled    Kind = "not billed"       // calls that the provider has not billed, or not yet
	Estimated   Kind = "estimated tokens" // as many calls, with other tokens: those of broken streams are estimated
	Tool        Kind = "tool not counted" // searches and other tools
	Price       Kind = "changed price"    // the same tokens for other dollars
)

// at is a day and a model: lines of the books and of the bill that have both in common are compared.
type at struct{ day, model string }

// Compare returns the differences between the books and a bill, in the order of days and models. name returns the name by
// which models are compared: providers bill the release of a model that the books know by a shorter name.
func Compare(books []Line, bill Bill, name func(model string) string) (list []Difference) {
	own, others := bill.byKey()
	list = foreign(others, name)
	ours, theirs, not := sums(books, name), sums(own, name), sums(others, name)
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	tools := map[string]*toolSum{} // by day
	for key := range all {
		b, p := ours[key], theirs[key]
		d := tools[key.day]
		if d == nil {
			d = &toolSum{}
			tools[key.day] = d
		}
		for u := range d.ours {
			d.ours[u], d.theirs[u] = d.ours[u]+b.Units[u], d.theirs[u]+p.Units[u]
		}
		_, unclear := not[key]
		unclear = unclear && !bill.CostsByKey
		found := compareModel(b, p, bill)
		switch {
		case key.model == "" || len(found) == 0 && b.tools() > 0:
			d.books, d.bill, d.calls = d.books+b.Nanodollars, d.bill+p.Nanodollars, d.calls+b.Requests
			found = nil
		case b.tools() > 0:
			d.unclear = true
		case len(found) == 0 && !unclear && !near(b.Nanodollars, p.Nanodollars, b.Requests):
			found = []Difference{{Kind: Price, What: "nanodollars", Books: b.Nanodollars, Bill: p.Nanodollars}}
		}
		d.unclear = d.unclear || unclear
		for _, f := range found {
			f.Day, f.Model = key.day, key.model
			list = append(list, f)
		}
	}
	for day, d := range tools {
		for _, u := range bill.Tools {
			if d.ours[u] != d.theirs[u] {
				list, d.unclear = append(list, Difference{Day: day, Kind: Tool, What: unitNames[u], Books: d.ours[u], Bill: d.theirs[u]}), true
			}
		}
		if !d.unclear && !near(d.books, d.bill, d.calls) {
			list = append(list, Difference{Day: day, Kind: Tool, What: "nanodollars", Books: d.books, Bill: d.bill})
		}
	}
	slices.SortFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.What, b.What), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// byKey returns the lines of the keys that the gateway has, with those that are of no key, and all others.
func (b *Bill) byKey() (own, others []Line) {
	for _, l := range b.Lines {
		if l.Key == "" || len(b.Keys) == 0 || slices.Contains(b.Keys, l.Key) {
			own = append(own, l)
		} else {
			others = append(others, l)
		}
	}
	return own, others
}

// foreign returns a difference for each line of a key that the gateway does not have.
func foreign(lines []Line, name func(string) string) (list []Difference) {
	for _, l := range lines {
		d := Difference{Day: l.Day, Model: name(l.Model), Key: l.Key, Kind: PastGateway, What: "requests", Bill: l.Requests}
		if l.Requests == 0 {
			d.What, d.Bill = "tokens", l.Input+l.Output
		}
		if d.Bill > 0 { // its costs are on lines of their own
			list = append(list, d)
		}
	}
	return list
}

// Gap is how far the books are from a bill in dollars.
type Gap struct {
	Bill int64 // nanodollars, of all days
	Off  int64 // the differences of the days, without their signs
}

// GapOf returns how far the books are from a bill, by days: from that of the gateway's own keys, if the provider says what
// each key has cost.
func GapOf(books []Line, bill Bill) (g Gap) {
	off := map[string]int64{}
	for _, l := range books {
		off[l.Day] += l.Nanodollars
	}
	own, _ := bill.byKey()
	for _, l := range own {
		off[l.Day] -= l.Nanodollars
		g.Bill += l.Nanodollars
	}
	for _, n := range off {
		g.Off += max(n, -n)
	}
	return g
}

// toolSum is what the models that have used tools cost in a day, with the tools, which a bill has on lines of their own.
type toolSum struct {
	books, bill, calls int64
	unclear            bool // one of these models differs in something else
	ours, theirs       llm.Units
}

// compareModel returns the differences of one model in a day, but for that of its dollars.
func compareModel(b, p Line, bill Bill) (found []Difference) {
	add := func(kind Kind, what string, ours, theirs int64) {
		if ours != theirs {
			found = append(found, Difference{Kind: kind, What: what, Books: ours, Bill: theirs})
		}
	}
	switch more := p.Input > b.Input && p.Output > b.Output; {
	case bill.HasRequests && p.Requests > b.Requests:
		add(PastGateway, "requests", b.Requests, p.Requests)
	case bill.HasRequests && p.Requests < b.Requests:
		add(Unbilled, "requests", b.Requests, p.Requests)
	case !bill.HasRequests && more:
		add(PastGateway, "input tokens", b.Input, p.Input)
		add(PastGateway, "output tokens", b.Output, p.Output)
	case !bill.HasRequests && p.Input == 0 && p.Output == 0:
		add(Unbilled, "input tokens", b.Input, p.Input)
		add(Unbilled, "output tokens", b.Output, p.Output)
	case !p.NoTokens:
		add(Estimated, "input tokens", b.Input, p.Input)
		add(Estimated, "output tokens", b.Output, p.Output)
	}
	for _, u := range bill.Units {
		add(Tool, unitNames[u], b.Units[u], p.Units[u])
	}
	return found
}

// unitNames are the names of the units that bills count.
var unitNames = map[int]string{llm.Images: "images", llm.Characters: "characters", llm.AudioSeconds: "seconds of audio", llm.WebSearches: "searches", llm.FileSearches: "searches of files", llm.Containers: "containers"}

// sums adds up the lines of each day and model.
func sums(lines []Line, name func(string) string) map[at]Line {
	all := map[at]Line{}
	for _, l := range lines {
		if l.Model != "" {
			l.Model = name(l.Model)
		}
		key := at{l.Day, l.Model}
		s := all[key]
		s.Requests += l.Requests
		s.Input += l.Input
		s.Output += l.Output
		s.NoTokens = s.NoTokens || l.NoTokens
		for i, n := range l.Units {
			s.Units[i] += n
		}
		s.Nanodollars += l.Nanodollars
		all[key] = s
	}
	return all
}

// near reports whether two amounts of money are the same but for rounding: the books round each call up to a billionth of
// a dollar, and bills are sums of numbers with a point.
func near(books, bill, calls int64) bool {
	const slack = 1000
	return books-bill <= calls+slack && bill-books <= slack
}

// String says the difference in a sentence.
func (d Difference) String() string {
	switch {
	case d.Key != "":
		return fmt.Sprintf("the key %s has made %d %s", d.Key, d.Bill, d.What)
	case d.What == "nanodollars":
		return fmt.Sprintf("the gateway has %v, the bill %v", price.Amount(d.Books), price.Amount(d.Bill))
	}
	return fmt.Sprintf("the gateway has %d %s, the bill %d", d.Books, d.What, d.Bill)
}
