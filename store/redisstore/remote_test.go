package redisstore

import (
	"crypto/rand"
	"dappco.re/go/core/go-ratelimit/limit"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
	"github.com/redis/rueidis"
)

func dialed(t testing.TB, url string) rueidis.Client {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestStoreInCluster(t *testing.T) {
	client := dialed(t, redistest.NewCluster(t, 3).URL())
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		r := newRemote(client, rand.Text(), 5*time.Second, clock, nil)
		t.Cleanup(func() { r.Close() })
		return r
	})
}

func TestStore(t *testing.T) {
	client := dialed(t, redistest.New(t).URL())
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		r := newRemote(client, rand.Text(), 5*time.Second, clock, nil)
		t.Cleanup(func() { r.Close() })
		return r
	})
}

func BenchmarkTake(b *testing.B) {
	r := newRemote(dialed(b, redistest.New(b).URL()), "bench", time.Second, nil, nil)
	defer r.Close()
	for name, limits := range map[string][]limit.Limit{
		"gcra": {limit.PerSecond(1_000_000_000)},
		"six": {limit.PerSecond(1_000_000_000), limit.PerMinute(1_000_000_000).Using(limit.TokenBucket), limit.PerHour(1_000_000_000_000),
			limit.PerMinute(1_000_000_000).Using(limit.FixedWindow), limit.PerHour(1_000_000_000_000).Using(limit.FixedWindow), limit.PerMinute(1_000_000_000).Using(limit.SlidingCounter)},
		"log": {limit.PerSecond(1_000_000_000).Using(limit.SlidingLog)},
	} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprint(name, "/", keys), func(b *testing.B) {
				var n atomic.Int64
				b.SetParallelism(32)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						charge := []store.Charge{{Key: fmt.Sprint(name, n.Add(1)%int64(keys)), Limits: limits, N: 1}}
						if _, _, err := r.Take(b.Context(), charge); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
