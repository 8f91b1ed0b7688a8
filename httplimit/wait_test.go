package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// doors are the two middlewares of the package. Each gets how many requests may pass in a minute, and what a request costs.
var doors = []struct {
	name, limit string // limit is the name of 2 requests a minute
	open        func(t *testing.T, perMinute int) func(cost int64, options ...Option) func(http.Handler) http.Handler
}{
	{"Middleware", "requests_per_minute", func(t *testing.T, perMinute int) func(int64, ...Option) func(http.Handler) http.Handler {
		limiter := newLimiter(t, project.Limit{RequestsPerMinute: perMinute})
		return func(cost int64, options ...Option) func(http.Handler) http.Handler {
			return Middleware(limiter, append(options, Cost(func(*http.Request) (int, int, error) { return int(cost), 0, nil }))...)
		}
	}},
	{"Limit", "2/min", func(_ *testing.T, perMinute int) func(int64, ...Option) func(http.Handler) http.Handler {
		limiter := limit.NewLimiter(everybody, limit.PerMinute(int64(perMinute)))
		return func(cost int64, options ...Option) func(http.Handler) http.Handler {
			return Limit(limiter.WithCost(func(*http.Request) int64 { return cost }), options...)
		}
	}},
}

// throughDoors runs a test in a bubble, through each of the doors.
func throughDoors(t *testing.T, test func(t *testing.T, limit string, open func(cost int64, options ...Option) func(http.Handler) http.Handler)) {
	for _, door := range doors {
		t.Run(door.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, door.limit, door.open(t, 2)) })
		})
	}
}

func TestWait(t *testing.T) {
	for _, c := range []struct {
		name     string
		most     time.Duration
		deadline time.Duration // the request's; zero: none
		status   int
		waits    time.Duration
	}{
		{"in time", 2 * time.Minute, 0, 200, time.Minute},
		{"just in time", time.Minute + 1, 0, 200, time.Minute},
		{"too late", time.Minute - 1, 0, 429, 0},
		{"not at all", 0, 0, 429, 0},
		{"in time for the deadline", time.Hour, 2 * time.Minute, 200, time.Minute},
		{"too late for the deadline", time.Hour, 30 * time.Second, 429, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			throughDoors(t, func(t *testing.T, limit string, open func(int64, ...Option) func(http.Handler) http.Handler) {
				h := open(2, Wait(c.most))(&fine{})
				do(h, request("GET"))

				r, began := request("GET"), time.Now()
				if c.deadline > 0 {
					ctx, cancel := context.WithTimeout(r.Context(), c.deadline)
					defer cancel()
					r = r.WithContext(ctx)
				}
				w := do(h, r)
				if waited := time.Since(began); w.Code != c.status || waited != c.waits {
					t.Errorf("%d after %v: %s", w.Code, waited, w.Body)
				}
				if after := w.Header().Get("Retry-After"); (after == "60") != (c.status == 429) {
					t.Errorf("Retry-After: %q", after)
				}
				if c.status == 429 && c.deadline > 0 {
					if p, want := parseProblem(t, w.Header(), w.Body.Bytes()), `the limit "`+limit+`" lets the call pass in 1m0s, and its deadline is in 30s`; p.Detail != want {
						t.Errorf("%q, want %q", p.Detail, want)
					}
				}
				if got := w.Header().Get("RateLimit"); got != `"`+limit+`";r=0;t=60` {
					t.Errorf("RateLimit: %s", got)
				}
			})
		})
	}
}

// A waiting request without tokens is charged no tokens, not even for a while.
func TestWaitWithoutTokens(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerDay: 10, TokensPerDay: 1})
	none := func(*http.Request) (requests, tokens int, err error) { return 1, 0, nil }
	h := Middleware(limiter, Wait(time.Hour), Cost(none))(&fine{})
	for range 3 {
		if w := do(h, request("GET")); w.Code != 200 {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	}
	if n, tokens := used(t, limiter), tokensUsed(t, limiter); n != 3 || tokens != 0 {
		t.Errorf("%d requests and %d tokens used", n, tokens)
	}
}

// A request that waits behind others until its time is over gets the limit that they wait for.
func TestWaitedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, project.Limit{RequestsPerMinute: 1, RequestsPerDay: 100})
		h := Middleware(limiter, Wait(90*time.Second))(&fine{})
		do(h, request("GET"))
		var all sync.WaitGroup
		codes := make([]int, 4)
		for i := range codes {
			all.Go(func() {
				w := do(h, request("GET"))
				codes[i] = w.Code
				if w.Code != 429 {
					return
				}
				p := parseProblem(t, w.Header(), w.Body.Bytes())
				after, err := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
				if !slices.Equal(p.Violated, []string{"requests_per_minute"}) || err != nil || after < 1 || after > 60 {
					t.Errorf("%+v, %v", p, w.Header())
				}
				for _, limit := range parse(t, w.Header(), "RateLimit") {
					if limit.t > after {
						t.Errorf("Retry-After %d: %+v", after, limit)
					}
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if !slices.Equal(codes, []int{200, 429, 429, 429}) {
			t.Errorf("%v", codes)
		}
		if n := used(t, limiter); n != 1 {
			t.Errorf("%d charged in the last minute", n)
		}
	})
}

func TestTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := configured(t, project.Config{Default: &project.Limit{RequestsPerMinute: 1}, MaxWaiting: 1})
		h := Middleware(limiter, Wait(time.Hour))(&fine{})
		do(h, request("GET"))
		done := make(chan int, 1)
		go func() { done <- do(h, request("GET")).Code }()
		synctest.Wait()

		began := time.Now()
		w := do(h, request("GET"))
		p := parseProblem(t, w.Header(), w.Body.Bytes())
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != 429 || !slices.Equal(p.Violated, []string{"requests_per_minute"}) || time.Since(began) != 0 || after != 60 || err != nil {
			t.Errorf("%d: %+v, %v", w.Code, p, w.Header())
		}
		if code := <-done; code != 200 {
			t.Errorf("%d for who waited", code)
		}
	})
}

// A request that must not wait does not overtake waiting ones, and its Retry-After is when the
// first of them passes.
func TestBehindWaitingRequests(t *testing.T) {
	after := map[string]string{"requests_per_minute": "60", "2/min": "30"} // a log, and a bucket that drains
	throughDoors(t, func(t *testing.T, limit string, open func(int64, ...Option) func(http.Handler) http.Handler) {
		impatient := open(1)(&fine{})
		do(impatient, request("GET"))
		waited := make(chan int, 1)
		go func() { waited <- do(open(2, Wait(time.Hour))(&fine{}), request("GET")).Code }()
		synctest.Wait()

		w := do(impatient, request("GET"))
		if p := parseProblem(t, w.Header(), w.Body.Bytes()); w.Code != 429 || !slices.Equal(p.Violated, []string{limit}) || w.Header().Get("Retry-After") != after[limit] {
			t.Errorf("%d: %+v, %v", w.Code, p, w.Header())
		}
		if got := w.Header().Get("RateLimit"); got != `"`+limit+`";r=1;t=`+after[limit] {
			t.Errorf("RateLimit: %s", got)
		}
		if code := <-waited; code != 200 {
			t.Errorf("%d for the request that waited", code)
		}
	})
}

// A client that leaves is charged nothing and gets no answer, and the requests behind it move up.
func TestClientLeaves(t *testing.T) {
	throughDoors(t, func(t *testing.T, _ string, open func(int64, ...Option) func(http.Handler) http.Handler) {
		next := &fine{}
		h := open(2, Wait(time.Hour), Answer(func(http.ResponseWriter, *http.Request, int, string) { t.Error("nobody waits for an answer") }))(next)
		do(h, request("GET"))

		ctx, cancel := context.WithCancel(t.Context())
		gone, behind := make(chan *httptest.ResponseRecorder), make(chan *httptest.ResponseRecorder)
		go func() { gone <- do(h, request("GET").WithContext(ctx)) }()
		synctest.Wait()
		began := time.Now()
		go func() { behind <- do(h, request("GET")) }()
		time.Sleep(10 * time.Second)
		cancel()

		if w := <-gone; w.Code != statusClientLeft || w.Body.Len() != 0 || len(w.Header()) != 0 || time.Since(began) != 10*time.Second {
			t.Errorf("%d after %v: %v %s", w.Code, time.Since(began), w.Header(), w.Body)
		}
		if w := <-behind; w.Code != 200 || time.Since(began) != time.Minute || next.calls.Load() != 2 {
			t.Errorf("%d after %v, %d calls", w.Code, time.Since(began), next.calls.Load())
		}
	})
}

// The same over a connection: the handler is not called, and nothing is charged.
func TestClientLeavesOverTheWire(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			limiter := newLimiter(t, project.Limit{RequestsPerMinute: 1, RequestsPerDay: 100})
			next := &fine{}
			h := Middleware(limiter, Wait(time.Hour))(next)
			came, left := make(chan struct{}), make(chan *httptest.ResponseRecorder)
			url, client := p.start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				came <- struct{}{}
				left <- do(h, r)
			}))
			get := func(ctx context.Context) {
				r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set(HeaderProjectID, "p")
				if response, err := client.Do(r); err == nil {
					response.Body.Close()
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			clients.Go(func() { get(t.Context()) })
			<-came
			if w := <-left; w.Code != 200 {
				t.Error(w.Code)
			}
			clients.Go(func() { get(ctx) })
			<-came
			cancel()
			if w := <-left; w.Code != statusClientLeft {
				t.Error(w.Code)
			}
			clients.Wait()
			if next.calls.Load() != 1 || used(t, limiter) != 1 {
				t.Errorf("%d calls, %d used", next.calls.Load(), used(t, limiter))
			}
		})
	}
}
