package call

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Batch is many calls of models that the provider makes when it likes. They are charged as a whole to
// the project when the batch is submitted, and settled by its results. Of the quota of its model, only max_enqueued_tokens
// holds: providers have other limits for batches. A single call that the provider makes in the background is a batch of one
// call, which is charged like any other call before: see [Call.Background].
type Batch struct {
	Limits   *Limits
	Prices   *Prices
	Provider string // in the table of prices
	Owner    *books.Owner

	single      *single   // nil: it is a batch
	at          time.Time // by which everything is priced
	prices      map[string]*price.Price
	expected    Total
	most        llm.Tokens // that its calls can use
	unknown     bool       // nobody knows that of some call
	unbounded   bool       // a call of it does not say how long its answer may be
	told        batchTold
	reservation *project.Reservation // nil if the batch was deposited by another process, or
	deposit     *engine.Deposit
	owners      engine.Owners // to whom the batch is charged
	settled     sync.Once
}

// batchTold is what the results of a batch report of what its calls use beside tokens.
type batchTold struct {
	Not  bool `json:"not,omitempty"`  // some of it is not reported, so that all stays as it was reserved
	Once bool `json:"once,omitempty"` // each call is billed for one search of the web, however often it searches

	// InBodies says that all tools are in the bodies of the calls, so that all containers together are no more than was
	// reserved. Containers is the most of them that one call has, and Draws the model that draws for stored prompts.
	InBodies   bool   `json:"in_bodies,omitempty"`
	Containers int64  `json:"containers,omitempty"`
	Draws      string `json:"draws,omitempty"`

	Variant string `json:"variant,omitempty"` // that all calls have: see [dialect.Request]
}

// Total is what calls use together.
type Total struct {
	Calls   int
	Used    llm.Usage
	Units   llm.Units `json:"units,omitzero"` // beside tokens
	Dollars int64     // nanodollars; [price.Unknown], if the price of any call is
	Exact   bool      // the provider has reported all of it
}

// maxTotal is the most tokens that a batch asks for.
const maxTotal = 1 << 50

// batchTier is the service tier of all calls of a batch.
const batchTier = "batch"

const (
	maxModels    = 100 // how many models the calls of one batch may name
	maxModelName = 256 // the most bytes of each name: the store keeps them as long as the batch is open
)

// Expect adds a number of equal calls to the batch. projectID is the project by which the estimator learns. Tokens are
// reserved as they are expected, but dollars as many as the calls can cost: nobody sees what a batch uses before it is too
// late.
func (b *Batch) Expect(projectID string, r *dialect.Request, calls int) error {
	if n := len(r.Model); n > maxModelName {
		return fmt.Errorf("ratelimit: a model's name of %d bytes: it may have %d", n, maxModelName)
	}
	if b.prices == nil {
		b.at, b.prices = time.Now(), map[string]*price.Price{}
	}
	p, known := b.prices[r.Model]
	if !known {
		if len(b.prices) == maxModels {
			return fmt.Errorf("ratelimit: the batch calls more than %d models", maxModels)
		}
		p = b.Prices.of(b.Provider, r.Model, b.at)
		b.prices[r.Model] = p
	}
	var t llm.Tokens
	if r.API == "" { // nothing says what the call uses, so the model's price says nothing
		p = b.Prices.unpriced()
	} else {
		t = b.Limits.Estimator.Estimate(projectID, r)
	}
	most := t
	if input, output, ok := r.Most(b.Prices.maxima(b.Provider, r.Model)); ok && !r.Fallbacks {
		most.Input, most.Output = max(t.Input, input), max(t.Output, output)
	} else {
		b.unknown = b.unknown || r.API != ""
	}
	dollars := price.Unknown
	if p != nil {
		dollars = p.Most(most.Input, most.Output, batchTier, b.at)
		units := b.Prices.units(b.Provider, p, r.Units, b.at)
		drawn := price.Amount(0)
		if r.ImageModel != "" {
			c := Call{Prices: b.Prices, Provider: b.Provider, Request: *r}
			c.quoteAt(b.at)
			drawn = c.mostDrawn(r.Units[llm.Images])
		}
		if dollars += max(units, 0) + max(drawn, 0); units == price.Unknown || drawn == price.Unknown {
			dollars = price.Unknown
		}
	}
	if b.expected.Calls == 0 {
		b.told.Variant = r.Variant
	} else if r.Variant != b.told.Variant {
		b.told.Variant = "" // the model's own price is that of the dearest variant
	}
	b.told.Not, b.told.Once = b.told.Not || !r.TellsUnits(), b.told.Once || r.SearchesOnce
	b.told.InBodies = (b.told.InBodies || b.expected.Calls == 0) && !r.StoredTools
	b.told.Containers = max(b.told.Containers, r.Units[llm.Containers])
	if r.StoredTools {
		b.told.Draws = r.ImageModel
	}
	for i, n := range r.Units {
		b.expected.Units[i] = min(b.expected.Units[i]+int64(times(int(max(n, 0)), calls)), maxTotal)
	}
	if dollars != price.Unknown {
		dollars = price.Amount(times(int(dollars), calls))
	}
	b.expected.add(llm.Usage{Input: times(t.Input, calls), Output: times(t.Output, calls)}, dollars)
	b.expected.Calls += calls - 1
	b.most.Input, b.most.Output = min(b.most.Input+times(most.Input, calls), maxTotal), min(b.most.Output+times(most.Output, calls), maxTotal)
	b.unbounded = b.unbounded || r.API.Generates() && r.MaxOutput == 0
	return nil
}

// times returns n times calls, and at most maxReserved, which is the most that a batch may ask for. n is not negative.
func times(n, calls int) int {
	if n > int(maxReserved)/max(calls, 1) {
		return int(maxReserved)
	}
	return n * calls
}

// ExpectPriced adds a request that is no call of a model and costs so much.
func (b *Batch) ExpectPriced(dollars price.Amount) { b.expected.add(llm.Usage{}, dollars) }

// add adds a call.
func (t *Total) add(u llm.Usage, dollars price.Amount) {
	t.Calls++
	for _, sum := range []struct {
		to   *int
		more int
	}{{&t.Used.Input, u.Input}, {&t.Used.Output, u.Output}, {&t.Used.Cached, u.Cached}, {&t.Used.CacheWrite, u.CacheWrite}, {&t.Used.Reasoning, u.Reasoning}} {
		*sum.to = min(*sum.to+min(max(sum.more, 0), maxTotal), maxTotal)
	}
	if dollars == price.Unknown || t.Dollars == int64(price.Unknown) {
		t.Dollars = int64(price.Unknown)
	} else {
		t.Dollars = min(t.Dollars+int64(min(dollars, maxReserved)), int64(maxReserved))
	}
}

// Calls returns how many calls the batch has.
func (b *Batch) Calls() int { return b.expected.Calls }

// Models returns the names of the models of the batch.
func (b *Batch) Models() []string { return slices.Sorted(maps.Keys(b.prices)) }

// Acquire reserves what the batch is expected to use. c says whose batch it is and how long it may
// wait.
func (b *Batch) Acquire(ctx context.Context, c project.Call) (ratelimit.Decision, error) {
	c.Batch, c.Dollars = true, price.Amount(b.expected.Dollars)
	b.owners = engine.OwnersOf(&c)
	c.Units = b.expected.Units
	c.Tokens, c.Most = llm.Tokens{Input: b.expected.Used.Input, Output: b.expected.Used.Output}, b.most
	if b.unknown {
		c.Most, c.MostDollars = llm.Tokens{Input: -1}, price.Unknown
	}
	var d project.Decision
	var err error
	if c.MaxWait > 0 {
		b.reservation, d, err = b.Limits.Projects.Acquire(ctx, c)
	} else {
		b.reservation, d, err = b.Limits.Projects.Take(ctx, c)
	}
	return ratelimit.Decision{Decision: d}, err
}

// Deny makes a call what its Refusal needs to know of the batch.
func (b *Batch) Deny(c *Call) {
	c.batch, c.unbounded, c.reserved = true, b.unbounded, price.Amount(b.expected.Dollars)
	c.Tokens = llm.Tokens{Input: b.expected.Used.Input, Output: b.expected.Used.Output}
	for model, p := range b.prices {
		if p == nil {
			c.Request.Model = model // that has no price
		}
	}
}

// Failed settles a batch of which nothing but the status of the provider's answer is known; 0 is none.
// As with a single call, only an error that is the client's costs nothing.
func (b *Batch) Failed(status int) {
	if status >= 400 && status < 500 {
		b.settle(&Total{Calls: 1, Exact: true})
		return
	}
	b.settle(&b.expected) // it stays charged, but is not enqueued
}

// Cancel gives back what was reserved, for a batch that was not sent.
func (b *Batch) Cancel() { b.reservation.Cancel() }

// Unknown leaves the batch charged what was reserved, and enqueued: nobody will report what it has used, or that it has
// ended.
func (b *Batch) Unknown() {
	b.settled.Do(func() { b.commit(&b.expected, llm.Tokens{Input: -1, Output: -1}) })
}

// Results is what the results of a batch say.
type Results struct {
	batch *Batch
	Total
}

// Reads reports whether the results of the batch can settle it: its calls were read, or all of them are free.
func (b *Batch) Reads() bool { return b.prices != nil || b.expected.Dollars == 0 }

// Results returns room for the results of the batch.
func (b *Batch) Results() *Results { return &Results{b, Total{Exact: true}} }

// Add adds what one call has used, according to an answer that names its model.
func (r *Results) Add(model string, used llm.Usage) {
	used.Tier = batchTier
	r.Exact = r.Exact && used.Exact && used.Input >= 0
	if r.batch.told.Once {
		used.Units[llm.WebSearches] = min(used.Units[llm.WebSearches], 1)
	}
	used.Units[llm.Containers] = r.containers(used.Units[llm.Containers])
	for i, n := range used.Units {
		r.Exact = r.Exact && n >= 0
		used.Units[i] = max(n, 0)
		r.Units[i] = min(r.Units[i]+used.Units[i], maxTotal)
	}
	r.add(used, r.batch.cost(model, used))
}

// containers returns what a call is charged for that has run code so often. Nobody knows which of the calls it is, so that
// it is charged for the most containers of one call, as long as all calls together have no more than they asked for.
func (r *Results) containers(runs int64) int64 {
	if runs <= 0 {
		return runs
	}
	most := max(r.batch.told.Containers, 1)
	if r.batch.told.InBodies {
		most = min(most, r.batch.expected.Units[llm.Containers]-r.Units[llm.Containers])
	}
	return most
}

// AddFree adds a call that costs nothing.
func (r *Results) AddFree() { r.Calls++ }

// cost returns what a call has cost. A response may name a release of the model that the request has
// named, by which it is priced: see [Call.quote].
func (b *Batch) cost(model string, used llm.Usage) price.Amount {
	p, known := b.prices[model]
	if len(b.prices) == 1 {
		for model, p = range b.prices {
			known = true
		}
		if b.told.Variant != "" {
			p = b.Prices.ofVariant(b.Provider, model, b.told.Variant, b.at)
		}
	}
	if !known {
		p = b.Prices.of(b.Provider, model, b.at)
	}
	if p == nil {
		return price.Unknown
	}
	used.CostTold = used.CostTold && dialect.TellsCost(llm.Provider(b.Provider))
	if used.CostTold {
		return p.Total(used, b.at)
	}
	beside, drawn := b.Prices.beside(b.Provider, p, &used, b.at), b.drawn(used)
	if beside == price.Unknown || drawn == price.Unknown {
		return price.Unknown
	}
	return beside + drawn + p.Total(used, b.at)
}

// drawn returns what the images have cost that the tool of a stored prompt has generated. Those of tools in the bodies stay
// as they were reserved.
func (b *Batch) drawn(used llm.Usage) price.Amount {
	if b.told.Draws == "" {
		return 0
	}
	c := Call{Prices: b.Prices, Provider: b.Provider, Request: dialect.Request{ImageModel: b.told.Draws}}
	c.quoteAt(b.at)
	return c.drawnPrice(used)
}

// Unread says that something in the results could not be read.
func (r *Results) Unread() { r.Exact = false }

// Settle corrects what was reserved to what the results say. Only results that could all be read lower
// it. Only the first call for a batch counts, whoever fetches the results.
func (r *Results) Settle() {
	expected := &r.batch.expected
	r.Exact = r.Exact && !r.batch.told.Not
	if !r.Exact {
		for i, n := range expected.Units {
			r.Units[i] = max(r.Units[i], n)
		}
		r.Used.Input, r.Used.Output = max(r.Used.Input, expected.Used.Input), max(r.Used.Output, expected.Used.Output)
		r.Calls = max(r.Calls, expected.Calls)
		if r.Dollars != int64(price.Unknown) && expected.Dollars != int64(price.Unknown) {
			r.Dollars = max(r.Dollars, expected.Dollars)
		}
	}
	r.batch.settle(&r.Total)
}

// settle settles the batch once, and has it entered in the books.
func (b *Batch) settle(t *Total) {
	b.settled.Do(func() { b.commit(t, llm.Tokens{Input: t.Used.Input, Output: t.Used.Output}) })
}

func (b *Batch) commit(t *Total, tokens llm.Tokens) {
	entry := b.entry(t)
	if b.deposit != nil {
		own, n, _ := hidden.Of[engine.Projects](b.Limits.Projects).Scopes(b.owners) // the limits themselves are corrected without them
		b.deposit.Count(t.Units)
		b.deposit.CommitPriced(tokens, t.Dollars, t.Exact, entry, own[:n])
		return
	}
	if b.reservation != nil {
		r := (*engine.Reservation)(b.reservation)
		r.Count(t.Units)
		if entry != nil {
			r.Book(*entry)
		}
		if !t.Exact {
			r.Inexact()
		}
	}
	b.reservation.CommitPriced(tokens, price.Amount(t.Dollars))
}

// entry returns what the books have of the batch, or nil if they have nothing.
func (b *Batch) entry(t *Total) *books.Entry {
	if b.Owner == nil {
		return nil
	}
	return &books.Entry{Owner: *b.Owner, Amounts: books.Amounts{
		books.Requests:   int64(t.Calls),
		books.Input:      int64(t.Used.Input),
		books.Cached:     int64(t.Used.Cached),
		books.CacheWrite: int64(t.Used.CacheWrite),
		books.Output:     int64(t.Used.Output),
		books.Reasoning:  int64(t.Used.Reasoning),
	}}
}
