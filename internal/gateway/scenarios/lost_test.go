package scenarios

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// load is callers that each send one call after another, whatever the answers are.
type load struct {
	tasks  sync.WaitGroup
	over   atomic.Bool
	faults atomic.Int64

	mu         sync.Mutex
	answers    map[int]int // how many, by status
	unexpected []answer    // other answers than 200, 429, and 503 that say when to come back
}

// startLoad starts a load.
func startLoad(g *gatewayURLs, of call) *load {
	l := &load{answers: map[int]int{}}
	for range 4 {
		l.tasks.Go(func() {
			for !l.over.Load() {
				a, err := of.to(g)
				if err != nil {
					l.faults.Add(1)
					return
				}
				l.record(a)
			}
		})
	}
	return l
}

func (l *load) record(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[a.status]++
	says := a.header.Get("Retry-After") != "" || strings.Contains(a.body, `"resets_at":`) // a long wait is in the body
	if a.status != 200 && (a.status != 429 && a.status != 503 || !says) {
		l.unexpected = append(l.unexpected, a)
	}
}

func (l *load) got(status int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[status]
}

// awaitMore waits until more calls have got a status.
func (l *load) awaitMore(t *testing.T, status int) {
	t.Helper()
	before := l.got(status)
	testkit.Eventually(t, fmt.Sprint("more get ", status), func() bool { return l.got(status) >= before+20 })
}

// end ends the load, and expects that no answer was unexpected.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.over.Store(true)
	l.tasks.Wait()
	if l.faults.Load() > 0 || len(l.unexpected) > 0 {
		t.Errorf("%d have got no answer, and %d an odd one: %+v", l.faults.Load(), len(l.unexpected), l.unexpected[:min(len(l.unexpected), 2)])
	}
}

// While Redis is lost, on_store_loss decides what happens. When Redis is back, the gateway
// goes on by itself.
func TestStoreIsLost(t *testing.T) {
	for _, c := range []struct {
		mode  string
		ready int // the status of /readyz while Redis is lost
		goes  int // the status of calls while Redis is lost
	}{
		{"deny", 503, 503},
		{"allow", 200, 200},
		{"share", 200, 200},
	} {
		t.Run(c.mode, func(t *testing.T) {
			redis := redistest.New(t, "--appendonly", "yes", "--appendfsync", "always")
			p := newProvider(t)
			g := start(t, "on_store_loss: "+c.mode+`
providers:
  openai: {base_url: MOCK, models: {m: {max_rpd: 1_000_000}}}
defaults: {max_wait: 0s}
`, redis.URL(), p)
			l := startLoad(&g.gatewayURLs, call{model: "m"})
			l.awaitMore(t, 200)
			redis.Kill()
			l.awaitMore(t, c.goes)
			testkit.Eventually(t, fmt.Sprint("it says whether it is ready: ", c.ready), func() bool { return g.fetch(t, "/readyz").status == c.ready })
			sent := len(p.arrivals("m"))
			l.awaitMore(t, c.goes)
			if n := len(p.arrivals("m")); c.mode == "deny" && n != sent {
				t.Errorf("%d calls were sent meanwhile", n-sent)
			}
			if status := g.fetch(t, "/healthz").status; status != 200 {
				t.Errorf("/healthz says %d", status)
			}
			if err := redis.Restart(); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "it is ready again", func() bool { return g.fetch(t, "/readyz").status == 200 })
			l.awaitMore(t, 200)
			l.end(t)
			testkit.Eventually(t, "all are counted that have come", func() bool {
				q := g.quota(t, "m")
				return q.Usage != nil && q.Usage.Used["max_rpd"] >= len(p.arrivals("m"))
			})
		})
	}
}

// With on_store_loss: share, a single gateway may use all of each limit, and no more: before
// Redis is lost, meanwhile, and when it is back.
func TestShareIsNoMoreThanTheLimit(t *testing.T) {
	redis := redistest.New(t, "--appendonly", "yes", "--appendfsync", "always")
	p := newProvider(t)
	g := start(t, `
on_store_loss: share
providers:
  openai: {base_url: MOCK, models: {m: {max_rpd: 300}}}
defaults: {max_wait: 0s}
`, redis.URL(), p)
	l := startLoad(&g.gatewayURLs, call{model: "m"})
	l.awaitMore(t, 200)
	redis.Kill()
	l.awaitMore(t, 429)
	if err := redis.Restart(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "Redis is asked again", func() bool { n, err := redis.Do("DBSIZE"); return err == nil && n != int64(0) })
	testkit.Eventually(t, "what it had granted to nobody has passed too", func() bool { return l.got(200) >= 300 })
	l.awaitMore(t, 429)
	l.end(t)
	if n := len(p.arrivals("m")); n != 300 || l.got(503) != 0 {
		t.Errorf("%d calls have passed, of 300: %v", n, l.answers)
	}
}
