// Package price says what calls of LLMs cost, in whole nanodollars.
//
// A [Price] is that of one model. [Price.Cost] prices what a response reports, [Price.Most] what a
// call may use at most. A [Table] has the prices of many models; [Known] returns the one that is
// embedded. No float takes part in any of it.
package price

import (
	"fmt"
	"slices"
	"time"
)

// Terms are what calls of a model cost from a date on.
type Terms struct {
	// From is when these terms begin. Zero is always.
	From time.Time

	// Rates are the usual prices.
	Rates

	// Above are the prices of calls with long prompts, which hold for every token of such a call.
	Above []Above

	// Batch, Flex, Priority and Fast are the prices in these service tiers. Zero is the usual prices.
	// Anthropic calls the last a speed.
	Batch, Flex, Priority, Fast Service
}

// Above are the prices of calls whose prompts have more than so many tokens. A part that has no
// price here costs what it does below.
type Above struct {
	Tokens int `json:"tokens"`
	Rates
}

// Service is what calls cost in a service tier: a percentage of the usual prices, or prices of its
// own.
type Service struct {
	// Percent is the part of the usual prices, those above a prompt's size included. Zero is all of
	// them.
	Percent int

	// Rates and Above win over the usual ones. Without Above, the usual prices above a prompt's size
	// hold.
	Rates
	Above []Above
}

// MaxPercent is the highest Service.Percent.
const MaxPercent = 1000

// Price is what calls of one model cost. It is safe for concurrent use.
type Price struct {
	terms  []Terms
	sheets [][tiers][]Sheet // for each of the terms and service tiers, by the prompt's size, the smallest first
}

// A Sheet is the prices of one call: of its date, of its service tier, and of its prompt's size.
type Sheet struct {
	Rates            // every part has one
	From   time.Time // zero: the prices have always held
	Tier   string    // "batch", "flex", "priority" or "fast"; empty: the usual one, or the model has no prices for the tier
	Tokens int       // the prompt has more tokens than this

	amounts                     [parts]Amount // what a million tokens, or units, of each part cost
	priced                      bool          // some tokens, or requests, have a price or are free by name
	dearestInput, dearestOutput Amount
}

// The service tiers that have prices of their own.
const (
	usual = iota
	batch
	flex
	priority
	fast
	tiers
)

var tierNames = [tiers]string{"", "batch", "flex", "priority", "fast"}

// New returns a price that follows one of the terms after another, in the order of their dates.
// Before the first of the dates, the first terms hold.
func New(terms ...Terms) (*Price, error) {
	if len(terms) == 0 {
		return nil, fmt.Errorf("ratelimit: a price needs terms")
	}
	p := &Price{terms: slices.Clone(terms)}
	for i, t := range terms {
		if i > 0 && !t.From.After(terms[i-1].From) {
			return nil, fmt.Errorf("ratelimit: prices from %s come after prices from %s: dates must ascend", day(t.From), day(terms[i-1].From))
		}
		if err := t.check(); err != nil {
			return nil, err
		}
		p.sheets = append(p.sheets, t.sheets())
	}
	return p, nil
}

// Terms returns what the price was made of.
func (p *Price) Terms() []Terms { return slices.Clone(p.terms) }

// Holds reports whether any of the terms has begun.
func (p *Price) Holds(at time.Time) bool { return !p.terms[0].From.After(at) }

// Sheet returns the prices of a call with so many prompt tokens, in a service tier.
func (p *Price) Sheet(input int, tier string, at time.Time) Sheet { return *p.sheet(input, tier, at) }

// sheetsOf returns the prices of a service tier at a time, by the prompt's size.
func (p *Price) sheetsOf(tier string, at time.Time) []Sheet {
	i := len(p.terms) - 1
	for i > 0 && p.terms[i].From.After(at) {
		i--
	}
	return p.sheets[i][tierOf(tier)]
}

func (p *Price) sheet(input int, tier string, at time.Time) *Sheet {
	sheets := p.sheetsOf(tier, at)
	j := len(sheets) - 1
	for j > 0 && input <= sheets[j].Tokens {
		j--
	}
	return &sheets[j]
}

func tierOf(name string) int { return max(usual, slices.Index(tierNames[:], name)) }

// services returns the prices of the service tiers, by tier.
func (t *Terms) services() [tiers]Service {
	return [tiers]Service{usual: {}, batch: t.Batch, flex: t.Flex, priority: t.Priority, fast: t.Fast}
}

func (t *Terms) check() error {
	if err := t.Rates.check(); err != nil {
		return err
	}
	if err := checkAbove(t.Above); err != nil {
		return err
	}
	for i, s := range t.services() {
		if err := s.check(); err != nil {
			return fmt.Errorf("%w, in the tier %s", err, tierNames[i])
		}
	}
	return nil
}

func (s *Service) check() error {
	if s.Percent < 0 || s.Percent > MaxPercent {
		return fmt.Errorf("ratelimit: %d%% of the usual price: it must be from 1%% to %d%%", s.Percent, MaxPercent)
	}
	if s.Percent != 0 && (s.Rates != Rates{} || len(s.Above) > 0) {
		return fmt.Errorf("ratelimit: a percentage of the usual prices, and prices: it must be one of them")
	}
	if err := s.Rates.check(); err != nil {
		return err
	}
	return checkAbove(s.Above)
}

func checkAbove(all []Above) error {
	for i, a := range all {
		if a.Tokens <= 0 || i > 0 && a.Tokens <= all[i-1].Tokens {
			return fmt.Errorf("ratelimit: prices above %d tokens: the number must be more than 0 and ascend", a.Tokens)
		}
		if err := a.Rates.check(); err != nil {
			return err
		}
	}
	return nil
}

// sheets makes the prices of each service tier and each size of a prompt ready.
func (t *Terms) sheets() (all [tiers][]Sheet) {
	for i, s := range t.services() {
		percent, above := 100, s.Above
		if s.Percent != 0 {
			percent = s.Percent
		}
		if len(above) == 0 {
			above = t.Above
		}
		name := tierNames[i]
		if s.Percent == 0 && s.Rates == (Rates{}) && len(s.Above) == 0 {
			name = "" // it has no prices of its own
		}
		rates := s.Rates.over(t.Rates)
		all[i] = append(all[i], newSheet(rates.percent(percent), t.From, name, 0))
		for _, a := range above {
			rates = a.Rates.over(rates)
			all[i] = append(all[i], newSheet(rates.percent(percent), t.From, name, a.Tokens))
		}
	}
	return all
}

func newSheet(rates Rates, from time.Time, tier string, tokens int) Sheet {
	s := Sheet{Rates: rates.resolved(), From: from, Tier: tier, Tokens: tokens, priced: rates.Request > 0}
	given := rates.fields()
	for i, rate := range s.Rates.fields() {
		s.amounts[i] = part(i).million(*rate)
		switch {
		case part(i) >= firstUnit:
			continue
		case part(i) >= output:
			s.dearestOutput = max(s.dearestOutput, s.amounts[i])
		case part(i) != cachedInput && part(i) != cachedAudio:
			s.dearestInput = max(s.dearestInput, s.amounts[i])
		}
		s.priced = s.priced || *given[i] != 0
	}
	return s
}

// day writes the date on which terms begin.
func day(t time.Time) string {
	if t.IsZero() {
		return "the beginning"
	}
	return t.UTC().Format(time.DateOnly)
}
