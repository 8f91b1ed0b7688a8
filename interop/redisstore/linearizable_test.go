// Package redisstore_test checks histories of callers that share a Redis, with a library
// that knows what linearizable means.
package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A client that is closed leaves it asleep for up to five seconds.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	)
}

// everyKind is one limit of each algorithm, and of each way in which windows begin. None
// begins a window, or drains one, while a test runs.
func everyKind(count int64) map[string]limit.Limit {
	l := limit.New(count, 1000*time.Hour)
	now := time.Now().UTC()
	noon := time.Duration(now.Hour()+12)%24*time.Hour + time.Duration(now.Minute())*time.Minute // as far away as can be
	return map[string]limit.Limit{
		"gcra":            l,
		"token bucket":    l.Using(limit.TokenBucket),
		"leaky bucket":    l.Using(limit.LeakyBucket),
		"fixed window":    l.Using(limit.FixedWindow),
		"anchored":        l.Anchored(),
		"calendar":        limit.PerDay(count).ResetAt(noon, time.UTC),
		"sliding log":     l.Using(limit.SlidingLog),
		"sliding counter": l.Using(limit.SlidingCounter),
	}
}

// charge is so much of one of the two keys.
func charge(key int, l limit.Limit, n int64) store.Charge {
	return store.Charge{Key: fmt.Sprint("model/", key), Limits: []limit.Limit{l}, N: n}
}

// deed is one call: a take of so much of each of two keys, or the settlement of
// one.
type deed struct {
	settles bool
	id      int      // of the take, that is settled
	n       [2]int64 // taken: 0 is not asked for
	actual  [2]int64
}

// verdict is what the answer to a take was.
type verdict struct {
	allowed bool
	left    [2]int64 // of each key that was asked for
}

// counted is what two keys have used, and which takes were settled.
type counted struct {
	used    [2]int64
	settled uint64
}

// sequential is a store that does one thing after another, of two keys of which so
// much is left in the beginning.
func sequential(room int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return counted{} },
		Step: func(state, input, output any) (bool, any) {
			s, d := state.(counted), input.(deed)
			if d.settles {
				return true, s.settle(d)
			}
			answer := output.(verdict)
			allowed := true
			for i, n := range d.n {
				allowed = allowed && (n == 0 || n <= room-s.used[i])
			}
			for i, n := range d.n {
				if allowed {
					s.used[i] += n
				}
				if n > 0 && answer.left[i] != max(room-s.used[i], 0) {
					return false, s
				}
			}
			return allowed == answer.allowed, s
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	}
}

func (s counted) settle(d deed) counted {
	if s.settled>>d.id&1 == 1 {
		return s
	}
	s.settled |= 1 << d.id
	for i, n := range d.n {
		if n > 0 {
			s.used[i] += d.actual[i] - n
		}
	}
	return s
}

// history is calls as they were made, by several callers at a time.
type history struct {
	mu    sync.Mutex
	calls []porcupine.Operation
	start time.Time
	takes atomic.Int64
}

func (h *history) record(caller int, d deed, call func() verdict) verdict {
	called := time.Since(h.start)
	answer := call()
	returned := time.Since(h.start)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{
		ClientId: caller, Input: d, Call: int64(called), Output: answer, Return: int64(returned),
	})
	return answer
}

const (
	room    = 12
	filled  = 1000 // before, so that a bucket holds more than is given back
	callers = 9
)

// acts lets a caller take and settle at random: for less, for more, for nothing,
// and twice.
func (h *history) acts(t *testing.T, caller int, s store.Store, l limit.Limit, proxy *redistest.Proxy) {
	random := rand.New(rand.NewPCG(1, uint64(caller)))
	for range 7 {
		switch random.IntN(6) {
		case 0:
			proxy.DropAnswer()
		case 1:
			proxy.ResetAfter(random.IntN(50))
		}
		d := deed{id: int(h.takes.Add(1)) - 1}
		switch which := random.IntN(3); which {
		case 2:
			d.n = [2]int64{1 + random.Int64N(4), 1 + random.Int64N(4)}
		default:
			d.n[which] = 1 + random.Int64N(4)
		}
		var r store.Receipt
		h.record(caller, d, func() (answer verdict) {
			r, answer = takes(t, s, l, d)
			return answer
		})
		if r == nil || random.IntN(5) == 0 {
			continue
		}
		d.settles = true
		var amounts []int64
		for i, n := range d.n {
			if n > 0 {
				d.actual[i] = random.Int64N(n + 2)
				amounts = append(amounts, d.actual[i])
			}
		}
		for range 1 + random.IntN(2) {
			h.record(caller, d, func() verdict {
				if err := s.Settle(t.Context(), r, amounts); err != nil {
					t.Error(err)
				}
				return verdict{}
			})
		}
	}
}

// takes does a deed that is a take.
func takes(t *testing.T, s store.Store, l limit.Limit, d deed) (store.Receipt, verdict) {
	var charges []store.Charge
	for i, n := range d.n {
		if n > 0 {
			charges = append(charges, charge(i, l, n))
		}
	}
	r, decisions, err := s.Take(t.Context(), charges)
	if err != nil {
		t.Error(err)
	}
	answer := verdict{allowed: r != nil}
	for i, n := range d.n {
		if n > 0 && len(decisions) > 0 {
			answer.left[i], decisions = decisions[0].Remaining, decisions[1:]
		}
	}
	return r, answer
}

// Whatever many callers at several nodes do at a time, while answers get lost: it
// is as if they had done one thing after another.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range everyKind(filled + room) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, server.Addr)
			h := &history{start: time.Now()}
			var nodes []store.Store
			for range 3 {
				node, err := redisstore.New(redisstore.Config{URL: proxy.URL(), Namespace: t.Name(), Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { node.Close() })
				nodes = append(nodes, node)
			}
			full := []store.Charge{charge(0, l, filled), charge(1, l, filled)}
			if r, decisions, err := nodes[0].Take(t.Context(), full); err != nil || r == nil {
				t.Fatalf("%v, %v of %+v", decisions, err, full)
			}
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() { h.acts(t, caller, nodes[caller%len(nodes)], l, proxy) })
			}
			all.Wait()
			if t.Failed() {
				return
			}
			model := sequential(room)
			if got := porcupine.CheckOperationsTimeout(model, h.calls, time.Minute); got != porcupine.Ok {
				t.Fatalf("%v: %+v", got, h.calls)
			}

			// The same with one more take that has passed than was left.
			over := slices.MaxFunc(h.calls, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) }).Return + 1
			extra := porcupine.Operation{Input: deed{id: 63, n: [2]int64{room + 1}}, Call: over, Output: verdict{allowed: true}, Return: over + 1}
			if got := porcupine.CheckOperationsTimeout(model, append(h.calls, extra), time.Minute); got != porcupine.Illegal {
				t.Errorf("a history with one take too many is %v", got)
			}
		})
	}
}

// The model refuses what a store must not do.
func TestSequentialModel(t *testing.T) {
	t.Parallel()
	call := func(from, to int64, d deed, answer verdict) porcupine.Operation {
		return porcupine.Operation{Input: d, Call: from, Output: answer, Return: to}
	}
	first := deed{id: 0, n: [2]int64{8}}
	second := deed{id: 1, n: [2]int64{8}}
	both := deed{id: 2, n: [2]int64{8, 1}}
	back := deed{id: 0, n: [2]int64{8}, settles: true, actual: [2]int64{2}}
	for _, c := range []struct {
		name  string
		calls []porcupine.Operation
		want  bool
	}{
		{"one passes, one does not", []porcupine.Operation{
			call(0, 1, first, verdict{true, [2]int64{4}}), call(2, 3, second, verdict{false, [2]int64{4}}),
		}, true},
		{"the other way around, at a time", []porcupine.Operation{
			call(0, 3, first, verdict{false, [2]int64{4}}), call(1, 2, second, verdict{true, [2]int64{4}}),
		}, true},
		{"both pass", []porcupine.Operation{
			call(0, 3, first, verdict{true, [2]int64{4}}), call(1, 2, second, verdict{true, [2]int64{4}}),
		}, false},
		{"neither passes", []porcupine.Operation{
			call(0, 3, first, verdict{false, [2]int64{4}}), call(1, 2, second, verdict{false, [2]int64{4}}),
		}, false},
		{"the later one passes before the earlier", []porcupine.Operation{
			call(0, 1, first, verdict{false, [2]int64{4}}), call(2, 3, second, verdict{true, [2]int64{4}}),
		}, false},
		{"given back once", []porcupine.Operation{
			call(0, 1, first, verdict{true, [2]int64{4}}), call(2, 3, back, verdict{}), call(4, 5, back, verdict{}),
			call(6, 7, second, verdict{true, [2]int64{2}}),
		}, true},
		{"given back twice", []porcupine.Operation{
			call(0, 1, first, verdict{true, [2]int64{4}}), call(2, 3, back, verdict{}), call(4, 5, back, verdict{}),
			call(6, 7, second, verdict{true, [2]int64{8}}),
		}, false},
		{"a denial that takes of the other key", []porcupine.Operation{
			call(0, 1, first, verdict{true, [2]int64{4}}), call(2, 3, both, verdict{false, [2]int64{4, 12}}),
			call(4, 5, deed{id: 3, n: [2]int64{0, 12}}, verdict{false, [2]int64{0, 11}}),
		}, false},
	} {
		if got := porcupine.CheckOperations(sequential(room), c.calls); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
