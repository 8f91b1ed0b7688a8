package httplimit

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// The headers, byte for byte: no time passes in a bubble.
func TestFieldsOfAnAllowedRequest(t *testing.T) {
	tokens := project.Limit{RequestsPerMinute: 60, TokensPerMinute: 1000, TokensPerDay: 5000}
	for _, c := range []struct {
		name          string
		limit         project.Limit
		tokens        int
		limits, rules string
	}{
		{"the defaults", *project.DefaultLimit, 0,
			`"requests_per_minute";r=59;t=60, "requests_per_hour";r=999;t=3600, "requests_per_day";r=9999;t=86400`,
			`"requests_per_minute";q=60;w=60, "requests_per_hour";q=1000;w=3600, "requests_per_day";q=10000;w=86400`},
		{"one window", project.Limit{RequestsPerHour: 7}, 0, `"requests_per_hour";r=6;t=3600`, `"requests_per_hour";q=7;w=3600`},
		{"tokens", tokens, 300,
			`"requests_per_minute";r=59;t=60, "tokens_per_minute";r=700;t=60, "tokens_per_day";r=4700;t=86400`,
			`"requests_per_minute";q=60;w=60, "tokens_per_minute";q=1000;w=60;qu="tokens", "tokens_per_day";q=5000;w=86400;qu="tokens"`},
		{"a budget, and calls at a time", project.Limit{TokensPerMonth: 5000, MaxConcurrent: 1}, 300,
			`"tokens_per_month";r=4700;t=2592000`, `"tokens_per_month";q=5000;w=2592000;qu="tokens"`},
		{"no limits", project.Limit{}, 300, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cost := func(*http.Request) (int, int, error) { return 1, c.tokens, nil }
				h := Middleware(newLimiter(t, c.limit), Cost(cost))(&fine{})
				w := do(h, request("GET"))
				if w.Code != 200 || w.Body.String() != "fine" {
					t.Fatal(w.Code, w.Body)
				}
				if got := w.Header().Get("RateLimit"); got != c.limits {
					t.Errorf("RateLimit: %s", got)
				}
				if got := w.Header().Get("RateLimit-Policy"); got != c.rules {
					t.Errorf("RateLimit-Policy: %s", got)
				}
			})
		})
	}
}

func TestTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, project.Limit{RequestsPerMinute: 2, RequestsPerHour: 2, RequestsPerDay: 100})
		next := &fine{}
		h := Middleware(limiter)(next)
		do(h, request("GET"))
		time.Sleep(1500 * time.Millisecond)
		do(h, request("GET"))

		w := do(h, request("GET"))
		p := parseProblem(t, w.Header(), w.Body.Bytes())
		if w.Code != 429 || p.Status != 429 || p.Type != typeQuota || p.Title == "" || !strings.Contains(p.Detail, `"requests_per_hour"`) {
			t.Errorf("%d: %+v", w.Code, p)
		}
		if !slices.Equal(p.Violated, []string{"requests_per_minute", "requests_per_hour"}) {
			t.Errorf("violated: %v", p.Violated)
		}
		if got := w.Header().Get("Retry-After"); got != "3599" { // 3598.5 rounded up
			t.Errorf("Retry-After: %s", got)
		}
		if got := w.Header().Get("RateLimit"); got != `"requests_per_minute";r=0;t=59, "requests_per_hour";r=0;t=3599` {
			t.Errorf("RateLimit: %s", got)
		}
		if got := w.Header().Get("RateLimit-Policy"); got != `"requests_per_minute";q=2;w=60, "requests_per_hour";q=2;w=3600, "requests_per_day";q=100;w=86400` {
			t.Errorf("RateLimit-Policy: %s", got)
		}
		if next.calls.Load() != 2 {
			t.Errorf("%d calls", next.calls.Load())
		}

		time.Sleep(3599 * time.Second)
		if w := do(h, request("GET")); w.Code != 200 {
			t.Errorf("%d at the time that Retry-After has said", w.Code)
		}
	})
}

// A request that takes longer than a lease keeps its concurrency slot until it ends.
func TestSlotOfALongRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(25 * time.Minute) })
		cost := func(*http.Request) (int, int, error) { return 1, 1, nil }
		h := Middleware(newLimiter(t, project.Limit{MaxConcurrent: 1}), Cost(cost))(slow)
		go do(h, request("GET"))
		for range 24 {
			time.Sleep(time.Minute)
			if w := do(h, request("GET")); w.Code != 429 {
				t.Fatal(w.Code, w.Body)
			}
		}
		time.Sleep(2 * time.Minute)
		if w := do(h, request("GET")); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
	})
}

func TestNever(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerMinute: 10, TokensPerMinute: 100, TokensPerDay: 5000})
	cost := func(*http.Request) (int, int, error) { return 1, 101, nil }
	for _, o := range [][]Option{{Cost(cost)}, {Cost(cost), Wait(time.Hour)}} {
		next := &fine{}
		w := do(Middleware(limiter, o...)(next), request("POST"))
		p := parseProblem(t, w.Header(), w.Body.Bytes())
		if w.Code != 400 || p.Status != 400 || p.Type != typeQuota || !slices.Equal(p.Violated, []string{"tokens_per_minute"}) {
			t.Errorf("%d: %+v", w.Code, p)
		}
		if _, there := w.Header()["Retry-After"]; there {
			t.Error("it says when to try again")
		}
		limits := parse(t, w.Header(), "RateLimit")
		if len(limits) != 1 || limits[0].name != "tokens_per_minute" || limits[0].r != 100 || limits[0].t != -1 {
			t.Errorf("RateLimit: %v", limits)
		}
		if next.calls.Load() != 0 || used(t, limiter) != 0 {
			t.Errorf("%d calls, %d charged", next.calls.Load(), used(t, limiter))
		}
	}
}

// The refusal of a HEAD request is that of GET without the body.
func TestHead(t *testing.T) {
	h := Middleware(newLimiter(t, project.Limit{RequestsPerDay: 1}))(&fine{})
	do(h, request("GET"))
	get, head := do(h, request("GET")), do(h, request("HEAD"))
	if head.Code != get.Code || head.Body.Len() != 0 || get.Body.Len() == 0 {
		t.Errorf("GET %d: %q; HEAD %d: %q", get.Code, get.Body, head.Code, head.Body)
	}
	for key := range get.Header() {
		if head.Header().Get(key) == "" {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestSkip(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerDay: 1})
	h := Middleware(limiter, Skip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }))(&fine{})
	for range 3 {
		w := do(h, httptest.NewRequest("GET", "/healthz", nil))
		if w.Code != 200 || len(w.Header()["Ratelimit"])+len(w.Header()["Ratelimit-Policy"]) > 0 {
			t.Fatal(w.Code, w.Header())
		}
	}
	if n := used(t, limiter); n != 0 {
		t.Errorf("%d charged", n)
	}
	if w := do(h, httptest.NewRequest("GET", "/other", nil)); w.Code != 400 {
		t.Error(w.Code)
	}
}

func TestShadow(t *testing.T) {
	heard := &recorder{}
	store := newFailing()
	limiter := configured(t, project.Config{Default: &project.Limit{RequestsPerDay: 2}, Store: store, Observer: heard})
	next := &fine{}
	h := Middleware(limiter, Shadow(), Wait(time.Hour))(next)
	ask := func(r *http.Request) {
		t.Helper()
		w := do(h, r)
		if w.Code != 200 || w.Body.String() != "fine" {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		for _, key := range []string{"Ratelimit", "Ratelimit-Policy", "Retry-After", "Cache-Control"} {
			if w.Header()[key] != nil {
				t.Errorf("%s: %s", key, w.Header()[key])
			}
		}
	}
	for range 5 {
		ask(request("GET"))
	}
	admitted, denied := heard.count(event.Admitted, true), heard.count(event.Denied, true)
	if admitted != 2 || denied != 3 || used(t, limiter) != 2 {
		t.Errorf("%d admitted, %d denied, %d used", admitted, denied, used(t, limiter))
	}
	store.lost.Store(true)
	ask(request("GET"))
	if failed := heard.count(event.Lost, true); failed != 1 {
		t.Errorf("%d failed", failed)
	}
	ask(httptest.NewRequest("GET", "/", nil)) // names no project
	if next.calls.Load() != 7 {
		t.Errorf("%d calls", next.calls.Load())
	}
}

func TestLost(t *testing.T) {
	for _, o := range [][]Option{nil, {Wait(time.Hour)}, {Cost(func(*http.Request) (int, int, error) { return 1, 10, nil })}} {
		store := newFailing()
		limiter := configured(t, project.Config{Default: &project.Limit{RequestsPerDay: 2, TokensPerDay: 100}, Store: store})
		next := &fine{}
		h := Middleware(limiter, o...)(next)
		store.lost.Store(true)
		w := do(h, request("GET"))
		p := parseProblem(t, w.Header(), w.Body.Bytes())
		if w.Code != 503 || p.Status != 503 || p.Type != typeCapacity || w.Header().Get("Retry-After") != "1" || next.calls.Load() != 0 {
			t.Errorf("%d, %d calls: %+v", w.Code, next.calls.Load(), p)
		}
		if strings.Contains(w.Body.String(), "disk") {
			t.Errorf("it tells of the store: %s", w.Body)
		}
		store.lost.Store(false)
		if w := do(h, request("GET")); w.Code != 200 || used(t, limiter) != 1 {
			t.Errorf("%d when it is back, %d used", w.Code, used(t, limiter))
		}
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		requests, tokens int
		status           int
		used             int64
	}{
		{0, 0, 200, 1},
		{1, 0, 200, 1},
		{5, 0, 200, 5},
		{10, 0, 200, 10},
		{11, 0, 400, 0},
		{-1, 0, 400, 0},
		{1, -1, 400, 0},
		{1 << 62, 0, 400, 0},
		{1, 1 << 62, 400, 0},
	} {
		limiter := newLimiter(t, project.Limit{RequestsPerDay: 10, TokensPerDay: 100})
		next := &fine{}
		cost := func(*http.Request) (int, int, error) { return c.requests, c.tokens, nil }
		w := do(Middleware(limiter, Cost(cost))(next), request("GET"))
		if w.Code != c.status || used(t, limiter) != c.used || next.calls.Load() == 1 != (c.status == 200) {
			t.Errorf("%d, %d: status %d, %d used, %d calls: %s", c.requests, c.tokens, w.Code, used(t, limiter), next.calls.Load(), w.Body)
		}
		if c.status != 200 {
			parseProblem(t, w.Header(), w.Body.Bytes())
		}
	}
}

func TestErrorsOfFunctionsAreTheText(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerDay: 10})
	for _, o := range []Option{
		Identify(func(*http.Request) (string, error) { return "", errors.New("no such \"key\"\n") }),
		Cost(func(*http.Request) (int, int, error) { return 0, 0, errors.New("no such \"key\"\n") }),
	} {
		next := &fine{}
		w := do(Middleware(limiter, o)(next), request("GET"))
		p := parseProblem(t, w.Header(), w.Body.Bytes())
		if w.Code != 400 || p.Type != "about:blank" || p.Detail != "no such \"key\"\n" || next.calls.Load() != 0 {
			t.Errorf("%d: %+v", w.Code, p)
		}
	}
	if n := used(t, limiter); n != 0 {
		t.Errorf("%d charged", n)
	}
}

// tokensUsed returns how many tokens project p was charged.
func tokensUsed(t *testing.T, limiter *project.Limiter) int64 {
	t.Helper()
	d, err := limiter.Peek(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Windows() {
		if s.Window.Unit == project.Tokens {
			return s.Window.Count - s.Remaining
		}
	}
	t.Fatal("no window of tokens")
	return 0
}

func TestReservation(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle func(*project.Reservation)
		used   int64
	}{
		{"committed", func(r *project.Reservation) { r.Commit(20, 10) }, 30},
		{"more than estimated", func(r *project.Reservation) { r.Commit(100, 50) }, 150},
		{"cancelled", func(r *project.Reservation) { r.Cancel() }, 0},
		{"left", func(*project.Reservation) {}, 100},
		{"panic", func(*project.Reservation) { panic(http.ErrAbortHandler) }, 100},
	} {
		for _, wait := range []time.Duration{0, time.Hour} {
			t.Run(c.name, func(t *testing.T) {
				limiter := newLimiter(t, project.Limit{RequestsPerDay: 10, TokensPerDay: 1000})
				h := Middleware(limiter, Wait(wait), Cost(func(*http.Request) (int, int, error) { return 1, 100, nil }))(
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						reservation := ReservationFrom(r.Context())
						if reservation == nil {
							t.Error("no reservation")
						}
						c.handle(reservation)
					}))
				func() {
					defer func() {
						if r := recover(); r != nil && r != http.ErrAbortHandler {
							panic(r)
						}
					}()
					do(h, request("POST"))
				}()
				if got := tokensUsed(t, limiter); got != c.used {
					t.Errorf("%d used", got)
				}
			})
		}
	}
}

// The handler gets the server's own writer, and a request without tokens unchanged.
func TestNothingIsWrapped(t *testing.T) {
	for _, tokens := range []int{0, 10} {
		for _, wait := range []time.Duration{0, time.Hour} {
			limiter := newLimiter(t, project.Limit{RequestsPerDay: 10, TokensPerDay: 100})
			r, w := request("GET"), httptest.NewRecorder()
			h := Middleware(limiter, Wait(wait), Cost(func(*http.Request) (int, int, error) { return 1, tokens, nil }))(
				http.HandlerFunc(func(gotW http.ResponseWriter, gotR *http.Request) {
					if gotW != w {
						t.Error("the writer is another")
					}
					if (gotR == r) != (tokens == 0) {
						t.Errorf("%d tokens: the same request: %v", tokens, gotR == r)
					}
					if (ReservationFrom(gotR.Context()) == nil) != (tokens == 0) {
						t.Errorf("%d tokens: reservation %v", tokens, ReservationFrom(gotR.Context()))
					}
				}))
			h.ServeHTTP(w, r)
		}
	}
}

func TestInvalidOptionsPanic(t *testing.T) {
	testkit.Panics(t, map[string]func(){
		"limiter":  func() { Middleware(nil) },
		"Identify": func() { Identify(nil) },
		"Cost":     func() { Cost(nil) },
		"Skip":     func() { Skip(nil) },
		"Wait":     func() { Wait(-1) },
		"ClientIP": func() { ClientIP(netip.MustParsePrefix("10.0.0.0/8"), netip.Prefix{}) },
	})
}

// The response after a change of a limit has the new limit.
func TestPolicyFollowsTheLimits(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerMinute: 10, RequestsPerHour: 20})
	h := Middleware(limiter)(&fine{})
	for _, c := range []struct {
		limit project.Limit
		want  string
	}{
		{project.Limit{RequestsPerMinute: 10, RequestsPerHour: 30}, `"requests_per_minute";q=10;w=60, "requests_per_hour";q=30;w=3600`},
		{project.Limit{RequestsPerMinute: 10}, `"requests_per_minute";q=10;w=60`},
		{project.Limit{RequestsPerHour: 10}, `"requests_per_hour";q=10;w=3600`},
		{project.Limit{RequestsPerMinute: 10, RequestsPerHour: 20}, `"requests_per_minute";q=10;w=60, "requests_per_hour";q=20;w=3600`},
	} {
		if err := limiter.SetLimit("p", c.limit); err != nil {
			t.Fatal(err)
		}
		if got := do(h, request("GET")).Header().Get("RateLimit-Policy"); got != c.want {
			t.Errorf("%+v: %s", c.limit, got)
		}
	}
}

// A value that a handler adds to a header of its response is in no other response.
func TestAddingToThePolicy(t *testing.T) {
	limiter := newLimiter(t, project.Limit{RequestsPerDay: 10})
	h := Middleware(limiter)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("RateLimit-Policy", r.URL.Path)
	}))
	var headers []http.Header
	for _, path := range []string{"/1", "/2"} {
		r := request("GET")
		r.URL.Path = path
		headers = append(headers, do(h, r).Header())
	}
	for i, h := range headers {
		if got := h.Values("RateLimit-Policy"); !slices.Equal(got, []string{`"requests_per_day";q=10;w=86400`, []string{"/1", "/2"}[i]}) {
			t.Errorf("%q", got)
		}
	}
}
