package project_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// What was used stays, whatever the limit is.
func TestSetLimitKeepsWhatWasUsed(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{RequestsPerMinute: 10}}))
			c := project.Call{Project: "p"}
			use(t, l, "p", 10)
			use(t, l, "q", 10)
			for most, remains := range map[int]int64{3: 0, 10: 0, 11: 1, 1000: 990, 1: 0} {
				setLimit(t, l, "p", project.Limit{RequestsPerMinute: most})
				if left := left(t, l, "p"); left["requests_per_minute"] != remains {
					t.Errorf("with %d: %d left; want %d", most, left["requests_per_minute"], remains)
				}
				if d := spend(t, l, project.Call{Project: "q"}); d.Allowed {
					t.Error("the limit of another project has changed")
				}
			}
			setLimit(t, l, "p", project.Limit{})
			for range 5 {
				spend(t, l, c)
			}
			setLimit(t, l, "p", project.Limit{RequestsPerMinute: 11}) // while it was unlimited, nothing was counted
			if left := left(t, l, "p"); left["requests_per_minute"] != 1 {
				t.Errorf("%d left; want 1", left["requests_per_minute"])
			}
		})
	}
}

func TestSetLimits(t *testing.T) {
	first := map[string]project.Limit{"a": {RequestsPerMinute: 1}}
	l := newLimiter(t, project.Config{Limits: first})
	more := map[string]project.Limit{"a": {RequestsPerHour: 2}, "b": {TokensPerDay: 3, Weight: 4, Reserve: project.ReserveMost, OnOverrun: project.OverrunCut}}
	if err := l.SetLimits(more); err != nil || !maps.Equal(l.Limits(), more) {
		t.Errorf("%v, %v", l.Limits(), err)
	}
	if err := l.SetLimits(map[string]project.Limit{"a": {}, "c": {}, "d": {Weight: -1}}); err == nil || !maps.Equal(l.Limits(), more) {
		t.Errorf("%v, %v", l.Limits(), err)
	}
	if err := l.SetLimits(nil); err != nil || !maps.Equal(l.Limits(), more) {
		t.Errorf("%v, %v", l.Limits(), err)
	}
	if l.Limit("c") != *project.DefaultLimit {
		t.Errorf("%+v", l.Limit("c"))
	}
}

// Limits may be set while calls are made: each call goes by one of them.
func TestSetLimitMeanwhile(t *testing.T) {
	l := limited(t, project.Limit{})
	few, many := project.Limit{RequestsPerMinute: 50, TokensPerHour: 1 << 40}, project.Limit{RequestsPerHour: 60, RequestsPerDay: 1 << 40}
	var all sync.WaitGroup
	var mu sync.Mutex
	passed := map[string]int{}
	setLimit(t, l, "p", few)
	for worker := range 8 {
		id := []string{"p", "q"}[worker%2]
		all.Go(func() {
			for i := range 300 {
				c := project.Call{Project: id, Estimated: i % 2}
				d := spend(t, l, c)
				res, taken, err := l.Take(t.Context(), c)
				for _, d := range []project.Decision{d, taken} {
					for _, s := range d.Windows() {
						if s.Window == nil || s.RetryAfter < 0 || d.Allowed && s.RetryAfter > 0 {
							t.Errorf("%+v, %v", s, err)
						}
					}
				}
				mu.Lock()
				if d.Allowed {
					passed[id]++
				}
				if res != nil {
					passed[id]++
				}
				mu.Unlock()
			}
		})
		all.Go(func() {
			for i := range 300 {
				l.SetLimits(map[string]project.Limit{"p": []project.Limit{few, many}[i%2], fmt.Sprint(i): few})
				l.Limits()
			}
		})
	}
	all.Wait()
	if passed["p"] > 60 || passed["p"] < 50 || passed["q"] != 4*2*300 {
		t.Errorf("%v have passed; p may have 50 or 60, and q any number", passed)
	}
}

// A project whose limit is unset has the default one, and its calls that wait go by that
// at once.
func TestUnsetLimit(t *testing.T) {
	cfg := project.Config{Default: &project.Limit{RequestsPerMinute: 3}, Limits: map[string]project.Limit{"p": {RequestsPerMinute: 1}, "q": {RequestsPerDay: 1}}}
	inLine(t, cfg, func(t *testing.T, l *line, c project.Call) {
		for _, name := range []string{"a", "b", "c", "d"} {
			l.join(t.Context(), name, c)
		}
		l.sleep(time.Second)
		l.passed(t, "a")
		for range 2 { // of what is not set nothing is left to do
			if err := l.UnsetLimit("p"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			l.passed(t, "a", "b", "c")
		}
		if want := map[string]project.Limit{"q": {RequestsPerDay: 1}}; l.Limit("p") != *cfg.Default || !maps.Equal(l.Limits(), want) {
			t.Errorf("%+v, %v", l.Limit("p"), l.Limits())
		}
		l.sleep(time.Minute)
		l.passed(t, "a", "b", "c", "d")
		if err := l.UnsetLimit("no id"); !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%v", err)
		}
	})
}

// A limit that is set or taken back, a new default and a reset reach calls that wait, of
// projects with a limit of their own and of others, also if the limiter has forgotten what
// it had made ready for them.
func TestSettingsReachCallsThatWait(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		cfg := project.Config{Default: &project.Limit{RequestsPerDay: 1}, Limits: map[string]project.Limit{"own": {RequestsPerDay: 1}}}
		inLine(t, cfg, func(t *testing.T, l *line, c project.Call) {
			var want []string
			for _, id := range []string{"own", "usual"} {
				c.Project = id
				for i := range 6 {
					l.join(t.Context(), fmt.Sprint(id, " ", i), c)
				}
				want = append(want, id+" 0")
			}
			l.passed(t, want...)
			cancel := func(name string) error {
				l.cancel(name)
				return nil
			}
			for i, step := range []struct {
				do   func() error
				pass []string
			}{
				{func() error { return l.SetLimit("own", project.Limit{RequestsPerDay: 2}) }, []string{"own 1"}},
				{func() error { return l.SetDefault(project.Limit{RequestsPerDay: 3}) }, []string{"usual 1", "usual 2"}},
				{func() error { return l.UnsetLimit("own") }, []string{"own 2"}},
				{func() error { return l.SetDefault(project.Limit{RequestsPerDay: 4}) }, []string{"own 3", "usual 3"}},
				{func() error { return l.SetDefault(project.Limit{RequestsPerDay: 2}) }, nil},
				{func() error { return l.SetLimit("other", project.Limit{}) }, nil},
				{func() error { return l.Reset(t.Context(), "usual") }, []string{"usual 4", "usual 5"}},
				{func() error { return l.SetLimit("own", project.Limit{RequestsPerDay: 4}) }, nil},
				{func() error { return cancel("own 0") }, []string{"own 4"}},
				{func() error { return l.SetLimit("own", project.Limit{}) }, []string{"own 5"}},
			} {
				l.sleep(time.Duration(i+1) * time.Second)
				if forgets {
					l.ForgetScopes()
				}
				if err := step.do(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				want = append(want, step.pass...)
				l.passed(t, want...)
			}
		})
	}
}

// meanwhile is a store that does something while it is asked for the n-th time.
type meanwhile struct {
	*store.Memory
	n  int
	do func()
}

func (m *meanwhile) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	m.n--
	if m.n == 0 {
		defer m.do()
	}
	return m.Memory.Take(ctx, charges)
}

// A call goes by a limit that is set while it asks, before it waits or in its turn, although the
// limiter has forgotten meanwhile what it had made ready for the project.
func TestSettingsReachACallThatIsAboutToWait(t *testing.T) {
	for name, set := range map[string]func(l *project.Limiter) error{
		"SetLimit":   func(l *project.Limiter) error { return l.SetLimit("p", project.Limit{RequestsPerDay: 2}) },
		"UnsetLimit": func(l *project.Limiter) error { return l.UnsetLimit("own") },
		"SetDefault": func(l *project.Limiter) error { return l.SetDefault(project.Limit{RequestsPerDay: 2}) },
	} {
		for asked := 2; asked <= 3; asked++ { // the first belongs to a call which passes
			t.Run(fmt.Sprint(name, " at ", asked), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &meanwhile{Memory: store.NewMemory(), n: asked}
					cfg := project.Config{Default: &project.Limit{RequestsPerDay: 1}, Store: s}
					c := project.Call{Project: "p"}
					if name == "UnsetLimit" {
						cfg.Default, cfg.Limits = &project.Limit{}, map[string]project.Limit{"own": {RequestsPerDay: 1}}
						c.Project = "own"
					}
					l := newLine(newLimiter(t, cfg))
					s.do = func() {
						l.ForgetScopes()
						spend(t, l.Limiter, project.Call{Project: "another"}) // which has a scope now
						if err := set(l.Limiter); err != nil {
							t.Error(err)
						}
					}
					l.join(t.Context(), "a", c)
					l.join(t.Context(), "b", c)
					if asked == 3 {
						l.commit("a", 0, 0) // so that b asks again
					}
					synctest.Wait()
					l.passed(t, "a", "b")
				})
			})
		}
	}
}

// A limiter forgets what it has made ready for projects when there are too many of them. The
// projects lose nothing: neither what they have used nor what they have reserved, nor their
// limits.
func TestForgottenProjectsLoseNothing(t *testing.T) {
	const some, others = 20, 20_000
	for _, name := range []string{"memory", "another store"} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kinds[name](t, project.Config{Default: &project.Limit{RequestsPerDay: 9, TokensPerDay: 100, MaxConcurrent: 2}}))
			reserved := map[string]*project.Reservation{}
			for i := range some {
				id := fmt.Sprint("p", i)
				if i%2 == 0 {
					setLimit(t, l, id, project.Limit{RequestsPerDay: 9, TokensPerDay: 100, MaxConcurrent: 1})
				}
				res, d, err := l.Take(t.Context(), project.Call{Project: id, Estimated: 60})
				if err != nil || !d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
				reserved[id] = res
			}
			for i := range others {
				res, _, err := l.Take(t.Context(), project.Call{Project: fmt.Sprint("other", i)})
				if err != nil {
					t.Fatal(err)
				}
				res.Cancel()
			}
			if kept, _ := l.Scopes(); kept > project.KeptScopes || kept < project.KeptScopes/2 {
				t.Errorf("%d scopes are kept; want up to %d", kept, project.KeptScopes)
			}
			l.ForgetScopes()
			testkit.Eventually(t, "only the scopes remain that reservations have", func() bool {
				runtime.GC()
				kept, forgotten := l.Scopes()
				return kept == 0 && forgotten == some
			})
			for id, res := range reserved {
				d, err := l.Peek(t.Context(), id)
				if most := int64(l.Limit(id).MaxConcurrent); err != nil || d.Allowed != (most > 1) || d.Concurrent != 1 || left(t, l, id)["requests_per_day"] != 8 || left(t, l, id)["tokens_per_day"] != 40 {
					t.Errorf("%s, of %d at a time: %+v, %v, left: %v", id, most, d, err, left(t, l, id))
				}
				res.Commit(10, 5)
				if d, err := l.Peek(t.Context(), id); err != nil || !d.Allowed || d.Concurrent != 0 || left(t, l, id)["tokens_per_day"] != 85 {
					t.Errorf("%s, committed: %+v, %v, left: %v", id, d, err, left(t, l, id))
				}
			}
		})
	}
}

// Windows are the same ones as long as the limit stays, so that callers who have made
// something of them may keep it.
func TestWindowsStay(t *testing.T) {
	url := redistest.New(t).URL()
	for name, cfg := range map[string]project.Config{
		"memory": {}, "SQLite": {Store: openSQLite(t, t.TempDir()+"/limits.db")}, "Redis": {Store: openRedis(t, url)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Limits = map[string]project.Limit{"p": {RequestsPerMinute: 9, TokensPerHour: 9}}
			l := newLimiter(t, cfg)
			setLimit(t, l, "p", project.Limit{RequestsPerHour: 9, TokensPerHour: 9})
			of := func(id string) (all []*project.Window) {
				_, d, err := l.Take(t.Context(), project.Call{Project: id, Estimated: 1})
				if err != nil {
					t.Fatal(err)
				}
				spent := spend(t, l, project.Call{Project: id, Estimated: 1})
				for i, s := range d.Windows() {
					if spent.Windows()[i].Window != s.Window {
						t.Errorf("%q has two windows %q", id, s.Window.Name)
					}
					all = append(all, s.Window)
				}
				return all
			}
			mine, usual := of("p"), of("q")
			if len(mine) != 2 || len(usual) != 3 || mine[0].Name != "requests_per_hour" || mine[1].Name != "tokens_per_hour" || usual[2].Name != "requests_per_day" {
				t.Fatalf("%v, %v", mine, usual)
			}
			other := cfg
			if cfg.Store != nil {
				other.Limits = nil
				b := newLimiter(t, other)
				setLimit(t, b, "other", project.Limit{RequestsPerDay: 1})
			}
			setLimit(t, l, "another", project.Limit{RequestsPerDay: 1})
			if name == "Redis" { // wait until it has received the change
				testkit.Eventually(t, "it follows", func() bool { return len(l.Limits()) == 3 })
			}
			if again := of("p"); again[0] != mine[0] || again[1] != mine[1] || of("r")[0] != usual[0] {
				t.Errorf("windows have changed with the limit of another project")
			}
			setLimit(t, l, "p", project.Limit{RequestsPerHour: 8, TokensPerHour: 9})
			if again := of("p"); again[0] == mine[0] || mine[0].Count != 9 || again[0].Count != 8 {
				t.Errorf("%v was changed to %v", mine[0], again[0])
			}
		})
	}
}

// keeping is a store that keeps settings, can be asked for them so many times, and counts
// its watchers.
type keeping struct {
	*store.Memory
	mu       sync.Mutex
	answers  int
	values   map[string]string
	watchers int
}

var errAsked = errors.New("asked too often")

func (k *keeping) Settings(context.Context) (map[string]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers--
	if k.answers < 0 {
		return nil, errAsked
	}
	return k.values, nil
}

func (k *keeping) PutSettings(context.Context, map[string]string, bool) (map[string]string, error) {
	return nil, errAsked
}

func (k *keeping) SwapSetting(context.Context, string, string, string) (bool, error) {
	return false, errAsked
}

func (k *keeping) WatchSettings(func()) (stop func()) {
	k.watch(1)
	return func() { k.watch(-1) }
}

func (k *keeping) watch(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers += n
}

// A limiter that cannot read its limits is not made, and leaves no watcher behind.
func TestLimitsCannotBeRead(t *testing.T) {
	k := &keeping{Memory: store.NewMemory()}
	if l, err := project.NewWithConfig(project.Config{Store: k}); l != nil || !errors.Is(err, errAsked) || k.watchers != 0 {
		t.Errorf("a limiter: %t, %v, %d watch", l != nil, err, k.watchers)
	}
	k = &keeping{Memory: store.NewMemory(), answers: 1, values: map[string]string{"project/p": `{"requests_per_hour":3}`}}
	l := newLimiter(t, project.Config{Store: k, Limits: map[string]project.Limit{"p": {RequestsPerMinute: 1}}})
	if l.Limit("p") != (project.Limit{RequestsPerHour: 3}) {
		t.Errorf("what the store holds takes precedence: %+v", l.Limit("p"))
	}
	if err := l.SetLimit("p", project.Limit{}); !errors.Is(err, errAsked) || l.Limit("p") != (project.Limit{RequestsPerHour: 3}) {
		t.Errorf("what cannot be kept is not set: %v, %+v", err, l.Limit("p"))
	}
	if err := l.Close(); err != nil || k.watchers != 0 {
		t.Errorf("%v, %d watch", err, k.watchers)
	}
}

// A limit that is set or unset in one process reaches the others on the store, there to stay.
func TestSetLimitReachesOthers(t *testing.T) {
	for _, name := range []string{"SQLite", "Redis"} {
		t.Run(name, func(t *testing.T) {
			open := stores[name](t)
			cfg := func() project.Config {
				return project.Config{Store: open(), Limits: map[string]project.Limit{"p": {RequestsPerHour: 1}, "own": {RequestsPerHour: 5}}}
			}
			a, b := newLimiter(t, cfg()), newLimiter(t, cfg())
			use(t, a, "p", 1)
			waits := make(chan error, 1)
			go func() {
				_, _, err := b.Acquire(t.Context(), project.Call{Project: "p"})
				waits <- err
			}()
			for d := (project.Decision{Allowed: true}); d.Allowed || d.RetryAfter == 0; {
				d = spend(t, b, project.Call{Project: "p"}) // until it is in line
			}
			set := map[string]project.Limit{"p": {RequestsPerHour: 2, Weight: 3}, "a/b %": {}}
			if err := a.SetLimits(set); err == nil {
				t.Error("an id with a space was set")
			}
			delete(set, "a/b %")
			set["a/b%"] = project.Limit{TokensPerDay: 7}
			if err := a.SetLimits(set); err != nil {
				t.Fatal(err)
			}
			if err := <-waits; err != nil { // the other process lets it pass
				t.Errorf("the call that waits in the other process: %v", err)
			}
			set["own"] = project.Limit{RequestsPerHour: 5}
			testkit.Eventually(t, "the other process follows", func() bool { return maps.Equal(b.Limits(), set) })
			for range 2 {
				if err := b.UnsetLimit("a/b%"); err != nil {
					t.Fatal(err)
				}
			}
			delete(set, "a/b%")
			testkit.Eventually(t, "the first follows", func() bool { return maps.Equal(a.Limits(), set) })
			for _, l := range []*project.Limiter{a, b, newLimiter(t, cfg())} {
				if got := l.Limits(); !maps.Equal(got, set) {
					t.Errorf("%v; want %v", got, set)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Once SetLimit has returned, the limit stays, although the limiter may be about to
// look at what others have set.
func TestRedisSetLimitStays(t *testing.T) {
	s := openRedis(t, redistest.New(t).URL())
	for i := range 100 {
		l, err := project.NewWithConfig(project.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			want := project.Limit{RequestsPerMinute: 1 + 3*i + k}
			setLimit(t, l, "p", want)
			for range 20 {
				if got := l.Limit("p"); got != want {
					t.Fatalf("%d.%d: %+v; want %+v", i, k, got, want)
				}
				runtime.Gosched()
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Settings that are not understood are left out, and Close says so; quotas are none
// of a project's business, and the other way round.
func TestRedisSettings(t *testing.T) {
	server := redistest.New(t)
	s := openRedis(t, server.URL())
	l := newLimiter(t, project.Config{Store: s})
	good := project.Limit{RequestsPerMinute: 3}
	for _, each := range []struct{ field, value, says string }{
		{"project/newer", `{"requests_per_week":5}`, `"project/newer" is not used: `},
		{"project/negative", `{"requests_per_minute":-5}`, "RequestsPerMinute is -5"},
		{"project/text", "much", `"much"`},
		{"project/two", `{} {}`, "it must be one value"},
		{"project/", `{}`, "the project id is empty"},
		{"project/a b", `{}`, "no spaces"},
		{"project/" + strings.Repeat("a", 200), `{}`, "200 bytes"},
	} {
		do(t, server, "DEL", "ratelimit:settings")
		do(t, server, "HSET", "ratelimit:settings", each.field, each.value, "project/good", `{"requests_per_minute":3}`, "quota/m", `{"max_rpm":9}`, "strange", "?")
		late, err := project.NewWithConfig(project.Config{Store: s})
		if err != nil {
			t.Fatalf("%s: %v", each.field, err)
		}
		if got := late.Limits(); !maps.Equal(got, map[string]project.Limit{"good": good}) {
			t.Errorf("%s: %v", each.field, got)
		}
		if err := late.Close(); err == nil || !strings.Contains(err.Error(), each.says) || strings.Contains(err.Error(), "quota/") || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("%s: %v; want %s", each.field, err, each.says)
		}
		if err := late.Close(); err != nil {
			t.Errorf("said twice: %v", err)
		}
	}
	do(t, server, "DEL", "ratelimit:settings")
	if err := l.SetLimit("m", good); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil && !strings.Contains(err.Error(), "is not used") { // of those above
		t.Error(err)
	}
}

// Where the limit cannot be written, it is not set here either.
func TestRedisSetLimitFails(t *testing.T) {
	server := redistest.New(t)
	l := newLimiter(t, project.Config{Store: openRedisFor(t, server.URL(), time.Second)})
	server.Kill()
	if err := l.SetLimit("p", project.Limit{RequestsPerMinute: 1}); err == nil || len(l.Limits()) != 0 {
		t.Errorf("%v, %v", err, l.Limits())
	}
	d, err := l.Spend(t.Context(), project.Call{Project: "p"})
	if err == nil || d.Allowed {
		t.Errorf("%+v, %v; want an error of the store", d, err)
	}
}
