package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// StoreLoss is the loss mode: what a node does while Redis is lost.
//
// Each call finds out whether Redis is lost: in a cluster, some keys may be lost and others not. If
// Redis can be asked for all keys of a call, Redis decides.
//
// Redis is charged for what a node has admitted without it, as a debt, before the node asks Redis for
// the same key again. For keys that no call asks for, Redis is charged in the background once it
// answers. If the node ends before that, Redis is not charged.
//
// A debt is what still counts at the node when Redis is charged, and counts from then on: never for a
// shorter time than what was admitted would have counted, and at most for one window longer. But all
// sliding logs of a key share one log: what counts only in the longest of their windows then also
// counts in the others, for one window.
//
// A node forgets a key when nothing of it is in use any more, as [store.Memory] does. It also remembers
// what Redis said about the last 65,536 keys.
//
// If Redis has forgotten everything (it was started anew without its data, or flushed), it counts as lost
// until the node has put back what Redis last said to it. What counts is the most that any node knows.
type StoreLoss = store.LossMode

const (
	// Deny answers with errors that wrap [ErrLost]. It is the default.
	Deny StoreLoss = "deny"

	// Allow admits every call, and counts what it has used.
	Allow StoreLoss = "allow"

	// Share lets each node enforce its share of every limit: of n nodes, each has
	// one n-th of count and burst, in whole numbers that add up to the limit. A
	// node whose share is zero denies. A call that asks for more than the share, but
	// not for more than the limit, is denied for one period.
	//
	// A node starts from what Redis last said about a key: it counts its share of that
	// as used, and also everything that it has asked for and has no answer about yet.
	// So if all nodes lose Redis at once:
	//
	//   - in a window that begins after the loss, at most the limit passes;
	//   - in a window in which the loss falls, at most the limit passes, and what other
	//     nodes have admitted since a node last asked for the key: twice the limit at
	//     most.
	//
	// If k of n nodes lose Redis, the other nodes share the whole limit in Redis, and
	// those k nodes have their shares in addition: in any window, at most the limit and
	// k/n of it passes.
	//
	// Nodes reach Redis again one after another. Until all nodes that a node knew have
	// charged Redis, or for ten seconds, the node admits what both Redis and its own share
	// admit. So what all of them admit stays within the limit.
	//
	// This requires that the nodes agree on how many they are. So each node announces
	// itself through Redis every two seconds; the other nodes count a new node from their
	// own next announcement on. A node that has never reached Redis denies, as with
	// [Deny]. A node that is silent for ten seconds counts as ended, and the others get its
	// share. So if nodes lose Redis one after another, more than ten seconds apart, their
	// shares can add up to more than the limit. The share of a node that was killed is
	// unused for ten seconds, or, if Redis is lost, until it is back.
	Share StoreLoss = "share"
)

// layer is what a layer of the store offers to the layer above it.
type layer interface {
	store.Store

	// owe returns a receipt as of a take of zero, now, of the key and the limits of a charge.
	// Settling the receipt charges an amount as a debt, whatever the limits say.
	owe(ctx context.Context, charge store.Charge) (store.Receipt, error)
}

// fallback is the layer that does what the operator has chosen while Redis, below it, is lost.
//
// It passes each call to the layer below, which fails at once while Redis is known to be lost. Then
// the ledgers decide, with the same arithmetic as everywhere.
type fallback struct {
	below layer
	mode  StoreLoss
	nodes *nodes // nil unless the mode is Share
	clock func() int64

	groupOf func(key string) int // returns the group of the keyspace that a key is in
	lost    atomic.Uint64        // the groups of the keyspace that are lost, one bit for each

	ledgers *ledgers
	events  events
	sweeper sweeper

	closed atomic.Bool

	backs    atomic.Int64 // how often a group of the keyspace was back
	deciding atomic.Int64 // the number of calls that are being decided without Redis

	allowed, denied atomic.Int64 // the numbers of decisions without Redis that are not reported yet
	reportedAt      atomic.Int64
}

var _ layer = (*fallback)(nil)

// newFallback returns a layer over below. nodes are nil unless the mode is Share. The observer may
// be nil.
func newFallback(below layer, mode StoreLoss, nodes *nodes, observer func(store.Event)) *fallback {
	l := &fallback{
		below:  below,
		mode:   mode,
		nodes:  nodes,
		clock:  clock.New(),
		events: events{observe: observer},

		groupOf: func(string) int { return 0 },
	}
	l.ledgers = newLedgers(func() int64 { return l.clock() }, mode == Share)
	if nodes != nil {
		nodes.ready = func() bool { return l.lost.Load() == 0 && l.deciding.Load() == 0 && !l.inDebt() }
		nodes.recovery.ended = l.ledgers.dropKept
	}
	return l
}

// share returns this node's share, and whether the node may decide without Redis.
func (l *fallback) share() (p share, ok bool) {
	switch l.mode {
	case Allow:
		return whole, true
	case Share:
		return l.nodes.share()
	default:
		return share{}, false
	}
}

// decidesHere reports whether this node decides on a call for which the layer below has returned err.
func (l *fallback) decidesHere(ctx context.Context, err error) (p share, ok bool) {
	if !errors.Is(err, ErrLost) || ctx.Err() != nil {
		return share{}, false
	}
	return l.share()
}

// Take implements [store.Store].
func (l *fallback) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	for {
		backs := l.backs.Load()
		ofShare, denied := l.takeShare(ctx, charges)
		if denied != nil {
			return nil, denied, nil
		}
		pending := l.ledgers.beginCall(charges, true)
		r, decisions, err := l.takeBelow(ctx, charges)
		l.ledgers.endCall(charges, pending, decisions, r != nil)
		if ofShare != nil && r == nil {
			l.ledgers.giveBack(ofShare)
		}
		if err == nil {
			l.wake(false)
			return r, decisions, nil
		}
		p, ok := l.decidesHere(ctx, err)
		if !ok {
			return nil, nil, err
		}
		if err := store.Validate(charges); err != nil {
			return nil, nil, err
		}
		if local, decisions, ok := l.takeHere(charges, p, backs); ok {
			if local == nil {
				return nil, decisions, nil // a nil *localReceipt in the interface would not be nil
			}
			return local, decisions, nil
		}
	}
}

// takeHere takes without Redis. If Redis was back since it was asked, it must be asked again, and ok is false: this node
// may have announced already that Redis was charged for everything.
func (l *fallback) takeHere(charges []store.Charge, p share, backs int64) (local *localReceipt, decisions []limit.Decision, ok bool) {
	l.deciding.Add(1) // before the look at backs, so that the node is not ready meanwhile
	defer l.deciding.Add(-1)
	if l.backs.Load() != backs {
		return nil, nil, false
	}
	local, decisions = l.ledgers.take(charges, p, l.mode == Allow)
	l.countDecision(local != nil)
	return local, decisions, true
}

// recovers reports whether the keys of charges are of a group that Redis can be asked for again, while
// other nodes may still have to charge it: see recovery. It returns this node's share.
func (l *fallback) recovers(charges []store.Charge) (p share, ok bool) {
	if l.nodes == nil || !l.nodes.recovery.underWay() || store.Validate(charges) != nil {
		return share{}, false
	}
	for i := range charges {
		group := l.groupOf(charges[i].Key)
		if l.lost.Load()&(1<<group) != 0 {
			return share{}, false
		}
		ok = ok || l.nodes.recovery.of(group)
	}
	if !ok {
		return share{}, false
	}
	return l.nodes.share()
}

// takeShare takes from this node's shares before Redis is asked, if the keys recover. It returns nil for
// both if they do not, or if Redis cannot be charged for what was admitted without it.
func (l *fallback) takeShare(ctx context.Context, charges []store.Charge) (*shareTake, []limit.Decision) {
	p, ok := l.recovers(charges)
	if !ok || l.payDebts(ctx, charges) != nil {
		return nil, nil
	}
	return l.ledgers.takeShare(charges, p)
}

// takeBelow takes from Redis, after charging it for what was admitted without it.
func (l *fallback) takeBelow(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := l.payDebts(ctx, charges); err != nil {
		return nil, nil, err
	}
	return l.below.Take(ctx, charges)
}

// owe implements layer.
func (l *fallback) owe(ctx context.Context, charge store.Charge) (store.Receipt, error) {
	r, err := l.below.owe(ctx, charge)
	if p, ok := l.decidesHere(ctx, err); ok {
		return l.ledgers.owe(charge, p), nil
	}
	return r, err
}

// payDebts charges Redis for what was admitted without it of the charges' keys.
func (l *fallback) payDebts(ctx context.Context, charges []store.Charge) error {
	if !l.inDebt() {
		return nil
	}
	asked := false
	for i := range charges {
		g := l.ledgers.find(charges[i].Key)
		if g == nil {
			continue
		}
		if !asked { // no bill is made while Redis is still lost
			if _, err := l.below.Peek(ctx, charges); err != nil {
				return err
			}
			asked = true
		}
		if err := l.reconcile(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// inDebt reports whether Redis has not been charged yet for everything that was admitted without
// it.
func (l *fallback) inDebt() bool { return l.ledgers.count.Load() > 0 }

// peekBelow peeks below, and records the answer.
func (l *fallback) peekBelow(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	pending := l.ledgers.beginCall(charges, false)
	decisions, err := l.below.Peek(ctx, charges)
	l.ledgers.endCall(charges, pending, decisions, false)
	if err == nil {
		l.wake(false)
	}
	return decisions, err
}

// Settle implements [store.Store]. A take from Redis is settled in Redis: later, if Redis is lost. A
// take that this node has decided is settled here. If Redis was charged for it since, what was used
// beyond the take is a debt, and what was not used is not given back.
func (l *fallback) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	n, ok := r.(*localReceipt)
	if !ok {
		err := l.below.Settle(ctx, r, actual)
		if err == nil {
			l.ledgers.recordDebts(r, actual)
			l.wake(false)
		}
		return err
	}
	if n.all != l.ledgers || len(actual) != len(n.charges) {
		return store.ErrReceipt
	}
	if l.closed.Load() {
		return store.ErrClosed
	}
	if !n.settled.CompareAndSwap(false, true) {
		return nil
	}
	p, ok := l.share()
	if !ok {
		p = whole
	}
	l.ledgers.settle(n, actual, p)
	l.wake(false)
	return nil
}

// Peek implements [store.Store].
func (l *fallback) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	err := l.payDebts(ctx, charges)
	if err == nil {
		if p, ok := l.recovers(charges); ok {
			if decisions := l.ledgers.peek(charges, p); !store.Allowed(decisions) {
				return decisions, nil
			}
		}
		var decisions []limit.Decision
		if decisions, err = l.peekBelow(ctx, charges); err == nil {
			return decisions, nil
		}
	}
	p, ok := l.decidesHere(ctx, err)
	if !ok {
		return nil, err
	}
	if err := store.Validate(charges); err != nil {
		return nil, err
	}
	decisions := l.ledgers.peek(charges, p)
	if l.mode == Allow {
		for i := range decisions {
			decisions[i].Allowed, decisions[i].RetryAfter = true, 0
		}
	}
	return decisions, nil
}

// Read returns the accounts of the keys. If Redis is lost, they are this node's accounts, which include
// its share of what Redis last said.
func (l *fallback) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	accounts, at, err := l.below.Read(ctx, keys...)
	for i := 0; i < len(keys) && err == nil; i++ {
		if g := l.ledgers.find(keys[i]); g != nil {
			if err = l.reconcile(ctx, g); err == nil {
				accounts, at, err = l.below.Read(ctx, keys...)
			}
		}
	}
	p, ok := l.decidesHere(ctx, err)
	if !ok {
		return accounts, at, err
	}
	accounts, at = make([]*limit.Account, len(keys)), l.clock()
	for i, key := range keys {
		accounts[i] = l.ledgers.read(key, p)
	}
	return accounts, at, nil
}

// Keys returns all stored keys that begin with prefix, in order. If Redis is lost, these are the keys
// that this node knows.
func (l *fallback) Keys(ctx context.Context, prefix string) ([]string, error) {
	keys, err := l.below.Keys(ctx, prefix)
	if _, ok := l.decidesHere(ctx, err); !ok {
		return keys, err
	}
	return l.ledgers.keys(prefix), nil
}

// Reset implements [store.Store]. If Redis is lost, this node forgets the keys, and the error says
// that Redis has not.
func (l *fallback) Reset(ctx context.Context, prefix string) error {
	err := l.below.Reset(ctx, prefix)
	if err == nil || errors.Is(err, ErrLost) {
		l.ledgers.reset(prefix)
	}
	return err
}

// Close charges Redis for what was admitted without it, if Redis answers, and closes the layer below.
func (l *fallback) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.sweeper.stop()
	l.sweep(context.Background())
	l.reportDecided()
	if l.nodes != nil {
		l.nodes.close()
	}
	return l.below.Close()
}

// changed is called by the link when a part of the keyspace is lost, or is back.
func (l *fallback) changed(c change) {
	if c.lost {
		l.lost.Or(1 << c.group)
		if l.nodes != nil {
			l.nodes.lost(c.group)
		}
		l.emit(store.Event{Kind: store.Lost, Group: c.group, Err: c.err})
		return
	}
	l.backs.Add(1)
	l.lost.And(^uint64(1 << c.group))
	if l.lost.Load() == 0 && l.nodes != nil {
		l.nodes.back()
	}
	l.reportDecided()
	l.emit(store.Event{Kind: store.Back, Group: c.group})
	l.wake(true)
}

// reportEvery is how often decisions are reported to the observer.
const reportEvery = int64(time.Second)

// countDecision counts a decision without Redis, and reports the counts about once a second.
func (l *fallback) countDecision(allowed bool) {
	if allowed {
		l.allowed.Add(1)
	} else {
		l.denied.Add(1)
	}
	now, last := l.clock(), l.reportedAt.Load()
	since := now - last
	if (since >= reportEvery || since < 0) && l.reportedAt.CompareAndSwap(last, now) {
		l.reportDecided()
	}
}

// reportDecided reports the decisions since the last report.
func (l *fallback) reportDecided() {
	e := store.Event{Kind: store.Decided, Allowed: l.allowed.Swap(0), Denied: l.denied.Swap(0)}
	if e.Allowed+e.Denied > 0 {
		l.emit(e)
	}
}

// emit passes an event to the observer.
func (l *fallback) emit(e store.Event) {
	e.Mode = l.mode
	if l.nodes != nil {
		s, _ := l.nodes.share()
		e.Nodes = s.nodes
	}
	l.events.send(e)
}
