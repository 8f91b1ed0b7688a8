package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// remote is the layer that asks Redis. It decides by what it knows of the accounts, and Redis compares: see
// lua/accounts.lua. A call is a part of one script call, or in a cluster of one for each part of the keyspace; and of
// another one if Redis has what this node did not know, and what was decided is not true any more.
type remote struct {
	client    rueidis.Client
	namespace string
	timeout   time.Duration
	cluster   bool
	link      *link
	replicas  *replicas
	mark      atomic.Uint64 // of the last composition
	books     *bookkeeper   // nil in tests

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
		replicas:  newReplicas(maxReplicaBytes),
	}
	r.mark.Store(rand.Uint64())
	changed := cfg.changed
	cfg.script, cfg.cluster, cfg.compose = accounting(), r.cluster, r.composeBatch
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
	if !t.taken {
		return nil, slices.Concat(t.each...), nil
	}
	return r.receipt(t.takes), slices.Concat(t.each...), nil
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

// ask asks Redis to take charges. If the caller leaves before the answer, the take is undone.
func (r *remote) ask(ctx context.Context, charges []store.Charge) (*task, error) {
	t := &task{kind: taskTake, charges: charges}
	if len(charges) == 0 {
		t.taken = true
		return t, r.link.alive()
	}
	o := r.opOf(t)
	o.dropLate, o.late = true, func(late result) { r.undoLate(late, t) }
	return t, r.do(ctx, o)
}

// opOf returns the op of a task.
func (r *remote) opOf(t *task) *op {
	return &op{part: partOf(t.key(0)), task: t, reads: t.kind == taskPeek || t.kind == taskRead}
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
		t := &task{kind: taskPeek, charges: pick(charges, part)}
		if err := r.do(ctx, r.opOf(t)); err != nil {
			return nil, err
		}
		spread(t.each, part, each)
	}
	return slices.Concat(each...), r.link.alive()
}

// Read returns the accounts of the keys, and the time in Unix nanoseconds as of which they are
// read. A key that has used nothing has a zero account.
func (r *remote) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	all := make([]*limit.Account, len(keys))
	latest := int64(0)
	for _, part := range r.byPart(len(keys), func(i int) string { return keys[i] }) {
		for some := range slices.Chunk(part, maxCharges) {
			t := &task{kind: taskRead}
			for _, i := range some {
				t.charges = append(t.charges, store.Charge{Key: keys[i]})
			}
			o := r.opOf(t)
			if err := r.do(ctx, o); err != nil {
				return nil, 0, err
			}
			latest = max(latest, o.at)
			for n, i := range some {
				all[i] = t.read[n]
			}
		}
	}
	return all, cmp.Or(latest, r.link.now()), r.link.alive()
}

// Close implements [store.Store].
func (r *remote) Close() error {
	r.link.close()
	return nil
}
