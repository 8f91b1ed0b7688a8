package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// remote counts in Redis: each of its calls is one script call, or, in a cluster,
// one for each part of the keyspace that its keys are in.
type remote struct {
	client    rueidis.Client
	namespace string
	timeout   time.Duration
	cluster   bool
	link      *link
	heads     heads
	crowd     crowd

	mu     sync.Mutex
	unsent []*op // see send

	preparing map[string]chan struct{} // keys; closed when it is done
}

// newRemote returns a remote. The clock is the server's if it is nil.
func newRemote(client rueidis.Client, namespace string, timeout time.Duration, clock func() int64, changed func(change)) *remote {
	r := &remote{
		client:    client,
		namespace: namespace,
		timeout:   timeout,
		cluster:   client.Mode() == rueidis.ClientModeCluster,
		preparing: map[string]chan struct{}{},
	}
	heard := func(c change) {
		if !c.lost {
			r.resend()
		}
		if changed != nil {
			changed(c)
		}
	}
	r.link = newLink(client, linkConfig{namespace: namespace, timeout: timeout, clock: clock, script: arithmetic, cluster: r.cluster, changed: heard})
	r.crowd.r = r
	return r
}

// receipt is a take's. Settled is what was settled of it.
type receipt struct {
	remote *remote
	takes  []*taken

	mu      sync.Mutex
	settled []bool  // of each take
	fates   []*fate // of those that are being settled
}

// Take is [store.Store]'s.
func (r *remote) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := r.check(ctx, charges); err != nil {
		return nil, nil, err
	}
	charges = slices.Clone(charges)
	if len(charges) == 1 {
		return r.crowd.take(ctx, charges[0])
	}
	if r.cluster && len(charges) > 1 {
		return r.takeParts(ctx, charges)
	}
	t, err := r.ask(ctx, charges)
	if err != nil || t.status == denied {
		return nil, t.decisions(false), err
	}
	return r.receipt(t.takes()), t.decisions(true), nil
}

func (r *remote) receipt(takes []*taken) *receipt {
	return &receipt{remote: r, takes: takes}
}

// check says what is wrong with a call.
func (r *remote) check(ctx context.Context, charges []store.Charge) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	limits := 0
	for _, c := range charges {
		limits += len(c.Limits)
	}
	if len(charges) > mostKeysAsked || limits > mostLimitsAsked {
		return fmt.Errorf("%w: %d keys with %d limits in all: Redis can be asked for %d and %d at a time", store.ErrInvalid, len(charges), limits, mostKeysAsked, mostLimitsAsked)
	}
	return store.Validate(charges)
}

const (
	mostKeysAsked   = 100
	mostLimitsAsked = 500
)

// ask takes charges that may share a script call.
func (r *remote) ask(ctx context.Context, charges []store.Charge) (t told, err error) {
	if len(charges) == 0 {
		return told{status: allowed}, r.link.alive()
	}
	if err := r.link.lost(partOf(charges[0].Key)); err != nil { // before anything is made for nothing
		return told{}, err
	}
	err = r.repeat(ctx, func(ctx context.Context) (status, error) {
		o := r.take(toTake, charges, r.link.now())
		o.late = func(answer []byte, at int64) { r.giveBack(&op{answer: answer, at: at}, charges) }
		if err := r.do(ctx, o); err != nil {
			return 0, err
		}
		t, err = hear(o, charges)
		return t.status, err
	}, func(ctx context.Context) (status, error) { return unready, r.prepare(ctx, charges) })
	return t, err
}

// repeat calls step until it is neither unready nor far, within the timeout. Where it
// is unready, repair comes before the next step, or does it instead.
func (r *remote) repeat(ctx context.Context, step, repair func(context.Context) (status, error)) error {
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
	return r.outOfTime(ctx, err)
}

// outOfTime returns the error of what has ended with the timeout, though ctx has not.
func (r *remote) outOfTime(ctx context.Context, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	lost := fmt.Errorf("%w: not done within %v", ErrLost, r.timeout)
	if u, ok := errors.AsType[unanswered](err); ok {
		return unanswered{lost, u.fate}
	}
	return lost
}

// giveBack undoes a take whose caller has left before it was answered.
func (r *remote) giveBack(o *op, charges []store.Charge) {
	t, err := hear(o, charges)
	if err == nil && t.status == allowed {
		r.undo(t.takes())
	}
}

// undo gives back what was taken, without waiting for it.
func (r *remote) undo(takes []*taken) {
	for _, part := range r.byPart(len(takes), func(i int) string { return takes[i].charge.Key }) {
		r.send(r.settle(pick(takes, part), make([]int64, len(part)), true))
	}
}

// send does an op without waiting for it. One that has not happened is sent again
// when Redis is back, or a while later.
func (r *remote) send(o *op) {
	o.failed = r.keep
	if err := r.link.send(o); errors.Is(err, ErrLost) {
		r.keep(o, false)
	}
}

// keep keeps an op to be sent again, unless it may have happened.
func (r *remote) keep(o *op, maybe bool) {
	if maybe {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsent) == 0 {
		time.AfterFunc(r.timeout, r.resend)
	}
	if len(r.unsent) < mostUnsent {
		r.unsent = append(r.unsent, &op{part: o.part, keys: o.keys, body: o.body})
	}
}

// resend sends what could not be sent.
func (r *remote) resend() {
	r.mu.Lock()
	unsent := r.unsent
	r.unsent = nil
	r.mu.Unlock()
	for _, o := range unsent {
		r.send(o)
	}
}

const mostUnsent = 4096 // ops; those beyond leave what was taken

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
		return false, r.outOfTime(ctx, fmt.Errorf("ratelimit: waiting for redis: %w", within.Err()))
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

func (f *fate) is(happened bool) {
	f.happened = happened
	close(f.known)
}

// do does an op.
func (r *remote) do(ctx context.Context, o *op) error {
	var f *fate
	if !o.reads && o.late == nil {
		f = &fate{known: make(chan struct{})}
		o.late = func(answer []byte, _ int64) { f.is(statusOf(answer) == allowed) }
		o.failed = func(_ *op, maybe bool) { f.is(maybe) }
	}
	err := r.link.do(ctx, o)
	if err != nil && o.unanswered && !o.reads {
		return unanswered{err, f}
	}
	return err
}

// correct settles takes that may share a script call. It is done in spite of an
// error if that is unanswered.
func (r *remote) correct(ctx context.Context, takes []*taken, actual []int64, undo bool) (done bool, err error) {
	err = r.repeat(ctx, func(ctx context.Context) (status, error) {
		o := r.settle(takes, actual, undo)
		if err := r.do(ctx, o); err != nil {
			return 0, err
		}
		if s := statusOf(o.answer); s != far {
			return s, nil
		}
		return unready, nil // it was taken too long ago
	}, func(ctx context.Context) (status, error) { return r.settleHere(ctx, takes, actual) })
	_, done = errors.AsType[unanswered](err)
	return done || err == nil, err
}

// Peek is [store.Store]'s.
func (r *remote) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := r.check(ctx, charges); err != nil {
		return nil, err
	}
	groups := r.byPart(len(charges), func(i int) string { return charges[i].Key })
	if len(groups) <= 1 {
		return r.peek(ctx, charges, false)
	}
	each := make([][]limit.Decision, len(charges))
	for _, part := range groups {
		decisions, err := r.peek(ctx, pick(charges, part), false)
		if err != nil {
			return nil, err
		}
		spread(decisions, charges, part, each)
	}
	return slices.Concat(each...), nil
}

// peek peeks at charges that may share a script call. It may keep what a take that is
// denied keeps: that a clock went back, that limits have changed.
func (r *remote) peek(ctx context.Context, charges []store.Charge, keep bool) (decisions []limit.Decision, err error) {
	if len(charges) == 0 {
		return nil, r.link.alive()
	}
	err = r.repeat(ctx, func(ctx context.Context) (status, error) {
		o := r.take(toPeek, charges, r.link.now())
		if err := r.do(ctx, o); err != nil {
			return 0, err
		}
		t, err := hear(o, charges)
		decisions = t.decisions(false)
		return t.status, err
	}, func(ctx context.Context) (s status, err error) {
		if keep {
			return unready, r.prepare(ctx, charges)
		}
		decisions, err = r.peekHere(ctx, charges)
		return allowed, err
	})
	return decisions, err
}

// Reset is [store.Store]'s.
func (r *remote) Reset(ctx context.Context, prefix string) error {
	if err := r.check(ctx, nil); err != nil {
		return err
	}
	return r.scan(ctx, prefix, func(names []string) error {
		unlinks := make(rueidis.Commands, len(names))
		for i, name := range names {
			unlinks[i] = r.client.B().Unlink().Key(name).Build()
		}
		within, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		for _, answer := range r.client.DoMulti(within, unlinks...) {
			if err := answer.Error(); err != nil {
				return r.fault(ctx, err)
			}
		}
		return nil
	})
}

// Keys returns all keys of which something may be in use that begin with prefix,
// in order. It looks at every key of the database.
func (r *remote) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	err = r.scan(ctx, prefix, func(names []string) error {
		for _, name := range names {
			if key, isLog, _ := r.keyOf(name); !isLog {
				keys = append(keys, key)
			}
		}
		return nil
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// scan calls fn with the names in Redis of keys that begin with prefix, some at a
// time, and of their logs.
func (r *remote) scan(ctx context.Context, prefix string, fn func(names []string) error) error {
	if err := r.link.alive(); err != nil {
		return err
	}
	for _, node := range r.client.Nodes() {
		for cursor := uint64(0); ; {
			scan := node.B().Scan().Cursor(cursor).Match(r.pattern(prefix)).Count(1000).Build()
			within, cancel := context.WithTimeout(ctx, r.timeout)
			found, err := node.Do(within, scan).AsScanEntry()
			cancel()
			if err != nil {
				return r.fault(ctx, err)
			}
			names := slices.DeleteFunc(found.Elements, func(name string) bool {
				key, _, ok := r.keyOf(name)
				return !ok || !strings.HasPrefix(key, prefix)
			})
			if len(names) > 0 {
				if err := fn(names); err != nil {
					return err
				}
			}
			if cursor = found.Cursor; cursor == 0 {
				break
			}
		}
	}
	return nil
}

// fault returns the error of a command that is no script call.
func (r *remote) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ratelimit: waiting for redis: %w", ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// alive returns [store.ErrClosed] once the link is closed.
func (l *link) alive() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	return nil
}

// Close is [store.Store]'s.
func (r *remote) Close() error {
	r.link.close()
	r.crowd.close()
	return nil
}

// byPart groups the places of keys by what may share a script call: the parts of
// the keyspace in a cluster, in their order, and otherwise all.
func (r *remote) byPart(n int, key func(i int) string) (groups [][]int) {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	if n == 0 {
		return nil
	}
	if !r.cluster {
		return [][]int{places}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(partOf(key(a)), partOf(key(b))) })
	first := 0
	for i := 1; i <= n; i++ {
		if i == n || partOf(key(places[i])) != partOf(key(places[first])) {
			groups = append(groups, places[first:i:i])
			first = i
		}
	}
	return groups
}

func pick[E any](all []E, places []int) []E {
	picked := make([]E, len(places))
	for i, place := range places {
		picked[i] = all[place]
	}
	return picked
}

// spread puts the decisions on some of the charges to their places.
func spread(decisions []limit.Decision, charges []store.Charge, places []int, each [][]limit.Decision) {
	for _, i := range places {
		n := len(charges[i].Limits)
		each[i], decisions = decisions[:n:n], decisions[n:]
	}
}
