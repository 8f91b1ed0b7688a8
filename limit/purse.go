package limit

// Purse is an [Account] in little room, for a store that holds many. Most keys
// are charged once and never seen again, so of one charge of sliding logs it
// notes no more than the charge, and makes an account of it when it is needed:
// the one that it would have been. The zero Purse has used nothing.
type Purse struct {
	account *Account // nil while there is none, or once stands for it

	once once
}

// once is what the first charge of sliding logs leaves behind. The zero once is
// none.
type once struct {
	at, n int64
	epoch uint64
	plan  *Plan
}

// Account returns the account, which the purse holds from then on.
func (p *Purse) Account() *Account {
	if p.account == nil {
		*p = Purse{account: p.once.account()}
	}
	return p.account
}

// FullAt returns from when on nothing is in use, as [Account.FullAt] does.
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

// Spend is the whole decision where no other key takes part, and nothing is settled:
// it asks every limit of the plan and charges n to all of them, or none if one denies
// it. It fills in what each says. Where nothing is taken, those that allow say what
// remains now.
func (p *Purse) Spend(plan *Plan, now, n int64, decisions []Decision) (allowed bool) {
	begins := now >= p.FullAt() && plan.logsAlone()
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

// account returns the account that a charge has left behind.
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
