package store

import "dappco.re/go/core/go-ratelimit/limit"

// purse is a [limit.Account] in little memory: it makes the account when it is charged for
// the second time. The zero purse has used nothing.
type purse struct {
	account *limit.Account // nil until it is needed
	first   limit.First    // as long as there is no account
}

// Account returns the account. It makes one if the purse has none yet.
func (p *purse) Account() *limit.Account {
	if p.account == nil {
		*p = purse{account: p.first.Account()}
	}
	return p.account
}

// FullAt is [limit.Account.FullAt].
func (p *purse) FullAt() int64 {
	if p.account != nil {
		return p.account.FullAt()
	}
	return p.first.FullAt()
}

// Asked returns the account for a decision at now. That of a purse of which nothing is in use is
// unused, a zero account, so that none need be made.
func (p *purse) Asked(now int64, unused *limit.Account) *limit.Account {
	if p.account == nil {
		return p.askedFirst(now, unused)
	}
	return p.account
}

func (p *purse) askedFirst(now int64, unused *limit.Account) *limit.Account {
	if now < p.first.FullAt() {
		return p.Account()
	}
	p.first = limit.First{}
	return unused
}

// Peeked is Asked for a look, which makes the purse no larger.
func (p *purse) Peeked() *limit.Account {
	if p.account != nil {
		return p.account
	}
	return p.first.Account()
}

// Charge is [limit.Account.Charge] of the account that Asked has returned.
func (p *purse) Charge(plan *limit.Plan, now, n int64, r *limit.Receipt) {
	if p.account == nil {
		p.chargeFirst(plan, now, n, r)
	} else {
		p.account.Charge(plan, now, n, r)
	}
}

func (p *purse) chargeFirst(plan *limit.Plan, now, n int64, r *limit.Receipt) {
	if n > 0 && plan.Buckets() {
		p.Account().Charge(plan, now, n, r)
		return
	}
	if n > 0 {
		p.first = plan.First(now, n)
	}
	if r != nil {
		r.N, r.At, r.Mark = n, now, p.first.Mark()
	}
}

// Correct is [limit.Account.Correct].
func (p *purse) Correct(plan *limit.Plan, r *limit.Receipt, now, actual int64) {
	if p.account == nil && p.first.Correct(r, now, actual) {
		return
	}
	p.Account().Correct(plan, r, now, actual)
}

// Spend is the whole decision on a request that is charged to one key and never
// settled. It reports whether all limits allow n.
func (p *purse) Spend(plan *limit.Plan, now, n int64, verdicts []limit.Verdict) (allowed bool) {
	if p.account != nil && !plan.Buckets() && now >= p.account.FullAt() {
		*p = purse{}
	}
	var unused limit.Account
	a := p.Asked(now, &unused)
	if allowed = a.Ask(plan, now, n, verdicts); allowed {
		p.Charge(plan, now, n, nil)
	} else {
		a.Deny(plan, now, n, verdicts)
	}
	return allowed
}
