package redisstore

import (
	"context"
	"crypto/rand"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// leaseName is the length of a lease's name, in bytes.
const leaseName = 16

// lease asks Redis to lease a charge to this node, for a term that begins with the server's decision.
// Until the lease ends, every limit counts the charge as used. lease returns the name of the lease, or
// "" if a limit denies it.
func (r *remote) lease(ctx context.Context, c store.Charge, term time.Duration) (name string, decisions []limit.Decision, err error) {
	name = rand.Text()[:leaseName]
	t, err := r.askLease(ctx, stepLease, c, name, term)
	if err != nil || t.status == denied {
		return "", nil, err
	}
	return name, t.decisions(true), nil
}

// end ends a lease, and charges c, which is what was used of it. It returns nil if the server had
// ended the lease before: it has charged the whole slice when the term was over, or has forgotten the
// lease with its key, because nothing of that was in use any more.
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

// endLate ends a lease that was granted after the caller has left.
func (r *remote) endLate(late result, c store.Charge, name string) {
	if late.err == nil && statusOf(late.answer) == allowed {
		c.N = 0
		r.send(r.leaseOp(stepEnd, c, name, 0))
	}
}
