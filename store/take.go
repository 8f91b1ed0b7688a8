package store

import "dappco.re/go/core/go-ratelimit/limit"

// Take is the step that a take consists of in every store whose counters are
// accounts: it asks all limits, and charges all of them or none. accounts are
// those of the charges' keys, in their order. The receipts are nil if it was
// denied, and one for each charge otherwise.
func Take(accounts []*limit.Account, charges []Charge, now int64) ([]limit.Receipt, []limit.Decision) {
	decisions := ask(accounts, charges, now)
	if !Allowed(decisions) {
		return nil, untaken(decisions, accounts, charges, now)
	}
	receipts := make([]limit.Receipt, len(charges))
	for i, c := range charges {
		receipts[i] = accounts[i].Take(c.Limits, now, c.N)
	}
	return receipts, decisions
}

// Peek is Take that charges nothing.
func Peek(accounts []*limit.Account, charges []Charge, now int64) []limit.Decision {
	forks := make([]*limit.Account, len(accounts))
	for i, a := range accounts {
		forks[i] = a.Fork(now)
	}
	return untaken(ask(forks, charges, now), forks, charges, now)
}

// ask returns what each limit says to its charge.
func ask(accounts []*limit.Account, charges []Charge, now int64) []limit.Decision {
	decisions := make([]limit.Decision, 0, 2*len(charges))
	for i, c := range charges {
		accounts[i].Fit(c.Limits, now)
		for _, l := range c.Limits {
			decisions = append(decisions, accounts[i].Check(l, now, c.N))
		}
	}
	return decisions
}

// untaken lets the limits that allow say what remains where nothing is taken.
func untaken(decisions []limit.Decision, accounts []*limit.Account, charges []Charge, now int64) []limit.Decision {
	at := 0
	for i, c := range charges {
		for _, l := range c.Limits {
			if decisions[at].Allowed {
				decisions[at] = accounts[i].Check(l, now, 0)
			}
			at++
		}
	}
	return decisions
}

// Settle corrects what Take has charged, by its receipts. A negative amount
// leaves what was taken.
func Settle(accounts []*limit.Account, charges []Charge, receipts []limit.Receipt, actual []int64, now int64) {
	for i, c := range charges {
		if actual[i] >= 0 {
			accounts[i].Settle(c.Limits, receipts[i], now, actual[i])
		}
	}
}
