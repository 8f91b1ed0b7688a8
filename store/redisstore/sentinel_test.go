package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

// switching makes the replica the master before some of the calls of stores, while none is under
// way, so that both have everything that was written.
type switching struct {
	sentinel *redistest.Sentinel
	idle     sync.RWMutex
	calls    atomic.Int64
	before   map[int64]bool // calls
}

// enter waits while the master changes, and changes it if it is time. The caller calls leave
// afterwards.
func (w *switching) enter(t testing.TB) (leave func()) {
	if w.before[w.calls.Add(1)] {
		w.idle.Lock()
		w.sentinel.Failover(t)
		w.sentinel.AwaitReplica(t) // until then the old master accepts writes, and loses them
		w.idle.Unlock()
	}
	w.idle.RLock()
	return w.idle.RUnlock
}

// switched is a store whose master changes.
type switched struct {
	store.Store
	t  testing.TB
	by *switching
}

func (s switched) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	defer s.by.enter(s.t)()
	return s.Store.Take(ctx, charges)
}

func (s switched) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	defer s.by.enter(s.t)()
	return s.Store.Settle(ctx, r, actual)
}

func (s switched) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	defer s.by.enter(s.t)()
	return s.Store.Peek(ctx, charges)
}

func (s switched) Reset(ctx context.Context, prefix string) error {
	defer s.by.enter(s.t)()
	return s.Store.Reset(ctx, prefix)
}

// A store behind Sentinel passes the tests of every store while its master changes.
func TestStoreBehindSentinel(t *testing.T) {
	t.Parallel()
	sentinel := redistest.NewSentinel(t)
	last := int64(testkit.Rounds(500, 3000))
	w := &switching{sentinel: sentinel, before: map[int64]bool{last / 6: true, last: true}}
	client := dialed(t, sentinel.URL())
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		testkit.OneIn(t, 3)
		r := newRemote(client, rand.Text(), time.Minute, clock, nil)
		t.Cleanup(func() { r.Close() })
		return switched{r, t, w}
	})
	if w.calls.Load() < last && !testing.Short() { // with -short the number of calls is random
		t.Errorf("%d calls", w.calls.Load())
	}
}

// The master dies under load. Callers get errors, the replica takes over, and at most what it did
// not know is admitted twice.
func TestMasterDies(t *testing.T) {
	t.Parallel()
	sentinel := redistest.NewSentinel(t)
	const count = 4000 // more than pass before the master is dead
	l := everyKind(count)["sliding log"]
	n := newNode(t, sentinel.URL(), Config{})
	var passed atomic.Int64
	some := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				r, _, err := n.Take(t.Context(), one("key", l, 1))
				if errors.Is(err, ErrLost) {
					awaitBack(n.Store)
					continue
				}
				if err != nil {
					t.Error(err)
				}
				if r == nil {
					return
				}
				if passed.Add(1) == 100 {
					close(some)
				}
			}
		})
	}
	<-some
	old := sentinel.Master()
	old.Kill()
	before := passed.Load()
	sentinel.AwaitMaster(t, old)
	all.Wait()
	n.awaitHealed()
	n.checkEvents(t)
	if got := passed.Load(); got < count-8 || got > count+before+8 {
		t.Errorf("%d have passed of %d, %d before the master died", got, count, before)
	}
}
