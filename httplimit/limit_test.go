package httplimit

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// byPath is the key of a request in these tests.
func byPath(r *http.Request) string { return r.URL.Path }

func everybody(*http.Request) struct{} { return struct{}{} }

// lengthOf is the cost of a request by the length of its body.
func lengthOf(r *http.Request) int64 { return r.ContentLength }

// body returns a request with a body of a length.
func body(bytes int) *http.Request {
	return httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", bytes)))
}

func to(path string) *http.Request { return httptest.NewRequest("GET", path, nil) }

// The headers, byte for byte: no time passes in a bubble, which begins at midnight UTC.
func TestLimitFields(t *testing.T) {
	second, minute, hour, day := limit.PerSecond(10), limit.PerMinute(200), limit.PerHour(5), limit.PerDay(1000).ResetAt(0, nil)
	by := func(limits ...limit.Limit) *limit.Limiter[*http.Request, string] {
		return limit.NewLimiter(byPath, limits...)
	}
	costing := func(n int64) func(*http.Request) int64 { return func(*http.Request) int64 { return n } }
	chosen := func(*http.Request) []limit.Limit { return []limit.Limit{second} }
	for _, c := range []struct {
		name          string
		limiter       func() Limiter
		limits, rules string
	}{
		{"one limit", func() Limiter { return by(second) }, `"10/s";r=9;t=1`, `"10/s";q=10;w=1`},
		{"two limits", func() Limiter { return by(minute, second) }, `"10/s";r=9;t=1`, `"10/s";q=10;w=1`},
		{"combined", func() Limiter { return limit.Combine(by(second, minute), limit.NewLimiter(everybody, hour)) },
			`"5/h";r=4;t=720`, `"5/h";q=5;w=3600`},
		{"a burst", func() Limiter { return by(minute.WithBurst(300)) },
			`"200/min burst 300";r=299;t=1`, `"200/min burst 300";q=200;w=60`},
		{"a calendar's day", func() Limiter { return by(day) },
			`"1000/day fixed at 00:00 UTC";r=999;t=82800`, `"1000/day fixed at 00:00 UTC";q=1000;w=86400`},
		{"less than a second", func() Limiter { return by(limit.New(2, 100*time.Millisecond).Using(limit.SlidingLog)) },
			`"2/100ms log";r=1;t=1`, `"2/100ms log";q=2;w=1`},
		{"chosen by a function", func() Limiter { return limit.NewLimiterFunc(byPath, chosen) }, `"10/s";r=9;t=1`, `"10/s";q=10;w=1`},
		{"a cost", func() Limiter { return by(minute).WithCost(costing(50)) }, `"200/min";r=150;t=15`, `"200/min";q=200;w=60`},
		{"no cost", func() Limiter { return by(minute).WithCost(costing(0)) }, `"200/min";r=200;t=0`, `"200/min";q=200;w=60`},
		{"no limits", func() Limiter { return by() }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // away from midnight
				w := do(Limit(c.limiter())(&fine{}), to("/"))
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

func TestLimitTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &fine{}
		h := Limit(limit.NewLimiter(byPath, limit.PerMinute(2).Using(limit.SlidingLog), limit.PerDay(100)))(next)
		do(h, to("/"))
		time.Sleep(1500 * time.Millisecond)
		do(h, to("/"))

		w := do(h, to("/"))
		p := parseProblem(t, w.Header(), w.Body.Bytes())
		if w.Code != 429 || p.Status != 429 || p.Type != typeQuota || p.Detail != `the limit "2/min log" is reached: try again in 59s` {
			t.Errorf("%d: %+v", w.Code, p)
		}
		if !slices.Equal(p.Violated, []string{"2/min log"}) {
			t.Errorf("violated: %v", p.Violated)
		}
		if got := w.Header().Get("Retry-After"); got != "59" { // 58.5 rounded up
			t.Errorf("Retry-After: %s", got)
		}
		if got := w.Header().Get("RateLimit"); got != `"2/min log";r=0;t=59` {
			t.Errorf("RateLimit: %s", got)
		}
		if got := w.Header().Get("RateLimit-Policy"); got != `"2/min log";q=2;w=60` {
			t.Errorf("RateLimit-Policy: %s", got)
		}
		if w := do(h, to("/other")); w.Code != 200 {
			t.Errorf("%d for another key", w.Code)
		}
		if next.calls.Load() != 3 {
			t.Errorf("%d calls", next.calls.Load())
		}
		time.Sleep(59 * time.Second)
		if w := do(h, to("/")); w.Code != 200 {
			t.Errorf("%d at the time that Retry-After has said", w.Code)
		}
	})
}

// Each limiter of a combination has a cost of its own, and a denial charges none of them.
func TestLimitCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := limit.NewLimiter(everybody, limit.PerMinute(10))
		bytes := limit.NewLimiter(everybody, limit.PerMinute(1000)).WithCost(lengthOf)
		h := Limit(limit.Combine(requests, bytes))(&fine{})
		for _, step := range []struct {
			bytes, status           int
			requestsLeft, bytesLeft int64
			after, limits           string
		}{
			{bytes: 600, status: 200, requestsLeft: 9, bytesLeft: 400, limits: `"10/min";r=9;t=6`},
			{bytes: 500, status: 429, requestsLeft: 9, bytesLeft: 400, limits: `"1000/min";r=400;t=6`, after: "6"},
			{bytes: 1001, status: 400, requestsLeft: 9, bytesLeft: 400, limits: `"1000/min";r=400`},
			{bytes: 400, status: 200, requestsLeft: 8, bytesLeft: 0, limits: `"1000/min";r=0;t=60`},
			{bytes: 0, status: 200, requestsLeft: 7, bytesLeft: 0, limits: `"1000/min";r=0;t=60`},
		} {
			w := do(h, body(step.bytes))
			if w.Code != step.status || w.Header().Get("Retry-After") != step.after || w.Header().Get("RateLimit") != step.limits {
				t.Errorf("%d bytes: %d %v", step.bytes, w.Code, w.Header())
			}
			if left := requests.Peek(nil).Remaining; left != step.requestsLeft {
				t.Errorf("%d bytes: %d requests left", step.bytes, left)
			}
			if left := bytes.Peek(body(0)).Remaining; left != step.bytesLeft {
				t.Errorf("%d bytes: %d bytes left", step.bytes, left)
			}
		}
	})
}

// A request that can never pass gets a 400 at once, and does not wait.
func TestLimitNever(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit limit.Limit
		cost  int64
		field string
	}{
		{"too large", limit.PerMinute(10), 11, `"10/min";r=10`},
		{"negative", limit.PerMinute(10), -1, `"10/min";r=10`},
		{"a limit that is not valid", limit.PerSecond(0), 1, `"0/s";r=0`},
		{"no limit at all", limit.Limit{}, 1, `"0/0s";r=0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := &fine{}
			limiter := limit.NewLimiter(byPath, c.limit).WithCost(func(*http.Request) int64 { return c.cost })
			w := do(Limit(limiter, Wait(time.Hour))(next), to("/"))
			p := parseProblem(t, w.Header(), w.Body.Bytes())
			if w.Code != 400 || p.Status != 400 || len(p.Violated) != 1 || next.calls.Load() != 0 {
				t.Errorf("%d: %+v", w.Code, p)
			}
			if got := w.Header().Get("RateLimit"); got != c.field || w.Header()["Retry-After"] != nil {
				t.Errorf("%v", w.Header())
			}
			parse(t, w.Header(), "RateLimit-Policy")
		})
	}
}

// A negative cost is refused even without limits, and then the response has no headers with
// limits.
func TestLimitNegativeCostWithoutLimits(t *testing.T) {
	limiter := limit.NewLimiter(byPath).WithCost(func(*http.Request) int64 { return -1 })
	if w := do(Limit(limiter)(&fine{}), to("/")); w.Code != 400 {
		t.Error(w.Code, w.Header())
	}
}

// Requests are counted by keys of any type, and a key function that panics affects no other
// request.
func TestLimitKeys(t *testing.T) {
	var r *http.Request
	for name, limiter := range map[string]Limiter{
		"empty":    limit.NewLimiter(func(*http.Request) string { return "" }, limit.PerDay(2)),
		"long":     limit.NewLimiter(func(*http.Request) string { return strings.Repeat("k", 1<<20) }, limit.PerDay(2)),
		"not text": limit.NewLimiter(func(*http.Request) string { return "\xff\x00\r\nRateLimit: x" }, limit.PerDay(2)),
		"a struct": limit.NewLimiter(func(r *http.Request) [2]string { return [2]string{r.Method, r.URL.Path} }, limit.PerDay(2)),
		"unknown":  limit.NewLimiter(ClientPrefix(), limit.PerDay(2)),
	} {
		next := &fine{}
		h := Limit(limiter)(next)
		for range 5 {
			r = to("/")
			r.RemoteAddr = "@" // a Unix socket has no IP address
			do(h, r)
		}
		if next.calls.Load() != 2 {
			t.Errorf("%s: %d calls", name, next.calls.Load())
		}
	}

	next := &fine{}
	h := Limit(limit.NewLimiter(func(r *http.Request) string {
		if r.URL.Path == "/bad" {
			panic(http.ErrAbortHandler)
		}
		return ""
	}, limit.PerDay(2)))(next)
	server := httptest.NewServer(h)
	defer server.Close()
	for range 3 {
		if response, err := server.Client().Get(server.URL + "/bad"); !errors.Is(err, io.EOF) {
			t.Error(response, err)
		}
	}
	for range 3 {
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if next.calls.Load() != 2 {
		t.Errorf("%d calls", next.calls.Load())
	}
}

// Of 300 concurrent requests over connections, exactly as many pass as the limit allows, each
// with another remainder.
func TestLimitIsExact(t *testing.T) {
	const requests, passing = 300, 10
	perDay := limit.PerDay(passing)
	for _, l := range []struct {
		name    string
		limiter func() Limiter
	}{
		{"one limit", func() Limiter { return limit.NewLimiter(ClientPrefix(), perDay) }},
		{"two limits", func() Limiter {
			return limit.NewLimiter(ClientPrefix(), perDay.Using(limit.SlidingLog), limit.PerHour(1000))
		}},
		{"combined", func() Limiter {
			return limit.Combine(limit.NewLimiter(ClientPrefix(), limit.PerDay(1000)), limit.NewLimiter(everybody, perDay))
		}},
	} {
		for _, p := range protocols {
			if p.name == "h2" {
				continue // takes 300 handshakes, and is otherwise like h2c
			}
			t.Run(l.name+"/"+p.name, func(t *testing.T) {
				next := &fine{}
				url, client := p.start(t, Limit(l.limiter())(next))
				var mu sync.Mutex
				var all sync.WaitGroup
				var left []int64
				codes := map[int]int{}
				for range requests {
					all.Go(func() {
						response, err := client.Get(url)
						if err != nil {
							t.Error(err)
							return
						}
						defer response.Body.Close()
						io.Copy(io.Discard, response.Body)
						mu.Lock()
						defer mu.Unlock()
						codes[response.StatusCode]++
						if response.StatusCode == 200 {
							left = append(left, parse(t, response.Header, "RateLimit")[0].r)
						}
					})
				}
				all.Wait()
				slices.Sort(left)
				if codes[200] != passing || codes[429] != requests-passing || next.calls.Load() != passing {
					t.Errorf("%v, %d calls", codes, next.calls.Load())
				}
				if !slices.Equal(left, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
					t.Errorf("remainders: %v", left)
				}
			})
		}
	}
}

// seen is a decision that Observe was called with.
type seen struct {
	path    string
	allowed bool
	left    int64
}

// Observe is called once for each request: for those that pass, that do not, and that waited.
func TestLimitObserve(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []Option
		codes   []int
		want    []seen
	}{
		{"denying", nil, []int{200, 200, 429},
			[]seen{{"/a", true, 1}, {"/a", true, 0}, {"/a", false, 0}}},
		{"shadow", []Option{Shadow(), Wait(24 * time.Hour)}, []int{200, 200, 200},
			[]seen{{"/a", true, 1}, {"/a", true, 0}, {"/a", false, 0}}},
		{"waiting", []Option{Wait(24 * time.Hour)}, []int{200, 200, 200},
			[]seen{{"/a", true, 1}, {"/a", true, 0}, {"/a", true, 0}}},
		{"skipping", []Option{Skip(func(*http.Request) bool { return true })}, []int{200, 200, 200}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var observed []seen
				observe := Observe(func(r *http.Request, d limit.Decision) {
					observed = append(observed, seen{r.URL.Path, d.Allowed, d.Remaining})
				})
				next := &fine{}
				h := Limit(limit.NewLimiter(byPath, limit.PerDay(2)), append(c.options, observe)...)(next)
				var silent bool
				var passed int32
				for i, want := range c.codes {
					w := do(h, to("/a"))
					if w.Code != want {
						t.Errorf("request %d: %d", i, w.Code)
					}
					if w.Code == 200 {
						passed++
					}
					silent = w.Header()["Ratelimit"] == nil && w.Header()["Ratelimit-Policy"] == nil && w.Header()["Retry-After"] == nil
				}
				if !slices.Equal(observed, c.want) || next.calls.Load() != passed {
					t.Errorf("observed %v, %d calls", observed, next.calls.Load())
				}
				if want := c.name == "shadow" || c.name == "skipping"; silent != want {
					t.Errorf("silent: %v", silent)
				}
			})
		})
	}
}

// A custom answer gets the status and the reason, and the headers are set.
func TestAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := Answer(func(w http.ResponseWriter, r *http.Request, status int, reason string) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %d: %s", r.URL.Path, status, reason)
		})
		plain := limit.NewLimiter(byPath, limit.PerDay(5)).WithCost(lengthOf)
		projects := newLimiter(t, project.Limit{RequestsPerDay: 1})
		for _, c := range []struct {
			name   string
			h      http.Handler
			r      *http.Request
			says   string
			fields bool
		}{
			{"later", Limit(plain, own)(&fine{}), body(3), `/ 429: the limit "5/day" is reached: try again in 17280s`, true},
			{"never", Limit(plain, own)(&fine{}), body(6), `/ 400: it costs more than the limit "5/day" ever lets pass`, true},
			{"of a project", Middleware(projects, own)(&fine{}), request("GET"), `/ 429: the limit "requests_per_day" is reached: try again in 86400s`, true},
			{"without a project", Middleware(projects, own)(&fine{}), to("/"),
				"/ 400: the header X-Project-ID is missing: it names the project of a request", false},
		} {
			do(c.h, c.r)
			w := do(c.h, c.r)
			if w.Code != http.StatusTeapot || w.Body.String() != c.says || w.Header().Get("Content-Type") != "text/plain" {
				t.Errorf("%s: %d: %s", c.name, w.Code, w.Body)
			}
			if (parse(t, w.Header(), "RateLimit") != nil) != c.fields || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", c.name, w.Header())
			}
		}
	})
}

// The headers name each limit, also if many limits share an entry of the cache.
func TestLimitPolicyFollowsTheLimits(t *testing.T) {
	limits := []limit.Limit{
		limit.PerMinute(10), limit.PerMinute(10).WithBurst(20), limit.PerMinute(10).Using(limit.SlidingLog),
		limit.PerMinute(10).Anchored(), limit.PerMinute(11), limit.PerHour(10),
	}
	h := Limit(limit.NewLimiterFunc(byPath, func(r *http.Request) []limit.Limit {
		i, _ := strconv.Atoi(r.URL.Path[1:])
		return limits[i : i+1]
	}))(&fine{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 100 {
				i := n % len(limits)
				w := do(h, to("/"+strconv.Itoa(i)))
				rules := parse(t, w.Header(), "RateLimit-Policy")
				left := parse(t, w.Header(), "RateLimit")
				want := limits[i]
				if len(rules) != 1 || rules[0].name != want.String() || rules[0].q != want.Count() || rules[0].w != int64(want.Period().Seconds()) {
					t.Errorf("%v: %+v", want, rules)
				}
				if len(left) != 1 || left[0].name != want.String() {
					t.Errorf("%v: %+v", want, left)
				}
			}
		})
	}
	all.Wait()
}

// The limiter's functions are called once for each request, so they may be slow.
func TestLimitAsksOnce(t *testing.T) {
	calls := map[string]int{}
	limiter := limit.NewLimiterFunc(
		func(*http.Request) string { calls["key"]++; return "" },
		func(*http.Request) []limit.Limit { calls["limits"]++; return []limit.Limit{limit.PerDay(1)} },
	).WithCost(func(*http.Request) int64 { calls["cost"]++; return 1 })
	h := Limit(limiter)(&fine{})
	for n := range 3 {
		do(h, to("/"))
		for _, f := range []string{"key", "limits", "cost"} {
			if calls[f] != n+1 {
				t.Errorf("%s: called %d times for %d requests", f, calls[f], n+1)
			}
		}
	}
}

func TestLimitPanicsOnInvalidOptions(t *testing.T) {
	limiter := limit.NewLimiter(byPath, limit.PerDay(1))
	testkit.Panics(t, map[string]func(){
		"limiter":    func() { Limit(nil) },
		"Identify":   func() { Limit(limiter, Identify(ClientIP())) },
		"Cost":       func() { Limit(limiter, Cost(func(*http.Request) (int, int, error) { return 1, 0, nil })) },
		"Observe":    func() { Observe(nil) },
		"Answer":     func() { Answer(nil) },
		"Middleware": func() { Middleware(newLimiter(t, plenty), Observe(func(*http.Request, limit.Decision) {})) },
	})
}

// A request that passes costs one allocation, as with projects.
func TestLimitAllocations(t *testing.T) {
	bare := testing.AllocsPerRun(1000, rounds(nothing))
	for name, limiter := range plainLimiters() {
		if got := testing.AllocsPerRun(1000, rounds(Limit(limiter)(nothing))) - bare; got > 1 {
			t.Errorf("%s: %v allocations", name, got)
		}
		if got := testing.AllocsPerRun(1000, rounds(Limit(limiter, Shadow())(nothing))) - bare; got > 0 {
			t.Errorf("%s: %v allocations in the shadow", name, got)
		}
	}
}

func plainLimiters() map[string]Limiter {
	byClient := limit.NewLimiter(ClientPrefix(), limit.PerSecond(1e9))
	return map[string]Limiter{
		"one limit":  byClient,
		"two limits": limit.NewLimiter(ClientPrefix(), limit.PerSecond(1e9), limit.PerMinute(2e9)),
		"combined":   limit.Combine(byClient, limit.NewLimiter(everybody, limit.PerMinute(2e9))),
	}
}

func BenchmarkLimit(b *testing.B) {
	for name, limiter := range plainLimiters() {
		b.Run(name, func(b *testing.B) {
			round := rounds(Limit(limiter)(nothing))
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
		})
	}
}
