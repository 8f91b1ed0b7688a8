// Package accounts has the operations that stores have in common whose counters are
// accounts of package limit: take, peek and settle over several accounts.
package accounts

import "dappco.re/go/core/go-ratelimit/limit"

// Charge is an amount N that is charged to an account under each limit.
type Charge struct {
	*limit.Account
	Limits []limit.Limit
	N      int64
}

// Take asks the limits of all charges, and charges all of them, or none if a limit
// denies. It returns the decisions of all limits, in order, and a receipt for each
// charge, or no receipts if a limit denies.
func Take(charges []Charge, now int64) ([]limit.Receipt, []limit.Decision) {
	decisions, allowed := ask(charges, now)
	if !allowed {
		withoutTake(charges, now, decisions)
		return nil, decisions
	}
	receipts := make([]limit.Receipt, len(charges))
	for i, c := range charges {
		receipts[i] = c.Take(c.Limits, now, c.N)
	}
	return receipts, decisions
}

// Peek returns the decisions of Take, and leaves the accounts as they are. The decision of
// a limit that allows its charge says what remains without the charge.
func Peek(charges []Charge, now int64) []limit.Decision {
	forks := make([]Charge, len(charges))
	for i, c := range charges {
		forks[i] = Charge{c.Fork(), c.Limits, c.N}
	}
	decisions, _ := ask(forks, now)
	withoutTake(forks, now, decisions)
	return decisions
}

// ask returns the decision of each limit on its charge, and whether all of them allow.
func ask(charges []Charge, now int64) (decisions []limit.Decision, allowed bool) {
	limits := 0
	for _, c := range charges {
		limits += len(c.Limits)
	}
	decisions, allowed = make([]limit.Decision, 0, limits), true
	for _, c := range charges {
		c.Fit(c.Limits, now)
		for _, l := range c.Limits {
			d := c.Check(l, now, c.N)
			decisions, allowed = append(decisions, d), allowed && d.Allowed
		}
	}
	return decisions, allowed
}

// withoutTake replaces the decisions of limits that allow their charge, so that they say
// what remains without the charge.
func withoutTake(charges []Charge, now int64, decisions []limit.Decision) {
	for _, c := range charges {
		for i, l := range c.Limits {
			if decisions[i].Allowed {
				decisions[i] = c.Check(l, now, 0)
			}
		}
		decisions = decisions[len(c.Limits):]
	}
}

// Settle corrects what Take has charged, by its receipts. A negative amount leaves what
// was taken.
func Settle(charges []Charge, receipts []limit.Receipt, actual []int64, now int64) {
	for i, c := range charges {
		if actual[i] >= 0 {
			c.Account.Settle(c.Limits, receipts[i], now, actual[i])
		}
	}
}
