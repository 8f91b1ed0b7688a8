package limit

// First is what an [Account] has used after its first charge, in less memory: most keys are
// charged once and never seen again. It has no buckets. The zero First has used nothing.
type First struct {
	plan   *Plan
	at, n  int64
	fullAt int64 // the time from which on the charge does not count any more
	epoch  uint64
}

// First returns what a zero [Account] has used after a charge of n. [Account.Ask] has answered that
// all limits allow n, which is not zero, and none of them is a bucket.
func (p *Plan) First(now, n int64) First {
	f := First{plan: p, at: now, n: n, epoch: newEpoch()}
	if len(p.periods) > 0 {
		f.fullAt = max(now+p.longest, 0)
	}
	for _, i := range p.counters {
		_, v := p.limits[i].take(state{}, now, n)
		f.fullAt = max(f.fullAt, now+int64(v.ResetAfter))
	}
	return f
}

// Account returns the account.
func (f *First) Account() *Account {
	a := new(Account)
	if f.n > 0 {
		a.epoch, a.seen = f.epoch, f.at
		a.Charge(f.plan, f.at, f.n, nil)
	}
	return a
}

// FullAt is [Account.FullAt].
func (f *First) FullAt() int64 { return f.fullAt }

// Mark returns where the charge is counted.
func (f *First) Mark() Mark { return Mark{Epoch: f.epoch} }

// Correct is [Account.Correct], if a First can hold what is used then. It reports whether it can.
func (f *First) Correct(r *Receipt, now, actual int64) bool {
	if f.epoch != r.Epoch || actual > f.n || now < f.at {
		return false
	}
	f.n = actual
	if actual == 0 || now >= f.fullAt {
		*f = First{}
	}
	return true
}
