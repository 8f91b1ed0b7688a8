package redisstore

import (
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// entry is the part of a request that is about one account, with all steps of the batch on it: see lua/accounts.lua.
type entry struct {
	*replica
	view    *limit.Account // a copy of the account for decisions, or nil
	always  []step         // settlements
	takes   []step         // what happens only if what has been decided is still true
	pending int64          // what all of these charge
	spare   int64          // how much others may have charged since, at most
	alone   bool           // others may have changed nothing since
	state   *limit.Account // replaces the account; may be nil

	asked bool // a task is decided under limits that the account fits, so that it must go on to fit them

	owed, taken int64 // what always and takes add to the total
	due, lasts  int64 // when the account is full again, if others have charged nothing since; and by how much longer it is in use if they have

	rest         trailer // of the record, if Redis has what the node knows
	writes       bool    // there is a record
	begins, long bool    // it begins a new string; which replaces one that is long
	done         bool    // the steps are made on the replica
	err          error
}

// step is an operation, and the task that it is part of.
type step struct {
	limit.Operation
	task  *task
	index int // of the charge
}

// flags of an entry.
const (
	flagAlone    = 1
	flagProlongs = 2
	flagBegins   = 4
	flagDecides  = 8
)

// takesWithin is the longest time between a decision in the node and its take in Redis. A key expires later by as much.
const takesWithin = 10 * time.Second

// usedUntil returns the time until which anything of the account is in use at most, if n is charged under limits at some
// time from now until another.
func (e *entry) usedUntil(limits []limit.Limit, n, now, at int64) int64 {
	until := e.account.FullAt()
	for _, l := range limits {
		switch l.Algorithm() {
		case limit.SlidingLog:
			until = max(until, at+int64(l.Period()), e.account.LogUntil(at))
		case limit.FixedWindow, limit.SlidingCounter:
			until = max(until, at+int64(new(limit.Account).Check(l, at, 1).ResetAfter))
			if l.Period() == 24*time.Hour {
				until += int64(time.Minute) // a limit of a day that replaces this one may have windows that last up to a minute longer
			}
		default:
			until = max(until, at+int64(e.fitted(limits, now).Check(l, now, 0).ResetAfter)+drainsIn(l, n))
		}
	}
	return until
}

// drainsIn returns the time in which a bucket drains an amount.
func drainsIn(l limit.Limit, n int64) int64 { return scale(n, int64(l.Period()), l.Count(), 1) }

// viewAt returns a copy of the account for decisions.
func (e *entry) viewAt(now int64) *limit.Account {
	if e.view == nil {
		e.view = e.account.View(now)
	}
	return e.view
}

// fitted returns a copy of the account for decisions under limits that may have changed.
func (e *entry) fitted(limits []limit.Limit, now int64) *limit.Account {
	if e.account.Fits(limits, now) {
		return e.viewAt(now)
	}
	v := e.account.View(now)
	v.Fit(limits, now)
	return v
}

// add adds a step that charges n, and happens between two times.
func (e *entry) add(to *[]step, s step, n, now, until int64) {
	*to = append(*to, s)
	e.pending = sum(e.pending, n)
	e.due = max(e.due, e.usedUntil(s.Limits, e.pending, now, until))
	lasts := int64(0)
	for _, l := range s.Limits {
		if isBucket(l) {
			lasts = max(lasts, drainsIn(l, n))
		}
	}
	e.lasts = sum(e.lasts, lasts)
}

// settle adds the settlement of a take.
func (e *entry) settle(t *task, index int, now, until int64) {
	take, actual := t.takes[index], t.actual[index]
	if len(take.charge.Limits) == 0 {
		return
	}
	o := limit.Operation{Kind: limit.SettleOperation, Limits: take.charge.Limits, Receipt: take.Receipt, Actual: actual}
	owed := max(actual-take.N, 0)
	e.owed = sum(e.owed, owed)
	e.add(&e.always, step{o, t, index}, owed, now, until)
	e.alone = e.alone || owed > 0 && e.account.Revives(&take.Receipt, now)
}

// prolong has the key expire later, if it would expire before the account is full.
func (e *entry) prolong(now, until int64) {
	if e.expiresEarly() {
		e.add(&e.always, step{Operation: limit.Operation{Kind: limit.FitOperation}}, 0, now, until)
	}
}

func sum(a, b int64) int64 { return a + min(b, maxAmount-a) }

// weigh reports whether all limits of a charge allow it now, after the steps of the entry, and how much others may have
// charged since the replica was read.
func (e *entry) weigh(c *store.Charge, now int64) (spare int64, ok bool) {
	if e.asked && !e.account.Fits(c.Limits, now) {
		return 0, false
	}
	v, spare := e.fitted(c.Limits, now), int64(barrier-1)
	if e.alone || e.pending > 0 && c.N > maxAmount-e.pending {
		return 0, false
	}
	for _, l := range c.Limits {
		d := v.Check(l, now, c.N+e.pending)
		if !d.Allowed {
			return 0, false
		}
		spare = min(spare, d.Remaining)
	}
	return spare, true
}

// take adds a take that weigh allows.
func (e *entry) take(t *task, index int, spare, now, until int64) {
	c := t.charges[index]
	if len(c.Limits) == 0 {
		c.N = 0 // nothing counts it
	}
	o := limit.Operation{Kind: limit.TakeOperation, Limits: c.Limits, N: c.N}
	if c.N == 0 {
		e.fit(c.Limits, now, until)
	} else {
		e.alone = e.alone || !e.account.Fits(c.Limits, now) || sum(e.taken, c.N) >= barrier
		e.asked = true
	}
	e.add(&e.takes, step{o, t, index}, c.N, now, until)
	e.taken, e.spare = sum(e.taken, c.N), min(e.spare, spare)
}

// fit adds what a denial changes of the account, if it changes anything.
func (e *entry) fit(limits []limit.Limit, now, until int64) {
	if !e.asked && !e.account.Fits(limits, now) {
		e.alone = true
		e.add(&e.takes, step{Operation: limit.Operation{Kind: limit.FitOperation, Limits: limits}}, 0, now, until)
	}
	e.asked = true
}

// operationsOf returns the operations of steps. Takes beside each other under the same limits are one.
func operationsOf(all []limit.Operation, steps []step) []limit.Operation {
	for _, s := range steps {
		switch last := len(all) - 1; {
		case s.Kind == limit.TakeOperation && s.N == 0:
		case s.Kind == limit.TakeOperation && last >= 0 && all[last].Kind == s.Kind && slices.Equal(all[last].Limits, s.Limits):
			all[last].N += s.N
		default:
			all = append(all, s.Operation)
		}
	}
	return all
}

// write writes the entry. Its takes are decided at a time, in Unix nanoseconds.
func (e *entry) write(w *writer, mark uint64, now int64) {
	settled := operationsOf(nil, e.always)
	all := operationsOf(settled, e.takes)
	operations := limit.AppendOperations(nil, all)
	cut := len(limit.AppendOperations(nil, settled))
	begins := e.known == ""
	e.alone = e.alone || now < e.last.at // the clock went back, of which others must know
	var record writer
	skip := 0
	if len(operations) > 0 || e.state != nil {
		var base []byte
		switch {
		case e.state != nil:
			base, begins, e.alone = e.state.AppendState(nil), true, true
		case e.isLong():
			base, begins, e.long = e.account.AppendState(nil), true, true
		}
		record = make(writer, 0, 5+len(base)+len(operations))
		if begins {
			record.byte(version)
		}
		record.uint32(uint32(len(base) + len(operations)))
		record = append(record, base...)
		skip = len(record)
		record = append(record, operations...)
	}
	flags, before := byte(0), e.last
	if begins {
		flags, before.total, before.length = flagBegins, 0, 0
	}
	if len(e.takes) > 0 || e.state != nil {
		flags |= flagDecides
	}
	weight := min(e.owed, barrier) + min(e.taken, barrier)
	if e.alone {
		flags |= flagAlone
		weight = max(weight, barrier)
	}
	if e.isTooLong() {
		flags |= flagAlone
	}
	lasts := (e.lasts + 999_999) / 1_000_000
	due := (e.due + 999_999) / 1_000_000
	e.rest = trailer{mark: mark, total: before.total + weight, length: before.length + int64(len(record)) + trailerBytes, due: before.due}
	if due > before.due || begins {
		e.rest.due = due + min(due-now/1_000_000, 60_000)
		flags |= flagProlongs
	}
	w.byte(flags)
	w.byte(byte(len(e.known)))
	*w = append(*w, e.known...)
	w.float(e.rest.due)
	w.bytes(record)
	e.rest.appendRest(w)
	w.float(e.spare)
	w.float(min(e.owed, barrier))
	w.float(weight - min(e.owed, barrier))
	w.float(lasts)
	w.uint32(uint32(skip))
	w.uint32(uint32(cut))
	e.writes, e.begins = len(record) > 0, begins
}

// read reads the answer, and brings the replica up to date. taken reports whether the takes have happened, and at is the
// time of the call.
func (e *entry) read(answer []byte, taken bool, at int64) error {
	if len(answer) == 0 {
		return errCorrupt
	}
	steps := e.always
	if taken {
		steps = slices.Concat(e.always, e.takes)
	}
	own := func(at int64) error { return e.apply(steps, at) }
	switch answer[0] {
	case 'E':
		if !taken || !e.writes {
			break
		}
		if e.long {
			if err := e.account.Replay(e.account.AppendState(nil), at, e.rest.mark); err != nil {
				return err
			}
		}
		if err := own(at); err != nil {
			return err
		}
		if e.begins {
			e.known = ""
		}
		e.rest.at = at
		known := make(writer, 0, trailerBytes)
		known.number(at)
		e.rest.appendRest(&known)
		e.advance(string(known), e.rest)
	case 'T', 'A':
		if err := e.replica.read(answer[1:], answer[0] == 'A', e.rest.mark, own); err != nil {
			return err
		}
	default:
		return serverFault(answer[1:])
	}
	if taken && !e.done { // takes of zero are not written
		return own(at)
	}
	return nil
}

// apply makes the steps, at a time, and passes to their tasks what the limits say.
func (e *entry) apply(steps []step, at int64) error {
	e.done = true
	mark := e.rest.mark
	if e.state != nil {
		return e.account.Replay(e.state.AppendState(nil), at, mark)
	}
	for len(steps) > 0 {
		if steps[0].Kind == limit.TakeOperation {
			n := together(steps)
			e.applyTakes(steps[:n], at)
			steps = steps[n:]
		} else {
			e.account.Do(&steps[0].Operation, at, mark)
			steps = steps[1:]
		}
	}
	return nil
}

// together returns how many steps in front are one operation: takes under the same limits, and those of zero.
func together(steps []step) (n int) {
	var limits []limit.Limit
	for n < len(steps) && steps[n].Kind == limit.TakeOperation && (steps[n].N == 0 || limits == nil || slices.Equal(limits, steps[n].Limits)) {
		if steps[n].N > 0 {
			limits = steps[n].Limits
		}
		n++
	}
	return n
}

// applyTakes makes takes that are one operation, and passes what the limits say to their tasks: to each as if it was taken
// after those before it.
func (e *entry) applyTakes(takes []step, at int64) {
	view, all := e.account.View(at), operationsOf(nil, takes)
	before := int64(0)
	receipts := make([]chargeReceipt, len(takes))
	for i := range takes {
		s := &takes[i]
		v, n := view, s.N+before
		if s.N == 0 {
			v, n = e.account.View(at), 0
		}
		before += s.N
		s.task.each[s.index] = check(v, s.Limits, at, n)
	}
	var r limit.Receipt
	for i := range all {
		r = e.account.Do(&all[i], at, e.rest.mark)
	}
	for i := range takes {
		s, own := &takes[i], &receipts[i]
		own.charge, own.At = s.task.charges[s.index], at
		if s.N > 0 {
			own.Receipt, own.N = r, s.N
		}
		s.task.takes[s.index] = own
	}
}

// check returns what limits say to n. It changes nothing of the account but what a take changes.
func check(a *limit.Account, limits []limit.Limit, at, n int64) []limit.Decision {
	a.Fit(limits, at)
	said := make([]limit.Decision, len(limits))
	for i, l := range limits {
		said[i] = a.Check(l, at, n)
	}
	return said
}
