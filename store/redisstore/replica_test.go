package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Callers of several nodes take from two keys at once. Exactly the limit passes, and what others charge hardly ever keeps
// a call from its answer.
func TestNodesContend(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	const nodes, callers, each, count = 4, 16, 20, 1000 // of 1280 takes
	for name, l := range everyKind(count) {
		t.Run(name, func(t *testing.T) {
			var stores [nodes]*remote
			for i := range stores {
				stores[i] = newRemote(dialed(t, server.URL()), "contend-"+name, patient, nil, nil)
				defer stores[i].Close()
			}
			charges := append(one("model/tokens", l, 1), one("model/requests", l.WithCount(10*count), 1)...)
			mustTake(t, stores[0], charges)
			serverDo(t, server, "CONFIG", "RESETSTAT")
			var passed atomic.Int64
			passed.Store(1)
			var all sync.WaitGroup
			for i := range nodes * callers {
				all.Go(func() {
					for range each {
						receipt, decisions, err := stores[i%nodes].Take(t.Context(), charges)
						if err != nil {
							t.Error(err)
						} else if (receipt != nil) != store.Allowed(decisions) {
							t.Errorf("%v, %+v", receipt, decisions)
						} else if receipt != nil {
							passed.Add(1)
						}
					}
				})
			}
			all.Wait()
			if n := passed.Load(); n != count && !(isBucket(l) && n == count+1) { // a bucket leaks
				t.Errorf("%d have passed of %d", n, count)
			}
			if calls := scriptCalls(t, server); calls > nodes*callers*each/2 {
				t.Errorf("%d takes were %d scripts", nodes*callers*each, calls)
			}
			if decisions, err := stores[1].Peek(t.Context(), charges); err != nil || decisions[1].Used < count-1 || decisions[1].Used > count+1 {
				t.Errorf("%+v, %v; want %d used of the second key", decisions, err, count)
			}
		})
	}
}

// As long as there is room, one take is one script, whatever other nodes have charged meanwhile.
func TestTakesNeedNoSecondScript(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	var nodes [3]*remote
	for i := range nodes {
		nodes[i] = newRemote(dialed(t, server.URL()), "scripts", patient, nil, nil)
		defer nodes[i].Close()
		mustTake(t, nodes[i], one("key", limit.PerDay(1000).Using(limit.SlidingLog), 1))
	}
	before := scriptCalls(t, server)
	for i := range 60 {
		mustTake(t, nodes[i%3], one("key", limit.PerDay(1000).Using(limit.SlidingLog), 5))
	}
	if calls := scriptCalls(t, server) - before; calls > 62 { // an account that has become long is written anew
		t.Errorf("60 takes of three nodes were %d scripts", calls)
	}
}

// history is what happens to a key at several nodes, and to an account in memory.
type history struct {
	*rapid.T
	nodes  []*remote
	key    string
	model  limit.Account
	now    int64
	limits [][]limit.Limit
	open   []openTake
}

type openTake struct {
	stored store.Receipt
	known  limit.Receipt
	limits []limit.Limit
}

// Several nodes and an account in memory agree, whatever the history: limits that change, a clock that goes back, debts and
// refunds, replicas that are dropped, accounts that are written anew, and servers that forget a key.
func TestNodesAgreeWithAnAccount(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	clock.Store(noon.UnixNano())
	server := redistest.New(t)
	var nodes []*remote
	for range 3 {
		r := newRemote(dialed(t, server.URL()), "agree", patient, clock.Load, nil)
		defer r.Close()
		r.replicas.foldAt = 300 // accounts are written anew all the time
		nodes = append(nodes, r)
	}
	histories := 0
	rapid.Check(t, func(t *rapid.T) {
		histories++
		h := &history{T: t, nodes: nodes, key: fmt.Sprint("key", histories), now: clock.Load()}
		minute, hour := limit.PerMinute(20).Using(limit.SlidingLog), limit.PerHour(60).Using(limit.SlidingLog)
		h.limits = oneOf(t, "kinds",
			[][]limit.Limit{{minute}, {minute, hour}, {hour.WithCount(30)}},
			[][]limit.Limit{{limit.PerMinute(20).Using(limit.FixedWindow)}, {limit.PerMinute(9).Using(limit.FixedWindow)}, {limit.PerMinute(20).Using(limit.FixedWindow), hour}},
			[][]limit.Limit{{limit.PerMinute(20)}, {limit.PerMinute(31)}, {limit.PerHour(40).Anchored(), limit.PerMinute(20)}},
			[][]limit.Limit{{limit.PerMinute(20).Using(limit.SlidingCounter)}, {limit.PerMinute(33).Using(limit.SlidingCounter), limit.PerDay(50).ResetAt(0, nil)}},
		)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.now += rapid.SampledFrom([]int64{0, 1, int64(time.Second), int64(20 * time.Second), int64(3 * time.Hour), -1, -int64(time.Minute)}).Draw(t, "later")
			clock.Store(h.now)
			r := oneOf(t, "node", nodes...)
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				r.replicas.drop(h.key)
			case 1, 2:
				h.settle(r)
			default:
				h.take(r)
			}
		}
	})
}

// drop drops the replica of a key.
func (s *replicas) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.byKey[key]; r != nil {
		r.forget()
	}
}

func (h *history) take(r *remote) {
	limits := oneOf(h.T, "limits", h.limits...)
	n := rapid.Int64Range(0, 9).Draw(h.T, "n")
	if !h.model.Fits(limits, h.now) {
		n = max(n, 1) // a take of zero may leave it to the next one to fit the account
	}
	want := check(h.model.View(h.now), limits, h.now, n)
	allowed := store.Allowed(want)
	if !allowed {
		view := h.model.View(h.now)
		view.Fit(limits, h.now)
		withoutTake(view, want, h.now)
	}
	if !allowed && !h.model.Fits(limits, h.now) { // else nothing is written, also not that time has passed
		h.model.Do(&limit.Operation{Kind: limit.FitOperation, Limits: limits}, h.now, 0)
	}
	receipt, got, err := r.Take(context.Background(), []store.Charge{{Key: h.key, Limits: limits, N: n}})
	if err != nil || allowed != (receipt != nil) || !slices.Equal(got, want) {
		h.Fatalf("%d of %v at %d: %+v, %v; want %+v", n, limits, h.now, got, err, want)
	}
	if receipt != nil && n > 0 {
		h.model.Fit(limits, h.now)
		h.open = append(h.open, openTake{receipt, h.model.Take(limits, h.now, n), limits})
	}
}

func (h *history) settle(r *remote) {
	if len(h.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.open)-1).Draw(h.T, "which")
	o := h.open[i]
	h.open = slices.Delete(h.open, i, i+1)
	actual := rapid.Int64Range(0, 20).Draw(h.T, "actual")
	own := o.stored.(*receipt)
	if err := r.Settle(context.Background(), &receipt{remote: r, takes: own.takes}, []int64{actual}); err != nil {
		h.Fatal(err)
	}
	h.model.Settle(o.limits, o.known, h.now, actual)
}

// A long account is written anew, by any node, and all nodes go on from there.
func TestLongAccountsAreWrittenAnew(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	var nodes [2]*remote
	for i := range nodes {
		nodes[i] = newRemote(dialed(t, server.URL()), "long", patient, nil, nil)
		defer nodes[i].Close()
	}
	l := limit.PerDay(1 << 40).Using(limit.FixedWindow)
	name := nodes[0].redisKey(partOf("key"), "key")
	longest := int64(0)
	for i := range 600 {
		r := mustTake(t, nodes[i%2], one("key", l, 1))
		if err := nodes[i%2].Settle(t.Context(), r, []int64{2}); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, serverDo(t, server, "STRLEN", name).(int64))
	}
	if longest < foldAt || longest > 3*foldAt {
		t.Errorf("the account was %d bytes long", longest)
	}
	wantLeft(t, nodes[0], "key", l, 1<<40-1200)
}

// A node knows accounts of so many bytes, and drops those that it has not used for long.
func TestReplicasAreBounded(t *testing.T) {
	t.Parallel()
	r := newRemote(dialed(t, redistest.New(t).URL()), "bounded", patient, nil, nil)
	defer r.Close()
	r.replicas.most = 20 * replicaBytes
	l := limit.PerDay(10).Using(limit.SlidingLog)
	for i := range 100 {
		mustTake(t, r, one(fmt.Sprint("key", i), l, 4))
	}
	s := r.replicas
	if len(s.byKey) > 20 || s.order.Len() != len(s.byKey) || s.size > s.most {
		t.Errorf("%d replicas of %d bytes", len(s.byKey), s.size)
	}
	for i := range 100 { // those that were dropped are read
		wantLeft(t, r, fmt.Sprint("key", i), l, 6)
	}
}

// Bytes that were cut off, or changed, are an error or another account, and no panic.
func TestForeignBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a limit.Account
		text := []byte{version}
		length := int64(1)
		for i := range rapid.IntRange(1, 5).Draw(t, "records") {
			l := anyLimit(t)
			operations := limit.AppendOperations(nil, []limit.Operation{{Kind: limit.TakeOperation, Limits: []limit.Limit{l}, N: 1}})
			if i == 2 {
				operations = a.AppendState(nil)
			}
			var w writer
			w.bytes(operations)
			length += int64(len(w)) + trailerBytes
			w.number(noon.UnixNano() + int64(i))
			last := trailer{mark: uint64(i + 1), total: int64(i), length: length}
			last.appendRest(&w)
			text = append(text, w...)
		}
		read := func(text []byte) (*replica, error) {
			r := new(replica)
			return r, r.read(text, true, 1<<63|1, nil) // a mark that is none of theirs, also after a change
		}
		if r, err := read(text); err != nil || r.last.length != int64(len(text)) {
			t.Fatalf("%+v, %v", r.last, err)
		}
		cut := rapid.IntRange(1, len(text)-1).Draw(t, "cut")
		if r, err := read(text[:cut]); err == nil && r.last.length != max(int64(cut), 0) && cut > 1 {
			t.Fatal("an account that was cut off is no fault")
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		text[at] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		read(text)
	})
}

// An account of another version is an error that names the key, and charges nothing.
func TestAnotherVersion(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	r := newRemote(dialed(t, server.URL()), "version", patient, nil, nil)
	defer r.Close()
	name := r.redisKey(partOf("key"), "key")
	serverDo(t, server, "SET", name, "\x01"+strings.Repeat("\x00", 200))
	for range 2 {
		if _, _, err := r.Take(t.Context(), one("key", limit.PerDay(10), 1)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; want an error that names %s", err, name)
		}
	}
}

// An older string that a replica has served since a failover, and to which others have appended more bytes than were lost,
// is not taken for the one that a node knows.
func TestFailedOverToAnOlderString(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	var nodes [2]*remote
	for i := range nodes {
		nodes[i] = newRemote(dialed(t, server.URL()), "older", patient, nil, nil)
		defer nodes[i].Close()
	}
	l := limit.PerDay(10).Using(limit.SlidingLog)
	name := nodes[0].redisKey(partOf("key"), "key")
	mustTake(t, nodes[0], one("key", l, 1))
	wantLeft(t, nodes[1], "key", l, 9)
	before := serverDo(t, server, "GET", name).(string)
	mustTake(t, nodes[0], one("key", l, 2))
	serverDo(t, server, "SET", name, before)
	mustTake(t, nodes[1], one("key", l, 6)) // as many bytes as were lost
	mustTake(t, nodes[1], one("key", l, 1))
	if receipt, decisions, err := nodes[0].Take(t.Context(), one("key", l, 3)); err != nil || receipt != nil || decisions[0].Used != 8 {
		t.Errorf("%+v, %v; want 8 used", decisions, err)
	}
	mustTake(t, nodes[0], one("key", l, 2))
	wantLeft(t, nodes[1], "key", l, 0)
}

// A take of several nodes is denied as of what Redis has, whatever a node knew: what others have given back counts, and what
// they have used beyond their takes.
func TestSettlementsOfOthersCount(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range everyKind(10) {
		t.Run(name, func(t *testing.T) {
			var nodes [2]*remote
			for i := range nodes {
				nodes[i] = newRemote(dialed(t, server.URL()), "others-"+name, patient, nil, nil)
				defer nodes[i].Close()
			}
			first := mustTake(t, nodes[0], one("key", l, 4))
			second := mustTake(t, nodes[0], one("key", l, 4))
			wantLeft(t, nodes[1], "key", l, 2)
			if err := nodes[0].Settle(t.Context(), first, []int64{1}); err != nil {
				t.Fatal(err)
			}
			third := mustTake(t, nodes[1], one("key", l, 4)) // of 5
			if err := nodes[0].Settle(t.Context(), second, []int64{5}); err != nil {
				t.Fatal(err)
			}
			if r, decisions, err := nodes[1].Take(t.Context(), one("key", l, 1)); err != nil || r != nil {
				t.Fatalf("%+v, %v: nothing is left", decisions, err)
			}
			if err := nodes[0].Settle(t.Context(), &receipt{remote: nodes[0], takes: third.(*receipt).takes}, []int64{0}); err != nil {
				t.Fatal(err)
			}
			wantLeft(t, nodes[1], "key", l, 4)
		})
	}
}

// Calls of a key that holds something else do not keep the calls of other keys from their takes, although they share batches.
func TestForeignKeysDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	r := newRemote(dialed(t, server.URL()), "foreign", patient, nil, nil)
	defer r.Close()
	l := limit.PerDay(1000).Using(limit.SlidingLog)
	serverDo(t, server, "SET", r.redisKey(partOf("foreign"), "foreign"), "something else")
	mustTake(t, r, one("key", l, 1))
	before := scriptCalls(t, server)
	var all sync.WaitGroup
	var ended atomic.Bool
	for range 8 {
		all.Go(func() {
			for !ended.Load() {
				if _, _, err := r.Take(t.Context(), one("foreign", l, 1)); err == nil {
					t.Error("a key that holds something else is charged")
				}
			}
		})
	}
	for range 50 {
		mustTake(t, r, one("key", l, 1))
	}
	if calls := scriptCalls(t, server) - before; calls > 150 {
		t.Errorf("50 takes beside others were %d scripts", calls)
	}
	ended.Store(true)
	all.Wait()
}

// A node whose idea of the server's time is too late decides nothing by it.
func TestDecidedTooEarly(t *testing.T) {
	t.Parallel()
	var ahead atomic.Bool
	now := noon.UnixNano()
	r := newRemote(dialed(t, redistest.New(t).URL()), "early", patient, func() int64 {
		if ahead.CompareAndSwap(true, false) { // the node asks first
			return now + int64(time.Minute)
		}
		return now
	}, nil)
	defer r.Close()
	l := limit.PerMinute(10).Using(limit.SlidingLog)
	mustTake(t, r, one("key", l, 10))
	now += int64(30 * time.Second)
	ahead.Store(true)
	if receipt, decisions, err := r.Take(t.Context(), one("key", l, 1)); err != nil || receipt != nil || decisions[0].RetryAfter != 30*time.Second {
		t.Errorf("%+v, %v; want a denial for 30 s", decisions, err)
	}
	if ahead.Load() {
		t.Error("the node has not asked for the time")
	}
}

// twoNodes returns two nodes of a server.
func twoNodes(t *testing.T) (*redistest.Server, [2]*remote) {
	server := redistest.New(t)
	var nodes [2]*remote
	for i := range nodes {
		nodes[i] = newRemote(dialed(t, server.URL()), "two", patient, nil, nil)
		t.Cleanup(func() { nodes[i].Close() })
	}
	return server, nodes
}

// An account can be read however much is charged by nodes of which none knows what the other has charged last.
func TestTotalsAreExact(t *testing.T) {
	t.Parallel()
	_, nodes := twoNodes(t)
	l := limit.PerDay(10).Using(limit.SlidingLog)
	for i := range 20 {
		r := nodes[i%2]
		debt, err := r.owe(t.Context(), store.Charge{Key: "key", Limits: []limit.Limit{l}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(t.Context(), debt, []int64{barrier}); err != nil {
			t.Fatalf("debt %d: %v", i, err)
		}
	}
	if receipt, decisions, err := nodes[0].Take(t.Context(), one("key", l, 1)); err != nil || receipt != nil || decisions[0].Used != 20*barrier {
		t.Errorf("%+v, %v; want a denial", decisions, err)
	}
}

// An account is written anew also if two nodes take by turns, so that neither knows all of it.
func TestLongAccountsOfNodesByTurns(t *testing.T) {
	t.Parallel()
	server, nodes := twoNodes(t)
	l := limit.PerDay(1 << 40).Using(limit.FixedWindow)
	before, longest := scriptCalls(t, server), int64(0)
	for i := range 1500 {
		mustTake(t, nodes[i%2], one("key", l, 1))
		longest = max(longest, serverDo(t, server, "STRLEN", nodes[0].redisKey(partOf("key"), "key")).(int64))
	}
	if longest > 5*foldAt {
		t.Errorf("the account was %d bytes long", longest)
	}
	if calls := scriptCalls(t, server) - before; calls > 1520 {
		t.Errorf("1500 takes were %d scripts", calls)
	}
	wantLeft(t, nodes[0], "key", l, 1<<40-1500)
}

// Replicas of accounts that no answer came of are bounded, too.
func TestReplicasWithoutAnswersAreBounded(t *testing.T) {
	t.Parallel()
	_, nodes := twoNodes(t)
	r := nodes[0]
	r.replicas.most = 20 * replicaBytes
	for i := range 100 {
		r.compose(r.replicas, []*task{{kind: taskTake, charges: one(fmt.Sprint("key", i), limit.PerDay(10), 1)}}, r.link.now())
	}
	if n := len(r.replicas.byKey); n > 20 {
		t.Errorf("%d replicas", n)
	}
}

// livesLongEnough fails unless the key is there until its account is full.
func livesLongEnough(t *testing.T, server *redistest.Server, r *remote, l limit.Limit) {
	t.Helper()
	decisions, err := r.Peek(t.Context(), one("key", l, 0))
	if err != nil {
		t.Fatal(err)
	}
	left := time.Duration(serverDo(t, server, "PTTL", r.redisKey(partOf("key"), "key")).(int64)) * time.Millisecond
	if left < decisions[0].ResetAfter-time.Second {
		t.Errorf("the key expires in %v, and is full in %v", left, decisions[0].ResetAfter)
	}
}

// A bucket whose limit was lowered drains for longer, and so long its key lives.
func TestExpiryOfLoweredLimits(t *testing.T) {
	t.Parallel()
	was, is := limit.PerHour(1000), limit.PerHour(10)
	t.Run("denied", func(t *testing.T) {
		server, nodes := twoNodes(t)
		mustTake(t, nodes[0], one("key", was, 900))
		if receipt, decisions, err := nodes[1].Take(t.Context(), one("key", is, 1)); err != nil || receipt != nil {
			t.Fatalf("%+v, %v; want a denial", decisions, err)
		}
		livesLongEnough(t, server, nodes[0], is)
	})
	t.Run("taken", func(t *testing.T) {
		server, nodes := twoNodes(t)
		mustTake(t, nodes[0], one("key", was, 9))
		mustTake(t, nodes[0], one("key", is, 1))
		livesLongEnough(t, server, nodes[0], is)
	})
}

// So does the key of a debt whose take was under a higher limit.
func TestExpiryOfDebtsUnderLoweredLimits(t *testing.T) {
	t.Parallel()
	server, nodes := twoNodes(t)
	was, is := limit.PerHour(1000), limit.PerHour(10)
	first := mustTake(t, nodes[0], one("key", was, 1))
	mustTake(t, nodes[0], one("key", is, 1))
	if err := nodes[0].Settle(t.Context(), first, []int64{101}); err != nil {
		t.Fatal(err)
	}
	livesLongEnough(t, server, nodes[0], is)
}

// Debts in the same batch keep no take, or denial, from fitting the account to limits that have changed.
func TestLimitsChangeBesideDebts(t *testing.T) {
	t.Parallel()
	_, nodes := twoNodes(t)
	r := nodes[0]
	was := limit.PerDay(1000).Using(limit.FixedWindow)
	for i, n := range []int64{1, 5000} {
		is := was.WithCount(2000 + int64(i))
		first := mustTake(t, r, one("key", was, 1)).(*receipt)
		c := r.compose(r.replicas, []*task{
			{kind: taskTake, charges: one("key", is, n)},
			{kind: taskSettle, takes: first.takes, actual: []int64{3}},
		}, r.link.now())
		if err := r.directly(c); err != nil {
			t.Fatal(err)
		}
		if c.tasks[0].taken != (n == 1) || c.tasks[0].again {
			t.Errorf("%d: %+v", n, c.tasks[0])
		}
		was = is
	}
	wantLeft(t, r, "key", was, 2001-7)
}

// A settlement of several accounts happens once, and is booked once, although one of the keys holds something else by then.
func TestSettledOnceBesideForeignKeys(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: patient})
	l := limit.PerDay(100).Using(limit.SlidingLog)
	taken := mustTake(t, s, append(one("key", l, 5), one("foreign", l, 5)...))
	serverDo(t, server, "SET", inside(s).books.remote.redisKey(partOf("foreign"), "foreign"), "something else")
	e := books.Entry{Owner: books.Owner{Project: "p", Model: "m"}, Amounts: books.Amounts{books.Requests: 1}}
	if err := inside(s).SettleBooked(t.Context(), taken, []int64{8, 8}, &e); err == nil {
		t.Error("the key that holds something else is no error")
	}
	for range 2 {
		if err := inside(s).SettleBooked(t.Context(), taken, []int64{8, 8}, &e); err != nil {
			t.Error(err)
		}
	}
	wantLeft(t, s, "key", l, 92)
	sum, err := inside(s).ReadBooks(t.Context(), books.Query{})
	if err != nil || sum.Total != e.Amounts {
		t.Errorf("%v, %v; want %v", sum.Total, err, e.Amounts)
	}
}

// A debt of a node that does not know the server's time yet, or whose batch was sent again, counts for as long as any.
func TestExpiryOfLateDebts(t *testing.T) {
	t.Parallel()
	server, nodes := twoNodes(t)
	r, l := nodes[0], limit.New(10, 20*time.Second).Using(limit.SlidingLog)
	wantLeft(t, r, "key", l, 10)
	now := r.link.now()
	debt := &chargeReceipt{Receipt: limit.Receipt{At: now}, charge: store.Charge{Key: "key", Limits: []limit.Limit{l}}}
	if err := r.directly(r.compose(newReplicas(0), []*task{{kind: taskSettle, takes: []*chargeReceipt{debt}, actual: []int64{5}}}, now-int64(45*time.Second))); err != nil {
		t.Fatal(err)
	}
	livesLongEnough(t, server, r, l)
}

// An account that another node takes from again and again keeps tasks about other accounts from their takes once at most.
func TestContendedAccountsKeepOthersOnce(t *testing.T) {
	t.Parallel()
	_, nodes := twoNodes(t)
	r, other := nodes[0], nodes[1]
	l := limit.PerDay(10)
	b := &batch{queue: r.link.queue(0)}
	for i := range 4 {
		charges := one(fmt.Sprint("key", i), l, 1)
		if i == 3 { // two accounts
			charges = append(charges, one("key2", l, 1)...)
		}
		b.ops = append(b.ops, &op{task: &task{kind: taskTake, charges: charges}})
		mustTake(t, r, charges) // so that the node knows them
	}
	round := func(contended string, requests int) {
		t.Helper()
		mustTake(t, other, one(contended, l, 9))
		r.composeBatch(b)
		if len(b.requests) != requests {
			t.Errorf("%d requests, not %d", len(b.requests), requests)
		}
		for _, o := range b.requests {
			if err := r.link.direct(o); err != nil {
				t.Fatal(err)
			}
			o.late(o.result)
		}
		b.ops = slices.DeleteFunc(b.ops, func(o *op) bool { return !o.task.again })
	}
	tasks := []*task{b.ops[0].task, b.ops[1].task, b.ops[2].task, b.ops[3].task}
	round("key0", 1)
	if len(b.ops) != 3 {
		t.Errorf("%d tasks go again, not 3", len(b.ops))
	}
	round("key1", 2)
	if len(b.ops) != 0 {
		t.Errorf("%d tasks go again, not 0", len(b.ops))
	}
	for i, want := range []bool{false, false, true, true} {
		if tasks[i].taken != want {
			t.Errorf("%d: taken is %v", i, !want)
		}
	}
}

// Calls of two keys whose limits are those of each other's do not change these back and forth for ever.
func TestDenialsUnderCrossedLimits(t *testing.T) {
	t.Parallel()
	_, nodes := twoNodes(t)
	r := nodes[0]
	a, b := limit.PerDay(3).Using(limit.FixedWindow), limit.PerDay(4).Using(limit.FixedWindow)
	under := func(first, second limit.Limit, n int64) []store.Charge {
		return append(one("key/1", first, n), one("key/2", second, n)...)
	}
	mustTake(t, r, under(a, a, 1))
	waiting := []*task{{kind: taskTake, charges: under(a, b, 9)}, {kind: taskTake, charges: under(b, a, 9)}}
	for i := 0; len(waiting) > 0; i++ {
		if i > 3 {
			t.Fatalf("%d calls have no answer", len(waiting))
		}
		c := r.compose(r.replicas, waiting, r.link.now())
		if err := r.directly(c); err != nil {
			t.Fatal(err)
		}
		waiting = slices.DeleteFunc(waiting, func(k *task) bool { return !k.again })
	}
}

// An account can be read however long its debts last.
func TestTimesAreExact(t *testing.T) {
	t.Parallel()
	_, nodes := twoNodes(t)
	l := limit.New(1, 30*24*time.Hour)
	for i := range 2100 {
		r := nodes[i%2]
		debt, err := r.owe(t.Context(), store.Charge{Key: "key", Limits: []limit.Limit{l}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(t.Context(), debt, []int64{1 << 40}); err != nil {
			t.Fatalf("debt %d: %v", i, err)
		}
	}
}

// So does the key of a debt of a node that does not know yet that the limit was lowered.
func TestExpiryOfDebtsUnderLimitsLoweredByOthers(t *testing.T) {
	t.Parallel()
	server, nodes := twoNodes(t)
	was, is := limit.PerHour(1000), limit.PerHour(10)
	first := mustTake(t, nodes[0], one("key", was, 1))
	mustTake(t, nodes[1], one("key", is, 1))
	if err := nodes[0].Settle(t.Context(), first, []int64{101}); err != nil {
		t.Fatal(err)
	}
	livesLongEnough(t, server, nodes[0], is)
}

// A node decides on accounts that are larger together than what it keeps.
func TestReplicasOfOneCallAreKept(t *testing.T) {
	t.Parallel()
	_, nodes := twoNodes(t)
	l := limit.PerDay(10).Using(limit.SlidingLog)
	charges := append(one("key/1", l, 1), one("key/2", l, 1)...)
	mustTake(t, nodes[0], charges)
	r := nodes[1]
	r.replicas.most = replicaBytes
	waiting := &task{kind: taskTake, charges: charges, again: true}
	for range 2 {
		if err := r.directly(r.compose(r.replicas, []*task{waiting}, r.link.now())); err != nil {
			t.Fatal(err)
		}
	}
	if !waiting.taken {
		t.Error("a call has no answer")
	}
}

// A debt of a take that was evicted counts what the take had left in the bucket. What is denied because of that is not taken.
func TestDebtsOfEvictedTakes(t *testing.T) {
	t.Parallel()
	server, nodes := twoNodes(t)
	r, l := nodes[0], limit.PerHour(10)
	first := mustTake(t, r, one("key", l, 9)).(*receipt)
	serverDo(t, server, "DEL", r.redisKey(partOf("key"), "key"))
	wantLeft(t, r, "key", l, 10)
	take := &task{kind: taskTake, charges: one("key", l, 3)}
	c := r.compose(r.replicas, []*task{{kind: taskSettle, takes: first.takes, actual: []int64{10}}, take}, r.link.now())
	if err := r.directly(c); err != nil {
		t.Fatal(err)
	}
	if take.taken != store.Allowed(take.each[0]) {
		t.Errorf("taken %v, %+v", take.taken, take.each)
	}
}
