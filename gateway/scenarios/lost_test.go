package scenarios

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// load is callers who call one after the other, whatever they get.
type load struct {
	tasks  sync.WaitGroup
	over   atomic.Bool
	faults atomic.Int64

	mu      sync.Mutex
	answers map[int]int // by status
	odd     []answer    // that are neither 200, 429, nor 503 with when to come back
}

// press begins one.
func press(g *door, of call) *load {
	l := &load{answers: map[int]int{}}
	for range 4 {
		l.tasks.Go(func() {
			for !l.over.Load() {
				a, err := of.to(g)
				if err != nil {
					l.faults.Add(1)
					return
				}
				l.note(a)
			}
		})
	}
	return l
}

func (l *load) note(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[a.status]++
	if a.status != 200 && (a.status != 429 && a.status != 503 || a.header.Get("Retry-After") == "") {
		l.odd = append(l.odd, a)
	}
}

func (l *load) got(status int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[status]
}

// goes waits until some more have got a status.
func (l *load) goes(t *testing.T, status int) {
	t.Helper()
	before := l.got(status)
	until(t, fmt.Sprint("more get ", status), func() bool { return l.got(status) >= before+20 })
}

// end ends it. All must have got an answer that makes sense.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.over.Store(true)
	l.tasks.Wait()
	if l.faults.Load() > 0 || len(l.odd) > 0 {
		t.Errorf("%d have got no answer, and %d an odd one: %.1000v", l.faults.Load(), len(l.odd), l.odd)
	}
}

// While Redis is lost, what happens is what the operator has chosen, and it heals by
// itself.
func TestStoreIsLost(t *testing.T) {
	for _, c := range []struct {
		mode  string
		ready int // while it is lost
		goes  int // what clients get then
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
			l := press(&g.door, call{model: "m"})
			l.goes(t, 200)
			redis.Kill()
			l.goes(t, c.goes)
			until(t, fmt.Sprint("it says whether it is ready: ", c.ready), func() bool { return g.fetch(t, "/readyz").status == c.ready })
			sent := len(p.arrivals("m"))
			l.goes(t, c.goes)
			if n := len(p.arrivals("m")); c.mode == "deny" && n != sent {
				t.Errorf("%d calls were sent meanwhile", n-sent)
			}
			if status := g.fetch(t, "/healthz").status; status != 200 {
				t.Errorf("/healthz says %d", status)
			}
			if err := redis.Restart(); err != nil {
				t.Fatal(err)
			}
			until(t, "it is ready again", func() bool { return g.fetch(t, "/readyz").status == 200 })
			l.goes(t, 200)
			l.end(t)
			until(t, "all are counted that have come", func() bool {
				q := g.quota(t, "m")
				return q.Usage != nil && q.Usage.RPD >= len(p.arrivals("m"))
			})
		})
	}
}

// A gateway that is alone has all of each limit, before Redis is lost, meanwhile, and
// when it is back.
func TestShareIsNoMoreThanTheLimit(t *testing.T) {
	redis := redistest.New(t, "--appendonly", "yes", "--appendfsync", "always")
	p := newProvider(t)
	g := start(t, `
on_store_loss: share
providers:
  openai: {base_url: MOCK, models: {m: {max_rpd: 300}}}
defaults: {max_wait: 0s}
`, redis.URL(), p)
	l := press(&g.door, call{model: "m"})
	l.goes(t, 200)
	redis.Kill()
	l.goes(t, 429)
	if err := redis.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, "Redis is asked again", func() bool { n, err := redis.Do("DBSIZE"); return err == nil && n != int64(0) })
	until(t, "what it had granted to nobody has passed too", func() bool { return l.got(200) >= 300 })
	l.goes(t, 429)
	l.end(t)
	if n := len(p.arrivals("m")); n != 300 || l.got(503) != 0 {
		t.Errorf("%d calls have passed, of 300: %v", n, l.answers)
	}
}
