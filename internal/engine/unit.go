package engine

import (
	"cmp"
	"errors"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// Unit is what a limit counts: a row of [kind.Unit]'s table. The engine distinguishes these.
type Unit = kind.Unit

const (
	Requests  = kind.Requests
	Tokens    = kind.Tokens
	Input     = kind.Input
	Output    = kind.Output
	Slots     = kind.Slots
	AllTokens = kind.AllTokens
	Dollars   = kind.Dollars
	units     = kind.Units

	TokensInFlight = kind.TokensInFlight
	EnqueuedTokens = kind.EnqueuedTokens
)

// beside has the units of [llm.Units].
var beside = func() (list [llm.UnitCount]Unit) {
	for i, u := range [llm.UnitCount]kind.BesideUnit(kind.Beside) {
		list[i] = u.Unit
	}
	return list
}()

// Amounts is an amount of each unit.
type Amounts [units]int64

// MaxTokens is the most that a call may ask for, of tokens and of requests.
const MaxTokens = 1 << 53

// Ask is what a call is expected to use of each unit, and the most that it can use.
type Ask struct {
	Amounts `json:"amounts"` // by the numbers of their units

	// FreeInput and FreeOutput are the parts of AllTokens that the provider does not count. They
	// are negative where it counts more than all.
	FreeInput  int64 `json:"free_input"`
	FreeOutput int64 `json:"free_output"`

	// Split is set if input and output are known. Otherwise their sum is, in Tokens, and
	// each of them may be all of it.
	Split bool `json:"split"`

	// Most is the most that the call can use of tokens and of dollars, for scopes that reserve it. It is nil if
	// it is not known to be more than what is expected. Copies of an Ask share it, and nobody changes it.
	Most *Ask `json:"most,omitempty"`

	// First is what a call that extends its reservation reserves at first, for scopes that cut. It is nil if the
	// call does not: then they reserve Most.
	First *Ask `json:"first,omitempty"`
}

// set fills in an empty ask with what a call asks for. Its tokens are either estimated as a sum or, if Tokens are not
// zero, known by their parts.
func (a *Ask) set(c *Call) error {
	if err := checkCount(c.Requests, "requests", "0, which is one,"); err != nil {
		return err
	}
	a.Amounts[Requests], a.Amounts[Slots] = max(int64(c.Requests), 1), 1
	if c.Dollars != price.Unknown {
		if err := checkPrice(c.Dollars); err != nil {
			return err
		}
		a.Amounts[Dollars] = int64(c.Dollars)
	}
	if err := cmp.Or(a.setUnits(c), a.setTokens(c)); err != nil {
		return err
	}
	if c.Batch {
		a.Amounts[EnqueuedTokens] = a.Amounts[Input] + a.FreeInput
		if !a.Split {
			a.Amounts[EnqueuedTokens] = a.Amounts[AllTokens]
		}
	}
	return cmp.Or(a.setMost(c), a.setFirst(c))
}

// setUnits fills in what the call uses beside tokens. What nobody knows is nothing here: see checkKnown.
func (a *Ask) setUnits(c *Call) error {
	if c.Units == (llm.Units{}) { // as nearly always
		return nil
	}
	for i, n := range c.Units {
		if n > MaxTokens {
			return fmt.Errorf("ratelimit: %d %s: it must be from 0 to %d, or negative if nobody knows", n, beside[i].Words(), int64(MaxTokens))
		}
		a.Amounts[beside[i]] = max(n, 0)
	}
	return nil
}

func (a *Ask) setTokens(c *Call) error {
	switch {
	case c.Tokens == (llm.Tokens{}):
		n := int64(c.Estimated)
		a.Amounts[Tokens], a.Amounts[AllTokens], a.Amounts[TokensInFlight] = n, n, n
		return checkCount(c.Estimated, "tokens", "0")
	case c.Estimated != 0:
		return errors.New("ratelimit: Estimated and Tokens are both set: where the parts are known, Estimated must be 0")
	}
	a.Split = true
	return a.split(c.Tokens)
}

// setMost fills in the most that the call can use. What is less than is expected counts as that.
func (a *Ask) setMost(c *Call) error {
	most := c.mostTokens()
	switch {
	case c.Most == (llm.Tokens{}) && c.MostDollars <= 0, unbounded(c.Most) && c.MostDollars <= 0:
		return nil
	case c.Most != (llm.Tokens{}) && !unbounded(c.Most) && !a.Split:
		return errors.New("ratelimit: Most is set, and Tokens is not: the most of a call needs its expected tokens by their parts")
	}
	a.Most = &Ask{Amounts: a.Amounts, Split: a.Split}
	if a.Split {
		if err := a.Most.split(most); err != nil {
			return err
		}
	}
	if c.MostDollars > MaxTokens {
		return checkPrice(c.MostDollars)
	}
	a.Most.Amounts[Dollars] = max(int64(c.MostDollars), a.Amounts[Dollars])
	return nil
}

// mostTokens returns the most tokens that the call can use, and at least those that are expected.
func (c *Call) mostTokens() llm.Tokens {
	most := c.Most
	if unbounded(most) {
		most = llm.Tokens{}
	}
	most.Input, most.Output = max(most.Input, c.Tokens.Input), max(most.Output, c.Tokens.Output)
	most.FreeInput, most.FreeOutput = min(most.FreeInput, c.Tokens.FreeInput), min(most.FreeOutput, c.Tokens.FreeOutput)
	return most
}

// unbounded reports whether nobody knows the most tokens that a call can use.
func unbounded(most llm.Tokens) bool { return most.Input < 0 || most.Output < 0 }

// setFirst fills in what a call that extends its reservation reserves at first.
func (a *Ask) setFirst(c *Call) error {
	switch {
	case c.First == (llm.Tokens{}):
		return nil
	case !a.Split:
		return errors.New("ratelimit: First is set, and Tokens is not: what a call reserves at first needs its expected tokens by their parts")
	}
	a.First = &Ask{Amounts: a.Amounts, Split: true}
	a.First.Amounts[Dollars] = int64(c.FirstDollars)
	return cmp.Or(checkPrice(c.FirstDollars), a.First.split(c.First))
}

// checkPrice returns what is wrong with a price in billionths of a dollar, or nil.
func checkPrice(n price.Amount) error {
	if n < 0 || n > MaxTokens {
		return fmt.Errorf("ratelimit: a price of %d billionths of a dollar: it must be from 0 to %d", n, int64(MaxTokens))
	}
	return nil
}

// split fills in tokens whose parts are known.
func (a *Ask) split(t llm.Tokens) error {
	a.FreeInput, a.FreeOutput = int64(t.FreeInput), int64(t.FreeOutput)
	a.Amounts[Input], a.Amounts[Output] = int64(t.Input)-a.FreeInput, int64(t.Output)-a.FreeOutput
	a.Amounts[Tokens] = a.Amounts[Input] + a.Amounts[Output]
	a.Amounts[AllTokens] = a.Amounts[Tokens] + a.FreeInput + a.FreeOutput
	a.Amounts[TokensInFlight] = a.Amounts[AllTokens]
	return cmp.Or(checkCount(t.Input, "tokens", "0"), checkCount(t.Output, "tokens", "0"),
		checkFree(t.FreeInput, t.Input), checkFree(t.FreeOutput, t.Output),
		checkPart(t.Cached, t.Input-t.FreeInput), checkPart(t.CacheWrite, t.Input-t.FreeInput-t.Cached), checkPart(t.Reasoning, t.Output-t.FreeOutput))
}

// weigh counts the tokens of an ask by the weights of a model's quota. A sum counts as the kind of tokens with the
// largest weight.
func (a *Ask) weigh(w llm.TokenWeights, c *Call) {
	switch {
	case w.IsZero():
	case a.Split:
		a.weighParts(w, c.Tokens)
		if a.Most != nil {
			a.Most.weighParts(w, c.mostTokens())
		}
		if a.First != nil {
			a.First.weighParts(w, c.First)
		}
	default:
		a.Amounts[Tokens] = w.Most(int(a.Amounts[AllTokens]))
		a.FreeInput = a.Amounts[AllTokens] - a.Amounts[Tokens]
	}
}

// weighParts counts tokens whose parts are known by weights.
func (a *Ask) weighParts(w llm.TokenWeights, t llm.Tokens) {
	a.Amounts[Input], a.Amounts[Output] = w.Count(t)
	a.Amounts[Tokens] = a.Amounts[Input] + a.Amounts[Output]
	a.FreeInput, a.FreeOutput = int64(t.Input)-a.Amounts[Input], int64(t.Output)-a.Amounts[Output]
}

func checkCount(n int, of, least string) error {
	if n < 0 || int64(n) > MaxTokens {
		return fmt.Errorf("ratelimit: %d %s: it must be from %s to %d", n, of, least, int64(MaxTokens))
	}
	return nil
}

func checkFree(free, all int) error {
	if free < 0 || free > all {
		return fmt.Errorf("ratelimit: %d tokens that do not count, of %d: it must be from 0 to all", free, all)
	}
	return nil
}

func checkPart(part, all int) error {
	if part < 0 || part > all {
		return fmt.Errorf("ratelimit: a part of %d tokens, of %d that count: it must be from 0 to all", part, max(all, 0))
	}
	return nil
}

// bounded returns a number of tokens as one that can be counted.
func bounded(n int) int64 { return min(max(int64(n), 0), MaxTokens) }
