package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Settle is [store.Store]'s. After an error it may be called again, with the same
// amounts.
func (r *remote) Settle(ctx context.Context, kept store.Receipt, actual []int64) error {
	if kept == nil {
		return nil
	}
	held, ok := kept.(*receipt)
	if !ok || held.remote != r || len(actual) != len(held.takes) {
		return store.ErrReceipt
	}
	if err := r.link.alive(); err != nil {
		return err
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.settled == nil {
		held.settled, held.fates = make([]bool, len(actual)), make([]*fate, len(actual))
	}
	for _, part := range r.byPart(len(actual), func(i int) string { return held.takes[i].charge.Key }) {
		part = slices.DeleteFunc(part, func(i int) bool {
			return held.settled[i] || actual[i] < 0 || actual[i] == held.takes[i].N
		})
		if len(part) == 0 {
			continue
		}
		done, err := r.await(ctx, held.fates[part[0]], held.takes[part[0]].charge.Key)
		if err != nil {
			return err
		}
		if !done {
			done, err = r.correct(ctx, pick(held.takes, part), pick(actual, part), false)
		}
		u, _ := errors.AsType[unanswered](err)
		for _, i := range part {
			held.settled[i], held.fates[i] = done && err == nil, u.fate
		}
		if err != nil {
			return err
		}
	}
	for i := range held.settled {
		held.settled[i] = true
	}
	return nil
}

// owe is layer's. It asks nothing of the server, but fails if that is known to be
// lost.
func (r *remote) owe(_ context.Context, charge store.Charge) (store.Receipt, error) {
	if err := r.link.lost(partOf(charge.Key)); err != nil {
		return nil, err
	}
	charge.N = 0
	return r.receipt([]*chargeReceipt{{Receipt: limit.ReceiptOf(0, r.link.now()), charge: charge}}), nil
}

// await waits until it is known what became of a settlement of which that was not
// known. It is done if it has happened.
func (r *remote) await(ctx context.Context, f *fate, key string) (done bool, err error) {
	if f == nil {
		return false, nil
	}
	select {
	case <-f.known:
		return f.happened, nil
	default:
	}
	if err := r.link.lost(partOf(key)); err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	select {
	case <-f.known:
		return f.happened, nil
	case <-within.Done():
		return false, r.timeoutError(ctx, fmt.Errorf("ratelimit: waiting for redis: %w", within.Err()))
	}
}

// unanswered is the error of a change that may have happened, or will: the link
// goes on to find out.
type unanswered struct {
	error
	fate *fate
}

func (u unanswered) Unwrap() error { return u.error }

// fate is what becomes of a change whose caller has left.
type fate struct {
	known    chan struct{} // closed when it is
	happened bool          // or it cannot be found out
}

func (f *fate) resolve(happened bool) {
	f.happened = happened
	close(f.known)
}

// do does an op.
func (r *remote) do(ctx context.Context, o *op) error {
	var f *fate
	if !o.reads && o.onLate == nil {
		f = &fate{known: make(chan struct{})}
		o.onLate = func(answer []byte, _ int64) { f.resolve(statusOf(answer) == allowed) }
		o.onFailed = func(_ *op, maybe bool) { f.resolve(maybe) }
	}
	err := r.link.do(ctx, o)
	if err != nil && o.unanswered && !o.reads {
		return unanswered{err, f}
	}
	return err
}

// correct settles takes that may share a script call. It is done in spite of an
// error if that is unanswered.
func (r *remote) correct(ctx context.Context, takes []*chargeReceipt, actual []int64, undo bool) (done bool, err error) {
	err = r.retry(ctx, func(ctx context.Context) (status, error) {
		o := r.settle(takes, actual, undo)
		if err := r.do(ctx, o); err != nil {
			return 0, err
		}
		if s := statusOf(o.answer); s != skewed {
			return s, nil
		}
		return unready, nil // it was taken too long ago
	}, func(ctx context.Context) (status, error) { return r.settleLocally(ctx, takes, actual) })
	_, done = errors.AsType[unanswered](err)
	return done || err == nil, err
}
