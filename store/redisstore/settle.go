package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Settle implements [store.Store]. After an error it may be called again, with the same amounts.
func (r *remote) Settle(ctx context.Context, taken store.Receipt, actual []int64) error {
	return r.settleBooked(ctx, taken, actual, nil)
}

// settleBooked is Settle that books an entry in the same step, if it is not nil.
func (r *remote) settleBooked(ctx context.Context, taken store.Receipt, actual []int64, e *books.Entry) error {
	if taken == nil {
		return nil
	}
	own, ok := taken.(*receipt)
	if !ok || own.remote != r || len(actual) != len(own.takes) {
		return store.ErrReceipt
	}
	if err := r.link.alive(); err != nil {
		return err
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.settled == nil {
		own.settled, own.fates = make([]bool, len(actual)), make([]*fate, len(actual))
	}
	for _, part := range r.byPart(len(actual), func(i int) string { return own.takes[i].charge.Key }) {
		part = slices.DeleteFunc(part, func(i int) bool {
			return own.settled[i] || actual[i] < 0 || actual[i] == own.takes[i].N
		})
		if len(part) == 0 {
			continue
		}
		done, err := r.await(ctx, own.fates[part[0]], own.takes[part[0]].charge.Key)
		if err != nil {
			return err
		}
		if !done {
			done, err = r.correct(ctx, &task{kind: taskSettle, takes: pick(own.takes, part), actual: pick(actual, part), entry: e})
		}
		u, _ := errors.AsType[unanswered](err)
		for _, i := range part {
			own.settled[i], own.fates[i] = done && u.fate == nil, u.fate
		}
		if err != nil {
			return err
		}
	}
	for i := range own.settled {
		own.settled[i] = true
	}
	return nil
}

// isSettled reports whether a settlement has happened, if only of some accounts.
func (r *receipt) isSettled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.settled, true)
}

// Renew implements [accounts.Renewer]. What is renewed counts twice for a moment, until what was taken before is given
// back.
func (s internals) Renew(ctx context.Context, r store.Receipt, places []int) (store.Receipt, error) {
	own, ok := r.(*receipt)
	if !ok {
		return nil, nil
	}
	before := own.remote.receipt(pick(own.takes, places))
	charges := make([]store.Charge, len(places))
	for i, t := range before.takes {
		charges[i] = store.Charge{Key: t.charge.Key, N: t.charge.N}
		for _, l := range t.charge.Limits {
			charges[i].Limits = append(charges[i].Limits, l.WithCount(maxAmount))
		}
	}
	next, said, err := s.top.Take(ctx, charges)
	if err != nil || !store.Allowed(said) {
		return nil, cmp.Or(err, ErrLost)
	}
	s.SettleLater(before, make([]int64, len(places)), nil, func(error) {}) // what cannot be given back ends by itself
	return next, nil
}

// owe implements layer. It does not ask the server, but fails if the server is known to be lost.
func (r *remote) owe(_ context.Context, charge store.Charge) (store.Receipt, error) {
	if err := r.link.lost(partOf(charge.Key)); err != nil {
		return nil, err
	}
	charge.N = 0
	return r.receipt([]*chargeReceipt{{Receipt: limit.Receipt{At: r.link.now()}, charge: charge}}), nil
}

// await waits until the fate of a settlement is known whose answer is missing. done reports whether the
// settlement has happened.
func (r *remote) await(ctx context.Context, f *fate, key string) (done bool, err error) {
	if f == nil {
		return false, nil
	}
	select {
	case <-f.done:
		return f.happened, nil
	default:
	}
	if err := r.link.lost(partOf(key)); err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	select {
	case <-f.done:
		return f.happened, nil
	case <-within.Done():
		return false, r.timeoutError(ctx, fmt.Errorf("ratelimit: waiting for redis: %w", within.Err()))
	}
}

// unanswered is the error of a change that has happened or may still happen: the link goes on to find
// out.
type unanswered struct {
	error
	fate *fate
}

func (u unanswered) Unwrap() error { return u.error }

// fate is what becomes of a change whose caller has left.
type fate struct {
	done     chan struct{} // closed when happened is valid
	happened bool          // the change has happened, or that cannot be found out
}

// do sends an op and waits for its answer. Its errors are unanswered if the op changes anything and
// may have happened.
func (r *remote) do(ctx context.Context, o *op) error {
	var f *fate
	if !o.reads && o.late == nil {
		f = &fate{done: make(chan struct{})}
		o.late = func(late result) {
			f.happened = late.err == nil || !late.notRun
			if !f.happened && o.task != nil && o.task.entry != nil {
				r.books.outbox.keep([]books.Entry{*o.task.entry})
			}
			close(f.done)
		}
	}
	err := r.link.do(ctx, o)
	if err != nil && o.unanswered && !o.reads {
		return unanswered{err, f}
	}
	return err
}

// correct settles takes. After an error that is unanswered, done is true: the link finishes the
// settlement. So it is after an error of one account: the others are settled.
func (r *remote) correct(ctx context.Context, t *task) (done bool, err error) {
	err = r.do(ctx, r.opOf(t))
	_, unknown := errors.AsType[unanswered](err)
	return unknown || err == nil || t.ran, err
}
