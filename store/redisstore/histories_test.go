package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// histories is nodes whose batches happen, and are answered, in any order, and accounts in memory that do what Redis has done.
type histories struct {
	*rapid.T
	clock           *atomic.Int64
	nodes           []*historyNode
	limits          [][]limit.Limit
	keys            map[string]*historyKey
	names           []string
	open            []*chargeReceipt // of takes that are not settled
	rewound, evicts bool             // the clock goes back; keys are evicted
	large           bool             // there are counts and amounts near 2^53
	trace           []string
}

func (f *histories) note(format string, args ...any) {
	f.trace = append(f.trace, fmt.Sprintf(format, args...))
}

func (f *histories) fail(format string, args ...any) {
	f.Helper()
	f.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(f.trace, "\n"))
}

// historyKey is a key as it should be.
type historyKey struct {
	model  limit.Account
	states map[string][]byte // the account after each record, by its trailer
	ledger []*charged
	lost   bool // it was evicted, or no node has read what has happened to it
	short  bool // it expires too early, until a node has read that
}

// charged is what a take still holds without its debts.
type charged struct{ at, n int64 }

type historyNode struct {
	*remote
	waiting []*task      // for the next batch
	sent    *composition // what is under way
	ran     bool         // it has happened
	after   map[string]*limit.Account
}

// Whatever happens to batches, answers, keys, nodes and clocks: all replicas are the account, nothing is taken that its
// limits do not allow, no key expires before its account is full, and all calls end.
func TestHistoriesOfBatches(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	server := redistest.New(t)
	var remotes []*remote
	for range 3 {
		r := newRemote(dialed(t, server.URL()), "histories", patient, clock.Load, nil)
		defer r.Close()
		remotes = append(remotes, r)
	}
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		count++
		clock.Store(noon.UnixNano())
		f := &histories{T: t, clock: &clock, keys: map[string]*historyKey{}}
		bytesKept := oneOf[int64](t, "kept", maxReplicaBytes, maxReplicaBytes, 2*replicaBytes)
		foldAt := oneOf[int64](t, "fold", 300, 0, 8192)
		for _, r := range remotes {
			r.replicas = newReplicas(bytesKept)
			r.replicas.foldAt = foldAt
			f.nodes = append(f.nodes, &historyNode{remote: r})
		}
		for i := range rapid.IntRange(1, 2).Draw(t, "keys") {
			name := fmt.Sprintf("h%d/%d", count, i)
			f.names = append(f.names, name)
			f.keys[name] = &historyKey{states: map[string][]byte{}}
		}
		f.drawLimits()
		rewinds, evicts := rapid.IntRange(0, 2).Draw(t, "rewinds") == 0, rapid.IntRange(0, 3).Draw(t, "evicts") == 0
		f.rewound, f.evicts = rewinds, evicts
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			later := oneOf(t, "later", 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, time.Millisecond, time.Second, time.Second, time.Millisecond, time.Second, 11*time.Second, 50*time.Second, 70*time.Second, 40*time.Minute, 3*time.Hour, 50*time.Hour, -1, -time.Minute, -2*time.Hour)
			if later < 0 && !rewinds {
				later = 0
			}
			clock.Add(int64(later))
			if later != 0 {
				f.note("later %v", later)
			}
			f.expire()
			k := rapid.IntRange(0, 2).Draw(t, "node")
			n := f.nodes[k]
			switch step := rapid.IntRange(0, 11).Draw(t, "step"); {
			case step == 0 && rapid.IntRange(0, 3).Draw(t, "anew") == 0: // it starts anew
				n.remote.replicas = newReplicas(bytesKept)
				n.remote.replicas.foldAt = foldAt
				if n.sent != nil {
					for _, e := range n.sent.entries {
						f.keys[e.key].lost = true
					}
				}
				for _, k := range n.waiting {
					f.keys[k.key(0)].lost = f.keys[k.key(0)].lost || k.kind == taskProlong
				}
				n.sent, n.waiting = nil, nil
				f.note("node %d anew", k)
			case step == 1 && evicts:
				name := oneOf(t, "evicted", f.names...)
				f.do("DEL", name)
				f.keys[name].model, f.keys[name].lost = limit.Account{}, true
				f.note("evict %s", name)
			case step == 2 && n.sent != nil && rapid.Bool().Draw(t, "lost"): // the answer is lost
				if !n.ran {
					n.waiting = append(n.waiting, n.sent.tasks...)
				}
				for _, e := range n.sent.entries {
					f.keys[e.key].lost = true
				}
				n.sent = nil
				f.note("node %d lost", k)
			case n.sent == nil:
				f.compose(n, oneOf(t, "behind", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, time.Second, 9*time.Second, 12*time.Second, -1))
			case !n.ran:
				f.send(n)
			default:
				f.read(n)
			}
			if n.sent != nil && rapid.Bool().Draw(t, "at once") {
				if !n.ran {
					f.send(n)
				}
				f.read(n)
			}
		}
		for _, n := range f.nodes {
			for round := 0; n.sent != nil || len(n.waiting) > 0; round++ {
				if round > 12 {
					f.fail("a call hangs: %+v", n.waiting[0])
				}
				if n.sent == nil {
					f.composeWaiting(n, 0)
				}
				if !n.ran {
					f.send(n)
				}
				f.read(n)
			}
		}
		for name, k := range f.keys {
			if k.short && !k.lost {
				f.fail("%s expires too early", name)
			}
		}
	})
}

func (f *histories) do(command, key string, args ...string) string {
	c := f.nodes[0].client
	got, err := c.Do(context.Background(), c.B().Arbitrary(command).Keys(f.nodes[0].redisKey(partOf(key), key)).Args(args...).Build()).ToAny()
	if err != nil {
		f.fail("%v", err)
	}
	text, _ := got.(string)
	return text
}

// drawLimits draws limits that change back and forth.
func (f *histories) drawLimits() {
	t := f.T
	f.large = rapid.IntRange(0, 3).Draw(t, "large") == 0
	count := func() int64 {
		if !f.large {
			return oneOf[int64](t, "count", 10, 3, 13, 100, 97)
		}
		return oneOf[int64](t, "count", 10, 1, 3, 13, 1000, 1<<40, 1<<50+7, 1<<53-1)
	}
	shape := func() func(n int64) limit.Limit {
		period := oneOf(t, "period", time.Minute, time.Hour, 24*time.Hour, 999_999_937)
		kind := rapid.IntRange(0, 8).Draw(t, "kind")
		return func(n int64) limit.Limit {
			l := limit.New(n, period)
			switch kind {
			case 0, 1, 2:
				l = l.Using([]limit.Algorithm{limit.GCRA, limit.TokenBucket, limit.LeakyBucket}[kind])
				return l.WithBurst(oneOf(t, "burst", n, 1, 2*n))
			case 3:
				return l.Anchored()
			case 4:
				at := time.Duration(rapid.IntRange(0, 23).Draw(t, "at")) * time.Hour
				return limit.PerDay(n).ResetAt(at, nil)
			case 5:
				return oneOf(t, "calendar", limit.PerHour(n).ResetHourly(0, nil), limit.PerHour(n).ResetHourly(30, nil), limit.PerHour(n).Anchored())
			case 6:
				return l.Using(limit.FixedWindow)
			case 7:
				return l.Using(limit.SlidingCounter)
			default:
				return l.Using(limit.SlidingLog)
			}
		}
	}
	var shapes []func(int64) limit.Limit
	for range rapid.IntRange(1, 3).Draw(t, "shapes") {
		shapes = append(shapes, shape())
	}
	for range rapid.IntRange(1, 3).Draw(t, "sets") {
		var set []limit.Limit
		for range rapid.IntRange(1, 3).Draw(t, "limits") {
			l := shapes[rapid.IntRange(0, len(shapes)-1).Draw(t, "shape")](count())
			if l.Validate() == nil {
				set = append(set, l)
			}
		}
		if len(set) > 0 {
			f.limits = append(f.limits, set)
		}
	}
	if len(f.limits) == 0 {
		f.limits = [][]limit.Limit{{limit.PerMinute(10)}}
	}
	for i, s := range f.limits {
		f.note("limits %d: %v", i, s)
	}
}

// expire drops the keys that are due.
func (f *histories) expire() {
	now := f.clock.Load()
	for name, k := range f.keys {
		last, ok := f.trailer(name)
		if ok && last.due <= now/1e6 {
			f.note("%s expires", name)
			if k.model.FullAt() > now && !f.rewound && !k.short {
				f.fail("%s expires %v too early", name, time.Duration(k.model.FullAt()-now))
			}
			f.do("DEL", name)
			k.model = limit.Account{}
		}
	}
}

func (f *histories) trailer(name string) (trailer, bool) {
	text := f.do("GETRANGE", name, "-40", "-1")
	if text == "" {
		return trailer{}, false
	}
	r := reader{rest: []byte(text)}
	last := r.trailer()
	if r.err != nil {
		f.fail("%s: %v", name, r.err)
	}
	return last, true
}

func (f *histories) amount(l limit.Limit) int64 {
	t := f.T
	c := l.Count()
	if !f.large {
		return oneOf(t, "n", 1, 1, 1, 1, 1, 1, 0, 2, 2, 2, 3, 4, 7, c/2, c-1, c+1)
	}
	return max(oneOf(t, "n", 1, 0, 2, 3, c, c-1, c+1, c/2, l.Burst(), 1<<50-1, 1<<50, 1<<53), 0)
}

func (f *histories) compose(n *historyNode, behind time.Duration) {
	t := f.T
	for range rapid.IntRange(0, 3).Draw(t, "tasks") {
		if len(f.open) > 0 && rapid.Bool().Draw(t, "settle") {
			s := &task{kind: taskSettle}
			for range rapid.IntRange(1, 2).Draw(t, "settled") {
				i := rapid.IntRange(0, len(f.open)-1).Draw(t, "which")
				o := f.open[i]
				if slices.ContainsFunc(s.takes, func(c *chargeReceipt) bool { return c.charge.Key == o.charge.Key }) {
					continue
				}
				f.open = slices.Delete(f.open, i, i+1)
				actual := oneOf(t, "actual", 0, o.N+1, o.N/2, o.N+3, o.N+f.amount(o.charge.Limits[0]))
				if actual != o.N {
					s.takes, s.actual = append(s.takes, o), append(s.actual, actual)
				}
				if len(f.open) == 0 {
					break
				}
			}
			if len(s.takes) > 0 {
				n.waiting = append(n.waiting, s)
			}
			continue
		}
		k := &task{kind: taskTake}
		if rapid.IntRange(0, 9).Draw(t, "refuse") == 0 {
			k.kind = taskRefuse
		}
		for _, name := range f.names {
			if len(k.charges) == 0 || rapid.Bool().Draw(t, "also") {
				limits := oneOf(t, "under", f.limits...)
				n := f.amount(oneOf(t, "like", limits...))
				if rapid.IntRange(0, 19).Draw(t, "none") == 0 {
					limits = nil
				}
				k.charges = append(k.charges, store.Charge{Key: name, Limits: limits, N: n})
			}
		}
		n.waiting = append(n.waiting, k)
	}
	f.composeWaiting(n, behind)
}

func (f *histories) composeWaiting(n *historyNode, behind time.Duration) {
	if len(n.waiting) == 0 {
		return
	}
	n.sent, n.ran = n.remote.compose(n.replicas, n.waiting, f.clock.Load()-int64(behind)), false
	n.waiting = nil
	f.note("node %d composes %v behind", slices.Index(f.nodes, n), behind)
	for _, k := range n.sent.tasks {
		for _, c := range k.charges {
			f.note("  take kind %d %v: %s %d under %v", k.kind, k.taken, c.Key, c.N, c.Limits)
		}
		for i, c := range k.takes {
			if k.kind == taskSettle {
				f.note("  settle %s %d to %d under %v", c.charge.Key, c.N, k.actual[i], c.charge.Limits)
			}
		}
	}
	for _, e := range n.sent.entries {
		f.note("  entry %s spare %d alone %v known %d due %d", e.key, e.spare, e.alone, len(e.known), e.due)
	}
}

// send makes a batch happen, and does to the accounts what it has done.
func (f *histories) send(n *historyNode) {
	c := n.sent
	if err := n.link.direct(c.op); err != nil {
		f.fail("%v", err)
	}
	n.ran, n.after = true, map[string]*limit.Account{}
	status := c.op.answer[0]
	at := c.op.at
	f.note("node %d sends: %d", slices.Index(f.nodes, n), status)
	for _, e := range c.entries {
		k := f.keys[e.key]
		if last, _ := f.trailer(e.key); e.long && last.mark == c.mark && last.length == e.rest.length { // it was written anew
			if err := k.model.Replay(k.model.AppendState(nil), at, c.mark); err != nil {
				f.fail("%v", err)
			}
		}
		for _, o := range operationsOf(nil, e.always) {
			k.model.Do(&o, at, c.mark)
			for _, held := range k.ledger {
				if o.Kind == limit.SettleOperation && held.at == o.Receipt.At && held.n > 0 {
					held.n -= max(o.Receipt.N-o.Actual, 0)
					break
				}
			}
		}
		if status > 0 {
			for _, o := range operationsOf(nil, e.takes) {
				if o.Kind == limit.TakeOperation {
					v := k.model.View(at)
					if said := check(v, o.Limits, at, o.N); !store.Allowed(said) {
						f.fail("%s: %d of %v is too much: %+v", e.key, o.N, o.Limits, said)
					}
				}
				k.model.Do(&o, at, c.mark)
				if o.Kind == limit.TakeOperation {
					k.ledger = append(k.ledger, &charged{at, o.N})
					f.sum(k, at, &o)
				}
			}
		}
		last, ok := f.trailer(e.key)
		if !ok {
			last.due = 0
		} else if text := f.do("GETRANGE", e.key, "-40", "-1"); k.states[text] == nil {
			k.states[text], _ = k.model.AppendBinary(nil)
		}
		full := k.model.FullAt()
		k.short = full > at && last.due < full/1e6
		if k.short {
			f.note("%s expires %v before it is full, in %v", e.key, time.Duration(full-last.due*1e6), time.Duration(last.due*1e6-at))
		}
		n.after[e.key] = k.model.Fork()
	}
}

// sum adds up what takes hold in each window. Debts count for no window, and refunds make room, also if they came too late.
func (f *histories) sum(k *historyKey, at int64, o *limit.Operation) {
	if f.rewound || f.evicts || len(f.limits) > 1 {
		return
	}
	for _, l := range o.Limits {
		since := func(from int64) (all int64) {
			for _, c := range k.ledger {
				if c.at >= from {
					all += c.n
				}
			}
			return all
		}
		all, most := int64(0), l.Count()
		switch l.Algorithm() {
		case limit.SlidingLog:
			all = since(at - int64(l.Period()) + 1)
		case limit.SlidingCounter: // which estimates
		case limit.FixedWindow:
			switch start, _ := l.Window(at); {
			case isAnchored(l): // when it began is not known here
			case l == l.Using(limit.FixedWindow):
				all = since(at - at%int64(l.Period()))
			default:
				all = since(start)
			}
		default:
			for _, c := range k.ledger {
				if n, refilled := since(c.at), l.Burst()+scale(at-c.at, l.Count(), int64(l.Period()), 1)+1; n > refilled {
					f.fail("%d since %d under %v", n, c.at, l)
				}
			}
			continue
		}
		if all > most {
			f.fail("%d under %v", all, l)
		}
	}
}

// read passes the answer to a node.
func (f *histories) read(n *historyNode) {
	c := n.sent
	n.sent = nil
	c.read(c.op.result)
	f.note("node %d reads", slices.Index(f.nodes, n))
	for _, e := range c.entries {
		if e.err != nil {
			f.fail("%s: %v", e.key, e.err)
		}
		got, _ := e.account.AppendBinary(nil)
		if want, ok := f.keys[e.key].states[e.known]; e.known != "" && (!ok || !bytes.Equal(got, want)) {
			f.fail("%s: the replica differs: %v\n%x\n%x", e.key, ok, got, want)
		}
	}
	n.waiting = append(n.waiting, c.prolonging()...)
	for _, k := range c.tasks {
		switch {
		case k.again:
			n.waiting = append(n.waiting, k)
		case k.kind == taskTake && k.taken:
			if !k.allows() {
				f.fail("taken, and denied: %+v", k.each)
			}
			for _, take := range k.takes {
				if take.charge.N > 0 && len(take.charge.Limits) > 0 {
					f.open = append(f.open, take)
				}
			}
		case k.kind == taskTake || k.kind == taskRefuse:
			allowed := true
			var want [][]limit.Decision
			for _, charge := range k.charges {
				v := n.after[charge.Key].View(c.op.at)
				want = append(want, check(v, charge.Limits, c.op.at, charge.N))
				allowed = allowed && store.Allowed(want[len(want)-1])
				withoutTake(v, want[len(want)-1], c.op.at)
			}
			for i := range want {
				if !slices.Equal(want[i], k.each[i]) || allowed && k.kind == taskTake {
					f.fail("%s is denied: %+v; want %+v", k.charges[i].Key, k.each[i], want[i])
				}
			}
		}
	}
}
