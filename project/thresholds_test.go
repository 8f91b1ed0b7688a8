package project_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// alarms is an observer that remembers thresholds.
type alarms struct {
	mu     sync.Mutex
	told   []event.Budget
	missed []error
}

func (a *alarms) Observe(_ context.Context, e event.Event) {
	if e.Kind != event.Threshold {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Err != nil {
		a.missed = append(a.missed, e.Err)
		return
	}
	a.told = append(a.told, *e.Budget)
}

// take returns the notifications since the last call, in order, such as "acme dollars_per_day 80%".
func (a *alarms) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := []string{}
	for _, b := range a.told {
		list = append(list, fmt.Sprintf("%s %s %d%%", b.Owner, b.Limit, b.Percent))
	}
	a.told = nil
	slices.Sort(list)
	return list
}

// Each budget notifies each of its thresholds once a window, by takes, by settlements that use more than
// was taken, and by denials. Minutes are no budgets.
func TestThresholds(t *testing.T) {
	for kind, on := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &alarms{}
				day := limit.Calendar{Zone: "UTC"}
				l := newLimiter(t, on(t, project.Config{
					Limits: map[string]project.Limit{
						"acme":   {RequestsPerMinute: 1000, DollarsPerDay: 100, TokensPerDay: 1000, Resets: day},
						"acme/a": {RequestsPerHour: 10},
						"plain":  {RequestsPerMinute: 2, RequestsPerHour: 4},
					},
					Runs:       project.RunLimit{Calls: 2},
					Thresholds: []int{80, 50, 100, 50}, Observer: a,
				}))
				told := func(want ...string) {
					t.Helper()
					synctest.Wait()
					slices.Sort(want)
					testkit.Equal(t, "told", append([]string{}, want...), a.take())
				}
				take := func(c project.Call) *project.Reservation {
					t.Helper()
					r, _, err := l.Take(t.Context(), c)
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				take(project.Call{Project: "acme/a", Dollars: 49, Tokens: llm.Tokens{Input: 1}})
				told()
				r := take(project.Call{Project: "acme/a", Dollars: 1})
				told("acme dollars_per_day 50%")
				r.CommitPriced(llm.Tokens{Input: 700, Output: 100}, 32)
				told()
				time.Sleep(time.Second) // a settlement is looked at after a second
				told("acme dollars_per_day 80%", "acme tokens_per_day 50%", "acme tokens_per_day 80%")
				if r := take(project.Call{Project: "acme/a", Dollars: 30}); r != nil {
					t.Error("taken")
				}
				told() // it was too large for what is left
				take(project.Call{Project: "acme/a", Dollars: 10})
				if r := take(project.Call{Project: "acme/a", Dollars: 30}); r != nil {
					t.Error("taken")
				}
				told("acme dollars_per_day 100%") // nearly all is used
				if r := take(project.Call{Project: "acme/a", Estimated: 5000}); r != nil {
					t.Error("taken")
				}
				told() // a call that can never pass says nothing of the budget
				for range 4 {
					use(t, l, "acme/a", 1)
				}
				told("acme/a requests_per_hour 50%")
				for range 2 {
					take(project.Call{Project: "acme/a", Run: "r"})
				}
				told("acme/a requests_per_hour 80%", "run r runs.calls 50%", "run r runs.calls 80%", "run r runs.calls 100%")
				for range 2 {
					use(t, l, "plain", 1)
				}
				told("plain requests_per_hour 50%")
				time.Sleep(time.Minute)
				use(t, l, "plain", 1)
				use(t, l, "plain", 1)
				told("plain requests_per_hour 80%", "plain requests_per_hour 100%")
				if err := l.Reset(t.Context(), "plain"); err != nil {
					t.Error(err)
				}
				use(t, l, "plain", 2)
				told("plain requests_per_hour 50%")
				if len(a.missed) > 0 {
					t.Error(a.missed)
				}
			})
		})
	}
}

// book is a naive model: when each threshold of each window was last notified.
type book map[string]time.Time

// expect returns which thresholds a budget notifies at a percentage of use, and remembers them.
func (b book) expect(w *project.Window, owner string, percent int64) (told []string) {
	now := time.Now().UTC()
	for _, p := range []int64{10, 50, 100} {
		window := ""
		switch {
		case w.Run || w.Name == "dollars":
			window = b["began "+w.Name].String()
		case w.Calendar && w.Name == "requests_per_hour":
			window = now.Truncate(time.Hour).String()
		case w.Calendar && strings.HasSuffix(w.Name, "_per_day"):
			window = now.Truncate(24 * time.Hour).String()
		}
		name := fmt.Sprintf("%s %s %d%%", owner, w.Name, p)
		last, ever := b[name+window]
		rolling := !w.Calendar && !w.Run && w.Name != "dollars"
		if percent >= p && (!ever || rolling && now.Sub(last) >= w.Period) {
			told = append(told, name)
			b[name+window] = now
		}
	}
	return told
}

// begin remembers when windows begin of which nothing is used.
func (b book) begin(l *project.Limiter, c project.Call) {
	d, _ := l.PeekCall(context.Background(), c)
	for _, s := range d.Windows() {
		if s.Remaining == s.Window.Count {
			b["began "+s.Window.Name] = time.Now()
		}
	}
}

// hear returns the notifications that a decision on a call causes.
func (b book) hear(d *project.Decision, all bool) (told []string) {
	for _, s := range d.Windows() {
		percent := (s.Window.Count - s.Remaining) * 100 / s.Window.Count
		if s.RetryAfter > 0 && s.RetryAfter != project.Never && percent >= 90 {
			percent = 100
		}
		if s.Window.Name != "requests_per_minute" && (all || s.RetryAfter > 0) {
			told = append(told, b.expect(s.Window, s.Owner, percent)...)
		}
	}
	return told
}

// Whatever calls do: each threshold of each budget is notified when it is reached, and once in a window.
func TestThresholdHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		each := project.Limit{RequestsPerMinute: 5, RequestsPerHour: 8, TokensPerDay: 200, Dollars: 400}
		if rapid.Bool().Draw(rt, "calendar") {
			each.Resets = limit.Calendar{Zone: "UTC"}
		}
		on := kinds[rapid.SampledFrom([]string{"memory", "another store"}).Draw(rt, "kind")]
		type step struct {
			Do            string
			Pass          time.Duration
			Tokens, Price int
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				rapid.SampledFrom([]string{"spend", "take", "take", "commit", "commit", "cancel"}).Draw(t, "do"),
				time.Duration(rapid.SampledFrom([]int{0, 0, 1, 59, 3000, 7200, 86400}).Draw(t, "seconds")) * time.Second,
				rapid.IntRange(1, 60).Draw(t, "tokens"), rapid.IntRange(0, 60).Draw(t, "price"),
			}
		}), 1, 60).Draw(rt, "steps")
		fault := ""
		synctest.Test(t, func(t *testing.T) {
			a, b := &alarms{}, book{}
			l := newLimiter(t, on(t, project.Config{
				Default: &each, Runs: project.RunLimit{Tokens: 150, Expires: time.Hour}, Thresholds: []int{10, 50, 100}, Observer: a,
			}))
			type taken struct {
				*project.Reservation
				step
			}
			var open []taken
			for i, s := range steps {
				time.Sleep(s.Pass)
				call := project.Call{Project: "p", Run: "r", Estimated: s.Tokens, Dollars: price.Amount(s.Price)}
				var want []string
				switch {
				case s.Do == "spend":
					d, _ := l.Spend(t.Context(), project.Call{Project: "p"})
					want = b.hear(&d, d.Allowed)
				case s.Do == "take":
					b.begin(l, call)
					r, d, _ := l.Take(t.Context(), call)
					if r != nil {
						open = append(open, taken{r, s})
					}
					want = b.hear(&d, r != nil)
				case len(open) == 0:
				case s.Do == "cancel":
					open[0].Cancel()
					open = open[1:]
				default:
					first := open[0]
					open = open[1:]
					first.CommitPriced(llm.Tokens{Input: s.Tokens}, price.Amount(s.Price))
					time.Sleep(time.Second)
					if d, _ := l.PeekCall(t.Context(), call); s.Tokens > first.Tokens || s.Price > first.Price {
						for _, w := range d.Windows() {
							if (w.Window.Run && s.Tokens <= first.Tokens) || w.Window.Name == "requests_per_minute" {
								continue
							}
							percent := (w.Window.Count - w.Remaining) * 100 / w.Window.Count
							want = append(want, b.expect(w.Window, w.Owner, percent)...)
						}
					}
				}
				synctest.Wait()
				slices.Sort(want)
				if got := a.take(); !slices.Equal(got, want) && fault == "" {
					fault = fmt.Sprintf("step %d, %+v: told %q, want %q", i, s, got, want)
				}
			}
		})
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

// Of several limiters on one store, one notifies each threshold.
func TestThresholdsAreToldByOne(t *testing.T) {
	for kind, open := range map[string]func(t *testing.T) func() store.Store{
		"SQLite": func(t *testing.T) func() store.Store {
			path := filepath.Join(t.TempDir(), "limits.db")
			return func() store.Store { return openSQLite(t, path) }
		},
		"Redis": func(t *testing.T) func() store.Store {
			server := redistest.New(t)
			return func() store.Store { return openRedis(t, server.URL()) }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			next, a := open(t), &alarms{}
			var limiters []*project.Limiter
			for range 2 {
				limiters = append(limiters, newLimiter(t, project.Config{
					Store: next(), Default: &project.Limit{RequestsPerDay: 100, TokensPerDay: 100, Resets: limit.Calendar{Zone: "UTC"}},
					Thresholds: []int{50, 80, 100}, Observer: a,
				}))
			}
			var wg sync.WaitGroup
			for i := range 110 {
				wg.Go(func() { limiters[i%2].Spend(context.Background(), project.Call{Project: "p", Estimated: 1}) })
			}
			wg.Wait()
			for _, l := range limiters {
				l.Close() // which notifies the rest
			}
			testkit.Equal(t, "told", []string{"p requests_per_day 100%", "p requests_per_day 50%", "p requests_per_day 80%", "p tokens_per_day 100%", "p tokens_per_day 50%", "p tokens_per_day 80%"}, a.take())
		})
	}
}

// The event of a threshold has everything about the budget.
func TestThresholdEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		l := newLimiter(t, project.Config{
			Default: &project.Limit{DollarsPerMonth: 1000, Resets: limit.Calendar{Zone: "UTC"}}, Thresholds: []int{60}, Observer: w,
		})
		l.SetKeyLimits(map[string]*project.Limit{"k": {Dollars: 1000}})
		now := time.Now().UTC()
		l.Take(t.Context(), project.Call{Project: "p", Key: "k", Dollars: 700})
		synctest.Wait()
		var told []event.Event
		for _, e := range w.saw() {
			if e.Kind == event.Threshold {
				told = append(told, e)
			}
		}
		slices.SortFunc(told, func(a, b event.Event) int { return -strings.Compare(a.Budget.Owner, b.Budget.Owner) })
		testkit.Equal(t, "told", []event.Event{
			{Kind: event.Threshold, Project: "p", Limit: "dollars_per_month", RemainingMinute: -1, Budget: &event.Budget{
				Owner: "p", Limit: "dollars_per_month", Unit: "dollars", Percent: 60, Used: 700, Max: 1000,
				At: now, Resets: time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC),
			}},
			{Kind: event.Threshold, Project: "p", Limit: "dollars", RemainingMinute: -1, Budget: &event.Budget{
				Owner: "key k", Limit: "dollars", Unit: "dollars", Percent: 60, Used: 700, Max: 1000, At: now,
			}},
		}, told)
	})
}

// If the store cannot be asked which limiter notifies, a later call notifies.
func TestThresholdOfLostStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := &alarms{}, &forgetful{another: another{store.NewMemory()}}
		l := newLimiter(t, project.Config{Store: s, Default: &project.Limit{RequestsPerDay: 4}, Thresholds: []int{50}, Observer: a})
		s.failing.Store(true)
		use(t, l, "p", 2)
		synctest.Wait()
		if told := a.take(); len(told) > 0 || len(a.missed) != 1 {
			t.Error(told, a.missed)
		}
		s.failing.Store(false)
		use(t, l, "p", 1)
		synctest.Wait()
		testkit.Equal(t, "told", []string{"p requests_per_day 50%"}, a.take())
	})
}

// forgetful is a store that cannot be asked for thresholds while it fails.
type forgetful struct {
	another
	failing atomic.Bool
}

func (f *forgetful) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if f.failing.Load() && strings.Contains(charges[0].Key, "threshold") {
		return nil, nil, errors.New("lost")
	}
	return f.another.Take(ctx, charges)
}

// Calls allocate no more where thresholds are set, also beyond them.
func TestThresholdsAllocateNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	l := newLimiter(t, project.Config{
		Default: &project.Limit{RequestsPerHour: 1 << 40, RequestsPerDay: 5000}, Thresholds: []int{50, 80, 100}, Observer: &alarms{},
	})
	for range 10_000 {
		l.Spend(t.Context(), project.Call{Project: "p"})
	}
	if n := testing.AllocsPerRun(1000, func() { l.Spend(t.Context(), project.Call{Project: "p"}) }); n != 0 {
		t.Errorf("a Spend allocates %v times", n)
	}
}

func TestBadThresholds(t *testing.T) {
	for _, percents := range [][]int{{0}, {101}, {50, -1}, make([]int, 21)} {
		if _, err := project.NewWithConfig(project.Config{Thresholds: percents, Observer: &alarms{}}); err == nil {
			t.Errorf("%v is taken", percents)
		}
	}
}
