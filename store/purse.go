package store

import "dappco.re/go/core/go-ratelimit/limit"

// purse is a [limit.Account] in little memory. Most keys are charged once and never seen
// again. So a purse stores no more of the first charge than its numbers, if all limits
// are sliding logs, and makes the account when it is needed. The zero purse has used
// nothing.
type purse struct {
	account *limit.Account // nil until it is needed
	first   firstCharge    // as long as there is no account
}

// firstCharge is the first charge of a key whose limits are all sliding logs. The zero
// firstCharge is no charge.
type firstCharge struct {
	at, n  int64
	fullAt int64 // the time from which on the charge does not count any more
	plan   *limit.Plan
}

// Account returns the account. It makes one if the purse has none yet.
func (p *purse) Account() *limit.Account {
	if p.account == nil {
		p.open()
	}
	return p.account
}

// open makes the account.
func (p *purse) open() { *p = purse{account: p.first.account()} }

func (f *firstCharge) account() *limit.Account {
	a := new(limit.Account)
	if f.plan != nil {
		a.Charge(f.plan, f.at, f.n, nil)
	}
	return a
}

// FullAt is [limit.Account.FullAt].
func (p *purse) FullAt() int64 {
	if p.account != nil {
		return p.account.FullAt()
	}
	return p.first.fullAt
}

// Spend is the whole decision on a request that is charged to one key and never
// settled. It reports whether all limits allow n.
func (p *purse) Spend(plan *limit.Plan, now, n int64, verdicts []limit.Verdict) (allowed bool) {
	var unused limit.Account
	a, longest := &unused, int64(0)
	if now >= p.FullAt() {
		longest = longestLog(plan)
	}
	if longest > 0 { // nothing is in use, and first can hold the charge
		*p = purse{}
	} else {
		a = p.Account()
	}
	switch allowed = a.Ask(plan, now, n, verdicts); {
	case !allowed:
		a.Deny(plan, now, n, verdicts)
	case longest == 0:
		a.Charge(plan, now, n, nil)
	case n > 0:
		p.first = firstCharge{now, n, max(now+longest, 0), plan}
	}
	return allowed
}

// longestLog returns the longest period of a plan's limits if all of them are sliding
// logs, and otherwise 0.
func longestLog(plan *limit.Plan) (longest int64) {
	limits := plan.Limits()
	for i := range limits {
		if limits[i].Algorithm() != limit.SlidingLog {
			return 0
		}
		longest = max(longest, int64(limits[i].Period()))
	}
	return longest
}
