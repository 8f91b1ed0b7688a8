package limit

// Purse is an [Account] in little memory, for a store that holds many. Most keys are
// charged once and never seen again. So a purse remembers no more of the first charge
// than its numbers, if all limits are sliding logs, and makes the account when it is
// needed. The zero Purse has used nothing.
type Purse struct {
	account *Account // nil until it is needed
	once    once     // the first charge, as long as there is no account
}

// once is the first charge of a key whose limits are all sliding logs. The zero once is
// no charge.
type once struct {
	at, n int64
	epoch uint64 // of the account that it will be
	plan  *Plan
}

// Account returns the account. It makes one if the purse has none yet.
func (p *Purse) Account() *Account {
	if p.account == nil {
		*p = Purse{account: p.once.account()}
	}
	return p.account
}

// FullAt is [Account.FullAt].
func (p *Purse) FullAt() int64 {
	switch {
	case p.account != nil:
		return p.account.FullAt()
	case p.once.plan != nil:
		return max(p.once.at+p.once.plan.longest, 0)
	default:
		return 0
	}
}

// Spend is the whole decision about a request that is charged to one key and never
// settled: Ask, and then Charge or Deny. It reports whether all limits allow n.
func (p *Purse) Spend(plan *Plan, now, n int64, decisions []Decision) (allowed bool) {
	begins := now >= p.FullAt() && plan.logsAlone() // nothing is in use, and once can hold the charge
	var unused Account
	a := &unused
	if begins {
		*p = Purse{}
	} else {
		a = p.Account()
	}
	switch allowed = a.Ask(plan, now, n, decisions); {
	case !allowed:
		a.Deny(plan, now, n, decisions)
	case begins && n > 0:
		p.once = once{now, n, newEpoch(), plan}
	default:
		a.Charge(plan, now, n)
	}
	return allowed
}

// account returns an account that has been charged so.
func (o *once) account() *Account {
	if o.plan == nil {
		return new(Account)
	}
	a := &Account{seen: o.at, epoch: o.epoch, plan: o.plan}
	h := a.counters.history(o.plan.limits, o.at)
	h.add(o.at, o.n)
	a.counters.fullAt = max(h.fullAt(), 0)
	return a
}
