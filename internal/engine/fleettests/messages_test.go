package fleettests

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// overheard is a store that remembers the messages of its node.
type overheard struct {
	store.Store
	mu      sync.Mutex
	sent    []string
	receive func(message []byte)
}

func (s *overheard) Publish(_ context.Context, message []byte) error {
	if err := bus.Check(message); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, string(message))
	return nil
}

func (s *overheard) Subscribe(receive func([]byte)) (func(), error) {
	s.receive = receive
	return func() {}, nil
}

// Whatever comes over the bus, nothing breaks, and calls pass as before.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"node":"x","key":"m/","report":{"m":[{"n":"p","t":{"Weight":1},"g":[{"n":"q","t":{}}],"w":true,"i":5,"p":[{"u":1,"c":2,"r":3,"h":true,"g":4,"q":5}]}],"u":[[1,2,3]]}}`))
	f.Add([]byte(`{"node":"x","waits":["m/","p/"],"wakes":["m/"],"reset":true,"key":"m/"}`))
	f.Add([]byte(`{"node":"x","key":"m/","report":{"m":[{"n":"","p":[{"u":-9223372036854775808}]},{"n":"p","i":-1,"p":[{}]}],"u":[[],[9223372036854775807]]}}`))
	f.Add([]byte(`{"node":"x","key":"m/","report":{"m":[{"n":"a","g":[{"n":"b"}],"p":[{}]},{"n":"b","g":[{"n":"a"}],"p":[{}]},{"n":"c","g":[{"n":"a"},{"n":"b"}],"p":[{}]}]}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		s := &overheard{Store: store.NewMemory()}
		e := engine.New(engine.Config{Store: s, Owned: true, Clock: clock.New()})
		defer e.Close()
		m, p := e.NewShared("m/", "m", nil), e.NewOwn("p/", "p")
		l := limit.New(1_000_000, time.Minute).Using(limit.SlidingLog)
		if err := e.SetRules(m, &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: l}}}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var r engine.Result
			if err := e.Try(t.Context(), &engine.Call{}, engine.Scopes{p, m}, &r); err != nil {
				t.Fatal(err)
			}
			s.receive(message)
		}
	})
}

// A node reports on the models that are called, not on all others each time, and on every project, however long its name
// is: within 20 ms of its calls, and once a second while other nodes have to know of it.
func TestMessages(t *testing.T) { synctest.Test(t, testMessages) }

func testMessages(t *testing.T) {
	s := &overheard{Store: store.NewMemory()}
	e := engine.New(engine.Config{Store: s, Owned: true, Clock: clock.New()})
	defer e.Close()
	const models, projects = 50, 60
	var scopes []*engine.Scope
	for k := range models {
		m := e.NewShared(fmt.Sprintf("m%d/", k), "m", nil)
		l := limit.New(1_000_000, time.Minute).Using(limit.SlidingLog)
		if err := e.SetRules(m, &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: l}}}); err != nil {
			t.Fatal(err)
		}
		scopes = append(scopes, m)
	}
	call := func(project int, m *engine.Scope) {
		name := fmt.Sprintf("%s%03d", strings.Repeat("x", 1000), project)
		p := e.NewOwn("p/"+name+"/", name)
		n := &node{Engine: e, model: m, projects: map[string]*engine.Scope{"p": p}}
		res, err := n.acquire(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		res.Commit(llm.Tokens{})
	}
	for _, m := range scopes {
		call(0, m)
	}
	for k := range projects {
		call(k, scopes[0])
	}
	const ticks = 20
	for range ticks {
		time.Sleep(25 * time.Millisecond)
		call(0, scopes[0])
	}
	told, reports := s.reports(t)
	if len(told) != projects {
		t.Errorf("%d of %d projects were reported", len(told), projects)
	}
	if n := reports["m1/"]; n == 0 || n > 3 {
		t.Errorf("%d messages of a model that was called once, while another was called %d times", n, ticks)
	}
	quiet := strings.Repeat("x", 1000) + "059"
	if n := told[quiet]; n == 0 || n > 3 {
		t.Errorf("%d reports on a project that has called once, while another has called %d times", n, ticks)
	}
	time.Sleep(30 * time.Second)
	if told, _ := s.reports(t); told[quiet] < 25 {
		t.Errorf("%d reports in 30 s on a project that does not call", told[quiet])
	}
	time.Sleep(10 * time.Minute)
	_, before := s.reports(t)
	time.Sleep(10 * time.Second)
	if _, after := s.reports(t); !maps.Equal(before, after) {
		t.Errorf("there are messages although nobody has called for minutes: %v, and 10 s later %v", before, after)
	}
}

// reports returns how often each project was reported, and how many messages on each model were sent.
func (s *overheard) reports(t *testing.T) (told, reports map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told, reports = map[string]int{}, map[string]int{}
	for _, text := range s.sent {
		var m struct {
			Key    string
			Report struct {
				M []struct{ N string }
			}
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		reports[m.Key]++
		for _, each := range m.Report.M {
			told[each.N]++
		}
	}
	return told, reports
}

// However many projects have limits that are divided, a node sends a bounded number of reports on them.
func TestReportsOnManyProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &overheard{Store: store.NewMemory()}
		e := engine.New(engine.Config{Store: s, Owned: true, Clock: clock.New()})
		defer e.Close()
		for i := range 2000 {
			org := e.NewOwn(fmt.Sprintf("o%d/", i), fmt.Sprintf("o%d", i))
			l := limit.New(100, time.Minute).Using(limit.SlidingLog)
			if err := e.SetRules(org, &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: l}}}); err != nil {
				t.Fatal(err)
			}
			team := e.NewBelow(org, org.Key+"team/", org.Name+"/team")
			var r engine.Result
			if err := e.Try(t.Context(), &engine.Call{}, team.Append(nil), &r); err != nil || !r.Allowed() {
				t.Fatal(r, err)
			}
		}
		time.Sleep(20 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.sent); n < 2000 || n > 20*500 {
			t.Errorf("%d messages in 20 s; want one for each project, and 500 a second at most", n)
		}
	})
}

// renewing is a store that renews slots, as those do that processes share.
type renewing struct{ *overheard }

func (r renewing) Renew(ctx context.Context, receipt store.Receipt, places []int) (store.Receipt, error) {
	return hidden.Of[accounts.Renewer](r.Store).Renew(ctx, receipt, places)
}

// While no call waits for a slot, a process reports its slots as rarely as its other limits, and not with each call.
func TestMessagesOfSlots(t *testing.T) {
	sent := func(t *testing.T, limits ...engine.Limit) int {
		s := &overheard{Store: store.NewMemory()}
		rules := func() *engine.Rules { return &engine.Rules{Limits: slices.Clone(limits)} }
		n := newNodes(t, func() (store.Store, error) { return renewing{s}, nil }, 1, rules, map[string]int{"a": 1})[0]
		for range 1000 {
			res, err := n.acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			res.Commit(llm.Tokens{})
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.sent)
	}
	synctest.Test(t, func(t *testing.T) {
		requests := engine.Limit{Name: "requests", Unit: engine.Requests, Limit: limit.PerMinute(1_000_000)}
		without := sent(t, requests)
		with := sent(t, requests, slots(100)().Limits[0])
		if with > 3*without {
			t.Errorf("%d messages without slots, and %d with them", without, with)
		}
	})
}
