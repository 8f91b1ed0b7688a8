package redisstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// observedKey is what Redis last said about a key.
type observedKey struct {
	key string
	*observation
}

// observedIn returns what Redis last said about the keys of a part of the keyspace, as far as it still
// counts.
func (b *ledgers) observedIn(in func(key string) bool) (all []observedKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	for key := range b.observed.keys {
		if !in(key) {
			continue
		}
		if h := b.observed.at(key, now); h != nil {
			all = append(all, observedKey{key, h})
		}
	}
	return all
}

// awaitCalls waits until the answers to all takes that are under way are recorded, for at most a time:
// a server may have granted them just before it forgot everything.
func (b *ledgers) awaitCalls(most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*pendingTake
	for _, some := range b.observed.pending {
		all = append(all, some...)
	}
	for late := time.Now().Add(most); len(all) > 0 && time.Now().Before(late); {
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.mu.Lock()
		all = slices.DeleteFunc(all, func(q *pendingTake) bool { return q.ended })
	}
}

// restore puts back what a server has forgotten: afterwards it counts at least as much as it last
// said to this node. Every node does that, and what counts is the most that any of them knows.
func (r *remote) restore(all []observedKey) error {
	for some := range slices.Chunk(all, maxCharges) {
		if err := r.raiseEach(some); err != nil {
			return err
		}
	}
	return nil
}

// raiseTries is how often a node tries to raise an account that other nodes change at the same time.
const raiseTries = 3

// raiseEach raises accounts to what is known about them. Other nodes, which have put back already what they
// know, may take from one of them so often that it is never the same for long enough. So the others are
// raised without it, and it is charged for the difference.
func (r *remote) raiseEach(all []observedKey) error {
	for range raiseTries {
		if done, err := r.raise(all); done || err != nil {
			return err
		}
		if half := len(all) / 2; half > 0 {
			if err := r.raiseEach(all[:half]); err != nil {
				return err
			}
			return r.raiseEach(all[half:])
		}
	}
	return r.chargeDifference(&all[0])
}

// raise raises accounts to what is known about them. It does nothing, and returns false, if another node
// changes one of them meanwhile.
func (r *remote) raise(all []observedKey) (done bool, err error) {
	c, err := r.readDirectly(all)
	if err != nil {
		return false, err
	}
	for i, e := range c.entries {
		e.state = e.account.Fork()
		all[i].raise(e.state, c.op.at)
		e.due = e.state.FullAt()
	}
	c = c.replacing()
	if err := r.directly(c); err != nil {
		return false, err
	}
	return c.taken, nil
}

// readDirectly reads the accounts of keys, although the server counts as lost.
func (r *remote) readDirectly(all []observedKey) (*composition, error) {
	t := &task{kind: taskRead}
	for i := range all {
		t.charges = append(t.charges, store.Charge{Key: all[i].key})
	}
	c := r.compose(newReplicas(0), []*task{t}, r.link.now())
	return c, r.directly(c)
}

// directly sends a composition, although the server counts as lost.
func (r *remote) directly(c *composition) error {
	if err := r.link.direct(c.op); err != nil {
		return err
	}
	c.read(c.op.result)
	for _, e := range c.entries {
		if e.err != nil {
			return e.err
		}
	}
	return nil
}

// chargeDifference charges an account for what it has used less than is known about it, whatever other
// nodes take from it meanwhile. One node at a time does that, so that no two charge for the same use.
func (r *remote) chargeDifference(k *observedKey) error {
	unlock, err := r.lockRestoring(partOf(k.key))
	if err != nil {
		return err
	}
	defer unlock()
	c, err := r.readDirectly([]observedKey{*k})
	if err != nil {
		return err
	}
	at := c.op.at
	for _, b := range k.bills(&c.entries[0].account, at) {
		debt := &chargeReceipt{Receipt: limit.Receipt{At: at}, charge: store.Charge{Key: k.key, Limits: b.limits}}
		t := &task{kind: taskSettle, takes: []*chargeReceipt{debt}, actual: []int64{b.n}}
		if err := r.directly(r.compose(newReplicas(0), []*task{t}, at)); err != nil {
			return err
		}
	}
	return nil
}

// lockRestoring waits until no other node charges differences in a part of the keyspace. The lock of a node
// that has ended expires.
func (r *remote) lockRestoring(part int) (unlock func(), err error) {
	name := r.namespace + ":{" + strconv.Itoa(part) + "}:restoring"
	lock := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
		defer cancel()
		return r.client.Do(ctx, r.client.B().Set().Key(name).Value("").Nx().PxMilliseconds(max(1, 10*r.timeout.Milliseconds())).Build()).Error()
	}
	for err = lock(); rueidis.IsRedisNil(err); err = lock() { // another node has it
		time.Sleep(time.Millisecond)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
		defer cancel()
		r.client.Do(ctx, r.client.B().Del().Key(name).Build())
	}, err
}

// raise raises an account to what the observation says.
func (h *observation) raise(a *limit.Account, now int64) {
	if now < a.FullAt() {
		h.bills(a, now)
		return
	}
	*a = h.account()
}

// account returns an account that has used what the observation says.
func (h *observation) account() (known limit.Account) {
	for _, u := range h.pastUses(whole) {
		impose(&known, u.limits, u.at, u.n)
	}
	return known
}

// bills charges an account for what it has used less than the observation says, and returns these charges.
func (h *observation) bills(a *limit.Account, now int64) (all []*bill) {
	g := ledger{limits: h.limits, shares: h.limits, account: h.account(), reported: *a}
	for b := g.nextBill(now); b != nil; b = g.nextBill(now) {
		impose(&g.reported, b.limits, now, b.n)
		all = append(all, b)
	}
	*a = g.reported
	return all
}
