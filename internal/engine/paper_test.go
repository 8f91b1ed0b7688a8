package engine_test

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// paperScope is a scope as it is counted on paper: a list of all charges, and sums over it.
type paperScope struct {
	rules   *engine.Rules
	charges []*paperCharge
}

// paperCharge is what one call has used of each unit of a scope.
type paperCharge struct {
	at        int64
	used      engine.Amounts
	forgotten bool // by a reset
}

// paperAnswer is what one limit says to a call.
type paperAnswer struct {
	allowed bool
	used    int64
	retry   time.Duration
}

// counts reports whether a charge counts in the window of a limit at a time.
func (c *paperCharge) counts(l limit.Limit, now int64) bool {
	period := int64(l.Period())
	if l.Algorithm() == limit.FixedWindow {
		return c.at/period == now/period
	}
	return now-c.at < period
}

// leaves returns when a charge leaves the window of a limit.
func (c *paperCharge) leaves(l limit.Limit) int64 {
	period := int64(l.Period())
	if l.Algorithm() == limit.FixedWindow {
		return (c.at/period + 1) * period
	}
	return c.at + period
}

// used returns how much of a limit is used at a time.
func (s *paperScope) used(l *engine.Limit, now int64) (sum int64) {
	for _, c := range s.charges {
		if !c.forgotten && c.counts(l.Limit, now) {
			sum += c.used[l.Unit]
		}
	}
	return sum
}

// ask returns what a limit answers at a time to a call that asks for n.
func (s *paperScope) ask(l *engine.Limit, now, n int64) paperAnswer {
	a := paperAnswer{used: s.used(l, now)}
	most := l.Limit.Count()
	switch {
	case n > most:
		a.retry = limit.Never
		return a
	case a.used+n <= most:
		a.allowed = true
		return a
	}
	first := int64(limit.Never)
	for _, c := range s.charges {
		at := c.leaves(l.Limit)
		if at > now && at < first && s.used(l, at)+n <= most {
			first = at
		}
	}
	a.retry = time.Duration(first - now)
	return a
}

// inPart reports whether a call of a part is charged for a unit.
func inPart(part engine.Part, u engine.Unit) bool {
	switch part {
	case engine.RequestsOnly:
		return u == engine.Requests
	case engine.WithoutSlots:
		return u != engine.Slots
	}
	return true
}

// amount returns how much of a unit a call is charged in the scope: of an estimate whose
// parts are not known, each part may be all, but no more than its smallest limit.
func (s *paperScope) amount(u engine.Unit, ask *engine.Ask) int64 {
	n := ask.Amounts[u]
	if (u == engine.Input || u == engine.Output) && !ask.Split {
		n = 0
		for _, l := range s.rules.Limits {
			if l.Unit == u && !l.Free && (n == 0 || l.Limit.Count() < n) {
				n = l.Limit.Count()
			}
		}
		n = min(n, ask.Amounts[engine.Tokens])
	}
	if u == engine.AllTokens {
		n = max(n, s.rules.LeastTokens)
	}
	return n
}

// charged returns how much of each unit a call is charged in the scope.
func (s *paperScope) charged(part engine.Part, ask *engine.Ask) (all engine.Amounts) {
	for _, l := range s.rules.Limits {
		if inPart(part, l.Unit) {
			all[l.Unit] = s.amount(l.Unit, ask)
		}
	}
	return all
}

// settled returns what a call has used of each unit, of which it was charged so much. Of
// tokens that are not known, what was charged stands; of a sum of which one part is known,
// at least that part was used.
func settled(charged engine.Amounts, ask *engine.Ask, t llm.Tokens) engine.Amounts {
	used := charged
	used[engine.Slots] = 0
	known := func(part, free int) (int64, bool) { return int64(part - free), part >= 0 }
	input, hasInput := known(t.Input, t.FreeInput)
	output, hasOutput := known(t.Output, t.FreeOutput)
	freeInput, freeOutput := int64(t.FreeInput), int64(t.FreeOutput)
	if hasInput {
		used[engine.Input] = input
	}
	if hasOutput {
		used[engine.Output] = output
	}
	tokens, all := ask.Amounts[engine.Tokens], ask.Amounts[engine.AllTokens]
	switch {
	case hasInput && hasOutput, ask.Split:
		if !hasInput {
			input, freeInput = ask.Amounts[engine.Input], ask.FreeInput
		}
		if !hasOutput {
			output, freeOutput = ask.Amounts[engine.Output], ask.FreeOutput
		}
		tokens = input + output
		all = tokens + freeInput + freeOutput
	case hasInput:
		tokens, all = max(tokens, input), max(all, int64(t.Input))
	case hasOutput:
		tokens, all = max(tokens, output), max(all, int64(t.Output))
	}
	used[engine.Tokens], used[engine.AllTokens] = tokens, all
	return used
}
