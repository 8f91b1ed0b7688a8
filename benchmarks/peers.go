package main

import (
	"context"
	"net/http"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	xrate "golang.org/x/time/rate"
)

// peers are the libraries that we are measured against, each in the form its own documentation
// shows, in memory.
func peers() []contestant {
	return []contestant{
		{name: nameXTime, kind: peer, build: xtime},
		{name: nameUber, kind: peer, blocks: true, build: uberTake},
		{name: nameFailsafe + ", bursty", kind: peer, build: failsafeBursty},
		{name: nameFailsafe + ", smooth", kind: peer, build: failsafeSmooth},
		{name: "go-limiter", kind: peer, keyed: true, retains: "the key", build: goLimiter},
		{name: "throttled", kind: peer, keyed: true, retains: "the key", build: throttledGCRA},
		{name: "ulule/limiter", kind: peer, keyed: true, retains: "a copy of the key, counted", build: ululeMemory},
		{name: "httprate", kind: peer, keyed: true, retains: "a hash", build: httprateLocal},
	}
}

// must is for constructors whose arguments are ours: an error is a mistake in this program.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func xtime(q quota) instance {
	l := xrate.NewLimiter(xrate.Limit(q.perSecond()), int(q.count))
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			if l.Allow() {
				n++
			}
		}
		return n
	}}
}

func uberTake(q quota) instance {
	l := uber.New(int(q.count), uber.Per(q.period))
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			if !l.Take().IsZero() {
				n++
			}
		}
		return n
	}}
}

func failsafeBursty(q quota) instance {
	return failsafeTry(ratelimiter.NewBursty[any](uint(q.count), q.period))
}

func failsafeSmooth(q quota) instance {
	return failsafeTry(ratelimiter.NewSmooth[any](uint(q.count), q.period))
}

func failsafeTry(l ratelimiter.RateLimiter[any]) instance {
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			if l.TryAcquirePermit() {
				n++
			}
		}
		return n
	}}
}

func goLimiter(q quota) instance {
	ctx := context.Background()
	s := must(memorystore.New(&memorystore.Config{Tokens: uint64(q.count), Interval: q.period}))
	decide := func(keys []string) (n int) {
		for _, key := range keys {
			if _, _, _, ok, err := s.Take(ctx, key); ok && err == nil {
				n++
			}
		}
		return n
	}
	return instance{decide: decide, close: func() { _ = s.Close(ctx) }}
}

func newThrottled(q quota) *throttled.GCRARateLimiterCtx {
	l := must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(0)), throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(q.count), q.period),
		MaxBurst: int(q.count) - 1,
	}))
	l.SetMaxCASAttemptsLimit(1 << 20) // its 10 are too few for two busy goroutines: it would answer with errors
	return l
}

func throttledGCRA(q quota) instance {
	ctx := context.Background()
	l := newThrottled(q)
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if limited, _, err := l.RateLimitCtx(ctx, key, 1); !limited && err == nil {
				n++
			}
		}
		return n
	}}
}

func ululeMemory(q quota) instance {
	ctx := context.Background()
	l := ulule.New(ululememory.NewStore(), ulule.Rate{Period: q.period, Limit: q.count})
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if c, err := l.Get(ctx, key); !c.Reached && err == nil {
				n++
			}
		}
		return n
	}}
}

// httprateLocal asks httprate for its decision alone: no response headers are written.
func httprateLocal(q quota) instance {
	l := httprate.NewRateLimiter(int(q.count), q.period, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	r := must(http.NewRequest(http.MethodGet, "/", nil))
	var w noResponse
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if !l.OnLimit(w, r, key) {
				n++
			}
		}
		return n
	}}
}

// noResponse is an http.ResponseWriter to which nobody writes.
type noResponse struct{}

func (noResponse) Header() http.Header         { return nil }
func (noResponse) Write(b []byte) (int, error) { return len(b), nil }
func (noResponse) WriteHeader(int)             {}
