package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// fault is how long a slow answer takes. Nobody waits for half of it.
const fault = 5 * time.Second

var faultsOfTheWay = map[string]func(*redistest.Proxy){
	"cut":            (*redistest.Proxy).Cut,
	"slow":           func(p *redistest.Proxy) { p.Delay(fault) },
	"half open":      (*redistest.Proxy).Stall,
	"answers vanish": (*redistest.Proxy).StallAnswers,
	"reset, then cut": func(p *redistest.Proxy) {
		p.ResetAfter(3)
		p.StallAnswers()
	},
}

// node is a store, and the events that it told of.
type node struct {
	*Store
	mu     sync.Mutex
	events []Event
}

func newNode(t *testing.T, url string, cfg Config) *node {
	t.Helper()
	n := new(node)
	cfg.OnEvent = func(e Event) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.events = append(n.events, e)
	}
	n.Store = opened(t, url, cfg)
	return n
}

func (n *node) loss() *loss { return n.top.(*loss) }

func (n *node) link() *link { return n.loss().below.(*remote).link }

// heals waits until the node has heard that Redis is back, has charged it what it
// owes, and has nothing under way.
func (n *node) heals() {
	for {
		s := &n.loss().sweeper
		s.mu.Lock()
		sweeping := s.running
		s.mu.Unlock()
		l := n.link()
		l.mu.Lock()
		busy := l.queues[0].taken != [lanes]bool{} || l.breakers[0].err != nil || l.telling
		l.mu.Unlock()
		e := &n.loss().events
		e.mu.Lock()
		telling := e.telling
		e.mu.Unlock()
		if !sweeping && !busy && !telling && n.loss().books.open.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
}

// tells checks the order of events, and returns how many takes were decided
// without Redis, how many of them were allowed, and what Redis was charged.
func (n *node) tells(t *testing.T) (allowed, denied, charged int64) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	lost, ever := false, false
	for _, e := range n.events {
		allowed, denied, charged = allowed+e.Allowed, denied+e.Denied, charged+e.Charged
		switch {
		case e.Kind == Lost && !lost && errors.Is(e.Err, ErrLost):
			lost, ever = true, true
		case e.Kind == Back && lost:
			lost = false
		case e.Kind == Decided: // whoever notices first may be told of first
		case e.Kind == Reconciled && ever:
		default:
			t.Errorf("%+v, after %v", e, n.events)
		}
	}
	if lost || !ever {
		t.Errorf("lost %v, ever %v: %+v", lost, ever, n.events)
	}
	return allowed, denied, charged
}

// inTime fails unless a call is over long before a fault is.
func inTime(t *testing.T, call func()) {
	t.Helper()
	start := time.Now()
	call()
	if took := time.Since(start); took > fault/2 {
		t.Errorf("it took %v", took)
	}
}

// wantUsed fails unless so much is used of a window or log, debts included.
func wantUsed(t *testing.T, s *Store, key string, l limit.Limit, want int64) {
	t.Helper()
	accounts, at, err := s.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if got := used(accounts[0], l, at); got != want {
		t.Errorf("%d are used of %v; want %d", got, l, want)
	}
}

// Two nodes lose Redis, in whatever way: decisions do not take long, let as much
// pass as the mode says, and when Redis is back it knows of all of them, once.
func TestFaults(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, break_ := range faultsOfTheWay {
		for _, mode := range []StoreLoss{Deny, Allow, Share} {
			t.Run(fmt.Sprint(name, ", ", mode), func(t *testing.T) {
				t.Parallel()
				losesRedis(t, server, break_, mode)
			})
		}
	}
}

func losesRedis(t *testing.T, server *redistest.Server, break_ func(*redistest.Proxy), mode StoreLoss) {
	kinds := everyKind(100)
	limits := []limit.Limit{kinds["fixed window"], kinds["sliding log"], kinds["anchored"]}
	of := func(n int64) []store.Charge { return []store.Charge{{Key: "key", Limits: limits, N: n}} }
	proxy := redistest.NewProxy(t, server.Addr)
	cfg := Config{Namespace: t.Name(), OnStoreLoss: mode, Timeout: 300 * time.Millisecond}
	both := []*node{newNode(t, proxy.URL(), cfg), newNode(t, proxy.URL(), cfg)}
	r := serve(t, both[0].Store, of(10))
	for _, n := range both {
		if _, err := n.Peek(t.Context(), of(0)); err != nil {
			t.Fatal(err)
		}
		if mode == Share {
			n.loss().nodes.hear(t.Context())
		}
		n.heals()
	}

	break_(proxy)
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
		n.heals()
		allowed, denied, charged := n.tells(t)
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

// Answers get lost under load, one after another, and nobody notices: everything
// is charged once.
func TestAnswersGetLost(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range everyKind(500) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, server.Addr)
			cfg := Config{Namespace: t.Name(), Timeout: time.Minute}
			direct := opened(t, server.URL(), cfg)
			mustTake(t, direct, one("key", l, 100)) // so that a bucket holds more than is given back
			var passed, calls atomic.Int64
			var all sync.WaitGroup
			for range 2 {
				s := opened(t, proxy.URL(), cfg)
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

// Callers leave before they are answered, and Redis is lost and back meanwhile:
// what they do not know to be theirs is given back.
func TestCallersLeave(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range everyKind(1000) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, server.Addr)
			cfg := Config{Namespace: t.Name(), Timeout: 100 * time.Millisecond}
			n := newNode(t, proxy.URL(), cfg)
			serve(t, n.Store, one("key", l, 100)) // so that a bucket holds more than is given back
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
						ctx, leave := context.WithCancel(t.Context())
						if k%2 == 0 {
							go leave()
						}
						r, _, err := n.Take(ctx, one("key", l, 1))
						leave()
						switch {
						case r != nil:
							passed.Add(1)
						case errors.Is(err, ErrLost) || errors.Is(err, context.Canceled):
							left.Add(1)
						default:
							t.Error(r, err)
						}
					}
				})
			}
			all.Wait()
			proxy.Heal()
			n.heals()
			if left.Load() == 0 {
				t.Error("nobody has left")
			}
			wantLeft(t, opened(t, server.URL(), Config{Namespace: t.Name(), Timeout: time.Minute}), "key", l, 900-passed.Load())
		})
	}
}

// A store that is closed while answers are missing does not wait for them, and
// those who wait for it hear so.
func TestCloseWhileFaulty(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, break_ := range faultsOfTheWay {
		for _, mode := range []StoreLoss{Deny, Allow, Share} {
			t.Run(fmt.Sprint(name, ", ", mode), func(t *testing.T) {
				t.Parallel()
				proxy := redistest.NewProxy(t, server.Addr)
				n := newNode(t, proxy.URL(), Config{Namespace: t.Name(), OnStoreLoss: mode, Timeout: 300 * time.Millisecond})
				l := limit.New(1000, month)
				serve(t, n.Store, one("key", l, 1))
				break_(proxy)
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
