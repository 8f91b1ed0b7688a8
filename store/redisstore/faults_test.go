package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// fault is how long a slow answer takes. No call waits for half of it: that is far longer than all timeouts of a call, even
// on a machine that has little time for the test.
const fault = 40 * time.Second

var faultsOfTheWay = map[string]func(*redistest.Proxy){
	"cut":            (*redistest.Proxy).Cut,
	"slow":           func(p *redistest.Proxy) { p.Delay(fault) },
	"half open":      (*redistest.Proxy).Stall,
	"answers vanish": (*redistest.Proxy).StallAnswers,
	"reset, half open": func(p *redistest.Proxy) {
		p.ResetAfter(3)
		p.Stall()
	},
}

// node is a store with its events.
type node struct {
	*Store
	mu     sync.Mutex
	events []store.Event
}

func newNode(t *testing.T, url string, cfg Config) *node {
	t.Helper()
	n := new(node)
	cfg.OnEvent = func(e store.Event) {
		if e.Kind == store.Unsaved { // no server of these tests keeps anything
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.events = append(n.events, e)
	}
	n.Store = opened(t, url, cfg)
	return n
}

func (n *node) fallback() *fallback { return n.top.(*fallback) }

func (n *node) link() *link { return linkOf(n.Store) }

// opened returns a store in the server at a URL, which is closed when the test ends. To connect takes as long as it does on
// a busy machine, unless the URL has parameters.
func opened(t testing.TB, url string, cfg Config) *Store {
	t.Helper()
	cfg.URL = url
	if !strings.Contains(url, "?") {
		cfg.URL += "?dial_timeout=10s"
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func linkOf(s *Store) *link { return s.top.(*fallback).below.(*remote).link }

// awaitBack waits until a store that has lost Redis has it back.
func awaitBack(s *Store) {
	l := linkOf(s)
	l.mu.Lock()
	err, healed := l.breakers[0].err, l.breakers[0].healed
	l.mu.Unlock()
	if err != nil {
		<-healed
	}
}

// awaitHealed waits until the node knows that Redis is back, has charged it for what was admitted
// without it, and has nothing under way.
func (n *node) awaitHealed() {
	for {
		if n.fallback().inDebt() {
			time.Sleep(pollEvery)
			continue
		}
		n.fallback().sweeper.await()
		l := n.link()
		l.mu.Lock()
		busy := l.queues[0].sending || l.breakers[0].err != nil
		l.mu.Unlock()
		e := &n.fallback().events
		e.mu.Lock()
		telling := e.running
		e.mu.Unlock()
		if !busy && !telling && !n.hasUnsent() && !n.fallback().inDebt() {
			return
		}
		time.Sleep(pollEvery)
	}
}

// await waits for the running sweeps. There must be no ledgers, so that no other sweep begins.
func (s *sweeper) await() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.Wait()
}

// hasUnsent reports whether ops are waiting that could not be sent.
func (n *node) hasUnsent() bool {
	r := n.fallback().below.(*remote)
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.unsent) > 0
}

// checkEvents checks the order of events, and returns how many takes were allowed and denied
// without Redis, and what Redis was charged.
func (n *node) checkEvents(t *testing.T) (allowed, denied, charged int64) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	lost, ever := false, false
	for _, e := range n.events {
		allowed, denied, charged = allowed+e.Allowed, denied+e.Denied, charged+e.Charged
		switch {
		case e.Kind == store.Lost && !lost && errors.Is(e.Err, ErrLost):
			lost, ever = true, true
		case e.Kind == store.Back && lost:
			lost = false
		case e.Kind == store.Decided: // decisions may be reported before the loss
		case e.Kind == store.Reconciled && ever:
		default:
			t.Errorf("%+v, after %v", e, n.events)
		}
	}
	if lost || !ever {
		t.Errorf("lost %v, ever %v: %+v", lost, ever, n.events)
	}
	return allowed, denied, charged
}

// inTime fails the test unless a call ends long before a fault does.
func inTime(t *testing.T, call func()) {
	t.Helper()
	start := time.Now()
	call()
	if took := time.Since(start); took > fault/2 {
		t.Errorf("it took %v", took)
	}
}

// wantUsed fails the test unless an amount is used of a window or log, debts included.
func wantUsed(t *testing.T, s *Store, key string, l limit.Limit, want int64) {
	t.Helper()
	accounts, at, err := s.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if got := accounts[0].Check(l, at, 0).Used; got != want {
		t.Errorf("%d are used of %v; want %d", got, l, want)
	}
}

// Two nodes lose Redis in various ways: decisions do not take long, admit what the mode allows, and
// when Redis is back it is charged for all of them, once.
func TestFaults(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, fails := range faultsOfTheWay {
		for _, mode := range []StoreLoss{Deny, Allow, Share} {
			t.Run(fmt.Sprint(name, ", ", mode), func(t *testing.T) {
				t.Parallel()
				losesRedis(t, server, fails, mode)
			})
		}
	}
}

func losesRedis(t *testing.T, server *redistest.Server, fails func(*redistest.Proxy), mode StoreLoss) {
	kinds := everyKind(100)
	limits := []limit.Limit{kinds["fixed window"], kinds["sliding log"], kinds["anchored"]}
	of := func(n int64) []store.Charge { return []store.Charge{{Key: "key", Limits: limits, N: n}} }
	proxy := redistest.NewProxy(t, server.Addr)
	cfg := Config{Namespace: t.Name(), OnStoreLoss: mode, Timeout: 2 * time.Second}
	both := []*node{newNode(t, proxy.URL(), cfg), newNode(t, proxy.URL(), cfg)}
	r := serve(t, both[0].Store, of(10))
	for _, n := range both {
		if _, err := n.Peek(t.Context(), of(0)); err != nil {
			t.Fatal(err)
		}
		if mode == Share {
			n.fallback().nodes.announceOnce(t.Context())
		}
		n.awaitHealed()
	}

	fails(proxy)
	var passed [2]atomic.Int64
	var all sync.WaitGroup
	for i, n := range both {
		for range 4 {
			all.Go(func() {
				for range 30 {
					inTime(t, func() {
						r, _, err := n.Take(t.Context(), of(1))
						if (mode == Deny) != errors.Is(err, ErrLost) {
							t.Error(err)
						}
						if r != nil {
							passed[i].Add(1)
						}
					})
				}
			})
		}
	}
	all.Wait()
	inTime(t, func() {
		if err := both[0].Settle(t.Context(), r, []int64{4}); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
	want := map[StoreLoss]int64{Deny: 0, Allow: 120, Share: 45}[mode]
	for i := range passed {
		if got := passed[i].Load(); got != want {
			t.Errorf("%d have passed at node %d; want %d", got, i, want)
		}
	}

	proxy.Heal()
	for i, n := range both {
		n.awaitHealed()
		allowed, denied, charged := n.checkEvents(t)
		if decided := map[StoreLoss]int64{Allow: 120, Share: 120}[mode]; allowed != passed[i].Load() || allowed+denied != decided || charged != allowed {
			t.Errorf("%d allowed, %d denied, %d charged; %d have passed", allowed, denied, charged, passed[i].Load())
		}
	}
	if err := both[0].Settle(t.Context(), r, []int64{4}); err != nil {
		t.Error(err)
	}
	direct := opened(t, server.URL(), Config{Namespace: t.Name(), Timeout: time.Minute})
	for _, l := range limits {
		wantUsed(t, direct, "key", l, 4+2*want)
	}
}

// Answers get lost under load, one after another, and callers do not notice: everything is charged
// once.
func TestAnswersGetLost(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range everyKind(900) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, server.Addr)
			cfg := Config{Namespace: t.Name(), Timeout: time.Minute}
			direct := opened(t, server.URL(), cfg)
			mustTake(t, direct, one("key", l, 500)) // of a bucket, all that is given back still counts, however long a call takes
			var passed, calls atomic.Int64
			var all sync.WaitGroup
			stores := []*Store{opened(t, proxy.URL(), cfg), opened(t, proxy.URL(), cfg)} // before anything fails
			for _, s := range stores {
				for range 6 {
					all.Go(func() {
						for range 60 {
							switch n := calls.Add(1); n % 20 {
							case 0:
								proxy.DropAnswer()
							case 10:
								proxy.ResetAfter(int(n % 30))
							}
							r, _, err := s.Take(t.Context(), one("key", l, 2))
							if err != nil {
								t.Error(err)
								return
							}
							if r == nil {
								continue
							}
							passed.Add(1)
							if err := s.Settle(t.Context(), r, []int64{1}); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
			}
			all.Wait()
			proxy.Heal()
			if n := passed.Load(); n < 380 || n > 400 { // the last ones may be denied while others are not settled
				t.Errorf("%d have passed", n)
			}
			wantLeft(t, direct, "key", l, 400-passed.Load())
		})
	}
}

// Callers leave before they are answered, while Redis is lost and comes back: takes that they do
// not know of are given back.
func TestCallersLeave(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range everyKind(1300) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, server.Addr)
			cfg := Config{Namespace: t.Name(), Timeout: 100 * time.Millisecond}
			n := newNode(t, proxy.URL(), cfg)
			serve(t, n.Store, one("key", l, 400)) // of a bucket, all that is given back still counts, however long a call takes
			var passed, left atomic.Int64
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					for k := range 40 {
						if i == 0 && k%10 == 3 {
							proxy.StallAnswers()
						}
						if i == 0 && k%10 == 5 {
							proxy.Heal()
						}
						ctx, leave := t.Context(), func() {}
						if k%2 == 0 {
							ctx, leave = context.WithTimeout(ctx, rand.N(2*time.Millisecond))
						}
						r, _, err := n.Take(ctx, one("key", l, 1))
						leave()
						switch {
						case r != nil:
							passed.Add(1)
						case errors.Is(err, ErrLost) || errors.Is(err, context.DeadlineExceeded):
							left.Add(1)
						default:
							t.Error(r, err)
						}
					}
				})
			}
			all.Wait()
			proxy.Heal()
			n.awaitHealed()
			if left.Load() == 0 {
				t.Error("nobody has left")
			}
			wantLeft(t, opened(t, server.URL(), Config{Namespace: t.Name(), Timeout: time.Minute}), "key", l, 900-passed.Load())
		})
	}
}

// everyCall is every call of a store, for one key that was taken from.
func everyCall(t *testing.T, s *Store, r store.Receipt) map[string]func() error {
	l := limit.New(10, month)
	both := append(one("key", l, 1), one("other", l, 1)...)
	return map[string]func() error{
		"take":         func() error { _, _, err := s.Take(t.Context(), one("key", l, 1)); return err },
		"take both":    func() error { _, _, err := s.Take(t.Context(), both); return err },
		"take nothing": func() error { _, _, err := s.Take(t.Context(), one("key", l, 0)); return err },
		"peek":         func() error { _, err := s.Peek(t.Context(), both); return err },
		"settle":       func() error { return s.Settle(t.Context(), r, []int64{2}) },
		"read":         func() error { _, _, err := s.Read(t.Context(), "key", "other"); return err },
		"keys":         func() error { _, err := s.Keys(t.Context(), ""); return err },
		"reset":        func() error { return s.Reset(t.Context(), "other") },
		"settings":     func() error { _, err := inside(s).Settings(t.Context()); return err },
		"put settings": func() error {
			_, err := inside(s).PutSettings(t.Context(), map[string]string{"name": "value"}, false)
			return err
		},
	}
}

// No call waits for a fault to end.
func TestEveryCallIsInTime(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, fails := range faultsOfTheWay {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, server.Addr)
			s := opened(t, proxy.URL(), Config{Namespace: t.Name(), Timeout: 300 * time.Millisecond})
			r := serve(t, s, one("key", limit.New(10, month), 1))
			fails(proxy)
			calls := everyCall(t, s, r)
			calls["new"] = func() error {
				_, err := New(Config{URL: proxy.URL(), Timeout: 300 * time.Millisecond, OnStoreLoss: Share})
				return err
			}
			var all sync.WaitGroup
			for name, call := range calls {
				all.Go(func() {
					inTime(t, func() {
						if err := call(); !errors.Is(err, ErrLost) {
							t.Errorf("%s: %v", name, err)
						}
					})
				})
			}
			all.Wait()
		})
	}
}

// Every call of a closed store says that it is closed, whatever the mode.
func TestEveryCallAfterClose(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for _, mode := range []StoreLoss{Deny, Allow, Share} {
		s := opened(t, server.URL(), Config{Timeout: time.Minute, OnStoreLoss: mode})
		r := mustTake(t, s, one("key", limit.New(10, month), 1))
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		for name, call := range everyCall(t, s, r) {
			if err := call(); !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
		}
	}
}

// A store that is closed while answers are missing does not wait for them, and its waiting callers
// get an error.
func TestCloseWhileFaulty(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, fails := range faultsOfTheWay {
		for _, mode := range []StoreLoss{Deny, Allow, Share} {
			t.Run(fmt.Sprint(name, ", ", mode), func(t *testing.T) {
				t.Parallel()
				proxy := redistest.NewProxy(t, server.Addr)
				n := newNode(t, proxy.URL(), Config{Namespace: t.Name(), OnStoreLoss: mode, Timeout: 300 * time.Millisecond})
				l := limit.New(1000, month)
				serve(t, n.Store, one("key", l, 1))
				fails(proxy)
				var all sync.WaitGroup
				for range 16 {
					all.Go(func() {
						for range 1000 {
							var err error
							inTime(t, func() { _, _, err = n.Take(t.Context(), one("key", l, 1)) })
							if errors.Is(err, store.ErrClosed) {
								return
							}
							if err != nil && !errors.Is(err, ErrLost) {
								t.Error(err)
							}
							runtime.Gosched()
						}
					})
				}
				inTime(t, func() {
					if err := n.Close(); err != nil {
						t.Error(err)
					}
				})
				all.Wait()
			})
		}
	}
}

// Takes that are to be given back wait while Redis is lost, and are given back when it is back.
func TestGivenBackThoughLost(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	l := everyKind(10)["fixed window"]
	back := make(chan struct{}, 1)
	r := newRemote(dialed(t, server.URL()), "test", time.Minute, nil, func(c change) {
		if !c.lost {
			back <- struct{}{}
		}
	})
	defer r.Close()
	x := &linkTest{t: t, link: r.link}
	kept := mustTake(t, r, one("key", l, 6)).(*receipt)
	x.idle()
	release := x.hold()
	r.undo(kept.takes)
	x.trip(&x.queues[0], fmt.Errorf("%w: for a test", ErrLost))
	<-back
	x.until(func() bool { return len(x.queues[0].ops) > 0 }) // it is sent again
	release()
	x.idle()
	wantLeft(t, r, "key", l, 10)
}

// watching is a client that reports its commands before it sends them.
type watching struct {
	rueidis.Client
	sends func(number int64)
	sent  atomic.Int64
}

func (w *watching) Do(ctx context.Context, c rueidis.Completed) rueidis.RedisResult {
	w.sends(w.sent.Add(1))
	return w.Client.Do(ctx, c)
}

// A settlement of an account that another node has changed happens once, although its answer gets lost and it is
// repeated.
func TestSettledOnce(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	kinds := everyKind(100)
	l := kinds["fixed window"]
	for name, c := range map[string]struct {
		changed int64 // the command before which another store changes the account; 0: none
		lost    int64 // the command whose answer gets lost
	}{
		"changed before":    {0, 1},
		"changed meanwhile": {1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Namespace: t.Name(), Timeout: time.Minute}
			other := opened(t, server.URL(), cfg)
			proxy := redistest.NewProxy(t, server.Addr)
			var armed atomic.Bool
			w := &watching{Client: dialed(t, proxy.URL())}
			w.sends = func(number int64) {
				if !armed.Load() {
					w.sent.Store(0)
					return
				}
				if number == c.changed {
					mustTake(t, other, one("key", l.WithCount(50), 1))
				}
				if number == c.lost {
					proxy.StallAnswers()
				}
			}
			cfg.Timeout = 500 * time.Millisecond
			s, err := NewFromClient(w, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			n := &node{Store: s}
			r := serve(t, s, one("key", l, 10))
			mustTake(t, other, one("key", l.WithCount(50), 10)) // the limit has changed
			armed.Store(true)
			if err := s.Settle(t.Context(), r, []int64{4}); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			armed.Store(false)
			proxy.Heal()
			n.awaitHealed()
			if err := s.Settle(t.Context(), r, []int64{4}); err != nil {
				t.Error(err)
			}
			want := int64(50 - 14)
			if c.changed > 0 {
				want--
			}
			wantLeft(t, other, "key", l.WithCount(50), want)
		})
	}
}

// One master of a cluster is lost: its keys are lost, and others are not. A take of both leaves
// nothing behind.
func TestMasterOfAClusterIsLost(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 3)
	n := newNode(t, cluster.URL(), Config{Timeout: 4 * time.Second})
	l := everyKind(10)["sliding log"]
	lost, masters := cluster.Servers[2], map[string][]string{}
	for i := range 100 { // some keys of each
		key := fmt.Sprint("key", i)
		slot := slotOf(fmt.Sprint(partOf(key)))
		masters[cluster.Servers[int(slot)*3/16384].Addr] = append(masters[cluster.Servers[int(slot)*3/16384].Addr], key)
	}
	gone := masters[lost.Addr][0]
	here := masters[cluster.Servers[0].Addr]
	for _, key := range append(here[:10:10], gone) {
		serve(t, n.Store, one(key, l, 1))
	}
	lost.Pause()
	for _, key := range here[:10] {
		charges := append(one(key, l, 4), one(gone, l, 4)...)
		if _, _, err := n.Take(t.Context(), charges); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", key, err)
		}
		mustTake(t, n, one(key, l, 2))
	}
	lost.Resume()
	for {
		l, busy := n.link(), n.hasUnsent()
		l.mu.Lock()
		for i := range l.queues {
			busy = busy || l.queues[i].sending || l.queues[i].breaker.err != nil
		}
		l.mu.Unlock()
		if !busy {
			break
		}
		time.Sleep(pollEvery)
	}
	for _, key := range here[:10] {
		wantLeft(t, n, key, l, 7)
	}
	wantLeft(t, n, gone, l, 9)
}
