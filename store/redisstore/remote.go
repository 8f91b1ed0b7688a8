package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// remote is the layer that asks Redis. Each of its calls is one script call, or, in a cluster, one for
// each part of the keyspace.
type remote struct {
	client    rueidis.Client
	namespace string
	timeout   time.Duration
	cluster   bool
	link      *link
	prefixes  prefixCache

	mu     sync.Mutex
	unsent []*op // ops that are sent again when Redis is back: see send
}

// newRemote returns a remote. If clock is nil, the server's clock counts. changed may be nil.
func newRemote(client rueidis.Client, namespace string, timeout time.Duration, clock func() int64, changed func(change)) *remote {
	return newRemoteOf(client, linkConfig{namespace: namespace, timeout: timeout, clock: clock, changed: changed})
}

// newRemoteOf returns a remote with a link of a configuration, which need not have the script.
func newRemoteOf(client rueidis.Client, cfg linkConfig) *remote {
	r := &remote{
		client:    client,
		namespace: cfg.namespace,
		timeout:   cfg.timeout,
		cluster:   client.Mode() == rueidis.ClientModeCluster,
	}
	changed := cfg.changed
	cfg.script, cfg.cluster = arithmetic(), r.cluster
	cfg.changed = func(c change) {
		if !c.lost {
			go r.resend()
		}
		if changed != nil {
			changed(c)
		}
	}
	r.link = newLink(client, cfg)
	return r
}

// receipt is the receipt of a take.
type receipt struct {
	remote *remote
	takes  []*chargeReceipt // one for each charge
	later  atomic.Bool      // SettleLater settles it, or has
	bookedOnce

	mu      sync.Mutex
	settled []bool  // one for each charge
	fates   []*fate // one for each charge; nil unless the answer to its settlement is missing
}

// Take implements [store.Store].
func (r *remote) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := r.check(ctx, charges); err != nil {
		return nil, nil, err
	}
	charges = slices.Clone(charges)
	if r.cluster && len(charges) > 1 {
		return r.takeParts(ctx, charges)
	}
	t, err := r.ask(ctx, charges)
	if err != nil {
		return nil, nil, err
	}
	decisions := t.decisions(t.status == allowed)
	if t.status == denied {
		return nil, decisions, nil
	}
	return r.receipt(t.takes()), decisions, nil
}

func (r *remote) receipt(takes []*chargeReceipt) *receipt {
	return &receipt{remote: r, takes: takes}
}

// check returns an error if ctx has ended, or if the charges are not valid or too many.
func (r *remote) check(ctx context.Context, charges []store.Charge) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	limits := 0
	for _, c := range charges {
		limits += len(c.Limits)
	}
	if len(charges) > maxCharges || limits > maxLimits {
		return fmt.Errorf("%w: %d keys with %d limits in all: Redis can be asked for %d and %d at a time", store.ErrInvalid, len(charges), limits, maxCharges, maxLimits)
	}
	return store.Validate(charges)
}

const (
	maxCharges = 100
	maxLimits  = 500
)

// ask asks the script to take charges. If the caller leaves before the answer, the take is undone.
func (r *remote) ask(ctx context.Context, charges []store.Charge) (t takeAnswer, err error) {
	if len(charges) == 0 {
		return takeAnswer{status: allowed}, r.link.alive()
	}
	if err := r.link.lost(partOf(charges[0].Key)); err != nil { // fails before the request is built
		return takeAnswer{}, err
	}
	err = r.retry(ctx, func(ctx context.Context) (status, error) {
		o := r.take(stepTake, charges, r.link.now())
		o.dropLate, o.late = true, func(late result) { r.undoLate(late, charges) }
		if err := r.do(ctx, o); err != nil {
			return 0, err
		}
		t, err = parseTake(o.result, charges)
		return t.status, err
	}, func(ctx context.Context) (status, error) { return unready, r.prepare(ctx, charges) })
	return t, err
}

// retry calls step until its status is neither unready nor skewed, within the timeout. If it is
// unready, retry calls repair, and then step again unless repair has done the work of step.
func (r *remote) retry(ctx context.Context, step, repair func(context.Context) (status, error)) error {
	start := time.Now()
	s, err := step(ctx)
	if err != nil || s <= allowed {
		return err
	}
	patient, cancel := context.WithDeadline(ctx, start.Add(r.timeout))
	defer cancel()
	for err == nil && s > allowed {
		if s == unready {
			if s, err = repair(patient); err != nil || s <= allowed {
				break
			}
		}
		s, err = step(patient)
	}
	return r.timeoutError(ctx, err)
}

// timeoutError turns the error of a call that has ended because of the timeout into [ErrLost]. Errors
// of a caller whose own ctx has ended stay as they are.
func (r *remote) timeoutError(ctx context.Context, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	lost := fmt.Errorf("%w: not done within %v", ErrLost, r.timeout)
	if u, ok := errors.AsType[unanswered](err); ok {
		return unanswered{lost, u.fate}
	}
	return lost
}

// Peek implements [store.Store].
func (r *remote) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := r.check(ctx, charges); err != nil {
		return nil, err
	}
	each := make([][]limit.Decision, len(charges))
	for _, part := range r.byPart(len(charges), func(i int) string { return charges[i].Key }) {
		decisions, err := r.peek(ctx, pick(charges, part), false)
		if err != nil {
			return nil, err
		}
		spread(decisions, charges, part, each)
	}
	return slices.Concat(each...), r.link.alive()
}

// peek peeks at charges that may share a script call. If keep is set, it may change the stored
// accounts as a denied take does, if the clock went back or limits have changed.
func (r *remote) peek(ctx context.Context, charges []store.Charge, keep bool) (decisions []limit.Decision, err error) {
	err = r.retry(ctx, func(ctx context.Context) (status, error) {
		o := r.take(stepPeek, charges, r.link.now())
		if err := r.do(ctx, o); err != nil {
			return 0, err
		}
		t, err := parseTake(o.result, charges)
		decisions = t.decisions(false)
		return t.status, err
	}, func(ctx context.Context) (s status, err error) {
		if keep {
			return unready, r.prepare(ctx, charges)
		}
		decisions, err = r.peekLocally(ctx, charges)
		return allowed, err
	})
	return decisions, err
}

// Close implements [store.Store].
func (r *remote) Close() error {
	r.link.close()
	return nil
}
