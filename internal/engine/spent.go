package engine

import "dappco.re/go/core/go-ratelimit/llm"

// spent is how much of each unit a call has used, or -1 for a part that is not known. Every scope keeps what was
// reserved for such a part.
type spent struct {
	Amounts
	most Amounts // in scopes that reserve the most of a call, if some do
	cut  Amounts // in scopes that cut
}

// of returns how much of a unit a call has used in a scope.
func (s *spent) of(r *Rules, u Unit) int64 {
	switch {
	case r.Cut[u]:
		return s.cut[u]
	case r.Most[u]:
		return s.most[u]
	}
	return s.Amounts[u]
}

// spent fills in what a call has used: tokens, and a price in billionths of a dollar.
func (r *Reservation) spent(t llm.Tokens, price int64, used *spent) {
	asked := &r.asked
	price = min(max(price, -1), MaxTokens)
	r.used(t, asked, &used.Amounts)
	used.Amounts[Dollars] = price
	used.most = used.Amounts
	most := asked
	if asked.Most != nil {
		most = asked.Most
		r.used(t, most, &used.most)
		used.most[Dollars] = price
	}
	if r.inexact {
		for _, u := range [...]Unit{Tokens, Input, Output, AllTokens} {
			used.most[u] = max(used.most[u], asked.Amounts[u], most.Amounts[u])
		}
	}
	if x := r.extensions; x == nil {
		used.cut = used.most
	} else {
		r.used(t, &x.total, &used.cut)
		used.cut[Dollars] = price
		for u := range units {
			if r.inexact && used.cut[u] >= 0 {
				used.cut[u] = max(used.cut[u], asked.Amounts[u], x.total.Amounts[u])
			}
		}
	}
}

// used fills in how much of each unit a call has used that has asked for so much.
func (r *Reservation) used(t llm.Tokens, asked *Ask, used *Amounts) {
	*used = asked.Amounts
	used[Slots], used[TokensInFlight] = 0, 0
	if t.Input >= 0 || t.Output >= 0 { // otherwise nobody has seen that the batch has ended
		used[EnqueuedTokens] = 0
	}
	if r.counted != nil {
		for i, u := range beside {
			used[u] = r.counted[i]
		}
	}
	if !r.asked.Split {
		used[Input], used[Output] = -1, -1
	}
	input, output := r.weights().Count(t)
	if input >= 0 {
		used[Input] = input
	}
	if output >= 0 {
		used[Output] = output
	}
	switch {
	case r.asked.Split || input >= 0 && output >= 0:
		used[Tokens] = used[Input] + used[Output]
		used[AllTokens] = orExpected(t.Input, asked.Amounts[Input]+asked.FreeInput) + orExpected(t.Output, asked.Amounts[Output]+asked.FreeOutput)
	case input >= 0:
		used[Tokens] = max(used[Tokens], used[Input])
		used[AllTokens] = max(used[AllTokens], bounded(t.Input))
	case output >= 0:
		used[Tokens] = max(used[Tokens], used[Output])
		used[AllTokens] = max(used[AllTokens], bounded(t.Output))
	}
}

// orExpected returns how many tokens were used, or how many were expected if that is not known.
func orExpected(used int, expected int64) int64 {
	if used < 0 {
		return expected
	}
	return bounded(used)
}

// firstUsed returns how much of a unit was used in a scope of what the call has reserved at first: no more than that, if
// extensions have reserved more.
func (r *Reservation) firstUsed(p *plan, u Unit, used *spent) int64 {
	n := used.of(p.rules, u)
	if p.rules.Cut[u] && r.extensions.more(u) {
		n = min(n, p.rules.Amount(u, &r.asked))
	}
	return n
}
