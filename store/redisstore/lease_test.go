package redisstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// opened returns a store in the server at a URL.
func opened(t testing.TB, url string, cfg Config) *Store {
	t.Helper()
	cfg.URL = url
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Nodes with leases that take what they can admit the limit, and no more, in a
// window of it.
func TestLeasesAdmitTheLimit(t *testing.T) {
	server := redistest.New(t)
	for _, l := range []limit.Limit{
		limit.New(20000, time.Hour),
		limit.New(20000, time.Hour).Using(limit.FixedWindow),
		limit.New(20000, time.Hour).Anchored(),
		limit.New(20000, time.Hour).Using(limit.SlidingLog),
		limit.New(20000, time.Hour).Using(limit.SlidingCounter),
	} {
		t.Run(l.String(), func(t *testing.T) {
			var admitted, leased atomic.Int64
			var nodes sync.WaitGroup
			for range 4 {
				s := opened(t, server.URL(), Config{Namespace: t.Name(), Lease: 50 * time.Millisecond, Timeout: 10 * time.Second})
				for range 4 {
					nodes.Go(func() {
						for range 6000 {
							r, decisions, err := s.Take(t.Context(), []store.Charge{{Key: "hot", Limits: []limit.Limit{l}, N: 1}})
							if err != nil {
								t.Error(err)
								return
							}
							if store.Allowed(decisions) {
								admitted.Add(1)
							}
							if _, ok := r.(*leaseReceipt); ok {
								leased.Add(1)
							}
						}
					})
				}
			}
			nodes.Wait()
			// A bucket drains a little meanwhile.
			if n := admitted.Load(); n > 20000+200 || n > 20000 && l.Algorithm() != limit.GCRA || n < 20000*9/10 {
				t.Errorf("%d were admitted of 20000", n)
			}
			if leased.Load() < 1000 {
				t.Errorf("%d were taken from leases; want most of 20000", leased.Load())
			}
		})
	}
}
