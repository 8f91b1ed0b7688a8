package redisstore

import (
	"context"
	"crypto/rand"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// leaseName is the length of the name of a lease, in bytes.
const leaseName = 16

// lease sets a charge aside for a time, from the server's decision on. Until the end every limit
// counts it as used. It returns the name of the lease, or "" if a limit denies it.
func (r *remote) lease(ctx context.Context, c store.Charge, term time.Duration) (name string, decisions []limit.Decision, err error) {
	name = rand.Text()[:leaseName]
	t, err := r.askLease(ctx, stepLease, c, name, term)
	if err != nil || t.status == denied {
		return "", nil, err
	}
	return name, t.decisions(true), nil
}

// end gives a lease back, and charges what was used of it, now. It returns nil if the server has
// charged all of it before, because its time was over, or has forgotten it with the key, because
// all limits were full again.
func (r *remote) end(ctx context.Context, c store.Charge, name string) (*chargeReceipt, error) {
	t, err := r.askLease(ctx, stepEnd, c, name, 0)
	if err != nil || t.status == denied {
		return nil, err
	}
	return t.takes()[0], nil
}

func (r *remote) askLease(ctx context.Context, step byte, c store.Charge, name string, term time.Duration) (t takeAnswer, err error) {
	charges := []store.Charge{c}
	err = r.retry(ctx, func(ctx context.Context) (status, error) {
		t = takeAnswer{}
		o := r.leaseOp(step, c, name, term)
		if step == stepLease {
			o.dropLate, o.late = true, func(late result) { r.endLate(late, c, name) }
		}
		if err := r.do(ctx, o); err != nil {
			return 0, err
		}
		if step == stepEnd && statusOf(o.answer) == denied {
			return denied, nil
		}
		t, err = parseTake(o.result, charges)
		return t.status, err
	}, func(ctx context.Context) (status, error) { return unready, r.prepare(ctx, charges) })
	return t, err
}

func (r *remote) leaseOp(step byte, c store.Charge, name string, term time.Duration) *op {
	o := r.take(step, []store.Charge{c}, r.link.now())
	w := append(writer(o.body), name...)
	w.number(int64(term))
	o.body = w
	return o
}

// endLate gives back a lease that was granted after its caller has left.
func (r *remote) endLate(late result, c store.Charge, name string) {
	if late.err == nil && statusOf(late.answer) == allowed {
		c.N = 0
		r.send(r.leaseOp(stepEnd, c, name, 0))
	}
}
