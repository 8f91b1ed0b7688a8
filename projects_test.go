package ratelimit_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// A limiter can have limits of projects once. An invalid configuration is refused, and changes
// nothing.
func TestNewProjects(t *testing.T) {
	rl := onStore(t, store.NewMemory(), quotas{"m": {MaxRPM: 3}})
	const taken = "Store, Observer and OnError of a project.Config must not be set here: those of the RateLimiter are used"
	for says, cfgs := range map[string][]project.Config{
		taken:                          {{Store: store.NewMemory()}, {Observer: &diary{}}, {OnError: func(error) {}}},
		"MaxWaiting is -1":             {{MaxWaiting: -1}},
		"the default limit: Weight is": {{Default: &project.Limit{Weight: -1}}},
		`the limit of project "p": `:   {{Limits: map[string]project.Limit{"p": {RequestsPerDay: -1}}}},
	} {
		for _, cfg := range cfgs {
			if projects, err := rl.NewProjects(cfg); projects != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+says) {
				t.Errorf("%v, %v; want %s", projects, err, says)
			}
		}
	}
	withProjects(t, rl, project.Config{Default: &project.Limit{RequestsPerMinute: 1}})
	if projects, err := rl.NewProjects(project.Config{}); projects != nil || err == nil {
		t.Errorf("a second time: %v, %v", projects, err)
	}
	for i, code := range []ratelimit.DecisionCode{ok, ratelimit.DecisionProjectLimit} {
		if _, d, err := rl.TryAcquireCall(t.Context(), of("p")); err != nil || d.Code != code {
			t.Errorf("call %d: %+v, %v", i, d, err)
		}
	}
	if _, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m"}); err != nil || d.Code != ok || !d.IsZero() {
		t.Errorf("a call of no project: %+v, %v", d, err)
	}
}

// Where the limits of a model and of a project deny a call for equally long, the model's decides.
func TestOfEqualDenialsTheModelsDecides(t *testing.T) {
	rl := onStore(t, store.NewMemory(), quotas{"m": {MaxTPM: 100}})
	withProjects(t, rl, project.Config{Default: &project.Limit{TokensPerMinute: 100}})
	_, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m", Project: "p", Estimated: 101})
	if err != nil || d.Code != ratelimit.DecisionTPMLimit {
		t.Errorf("%+v, %v; want %s", d, err, ratelimit.DecisionTPMLimit)
	}
}

// When the limiter of projects is closed, the models go on. When the limiter of models is
// closed, so is that of projects, and waiting calls fail.
func TestCloseProjects(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 3}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		projects := withProjects(t, rl, project.Config{})
		if err := projects.Close(); err != nil {
			t.Fatal(err)
		}
		if res, d := rl.TryAcquire("m", 1); res == nil || !d.Allowed {
			t.Errorf("%+v", d)
		}
		_, tried, failed := rl.TryAcquireCall(t.Context(), of("p"))
		_, acquired, err := rl.AcquireCall(t.Context(), of("p"))
		if !errors.Is(failed, store.ErrClosed) || !errors.Is(err, store.ErrClosed) || tried.Code != ratelimit.DecisionStoreLost || acquired.Code != tried.Code {
			t.Errorf("calls of a project: %+v, %v, %+v, %v", tried, failed, acquired, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newTurns(t, onStore(t, store.NewMemory(), quotas{"m": plenty}), project.Config{Default: &project.Limit{RequestsPerMinute: 1}})
		for i, model := range []string{"m", "m", "", "unknown", "m"} {
			w.join(t.Context(), fmt.Sprint(i), ratelimit.Call{Project: "p", Model: model})
		}
		w.sleep(time.Second)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.passed(t, "0")
		for _, name := range []string{"1", "2", "3", "4"} {
			w.failed(t, name, time.Second, store.ErrClosed)
		}
		if _, err := w.projects.Allow(t.Context(), "p"); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// The models of a limiter with a YAML file go on after Close; its projects do not.
func TestCloseProjectsOfYAML(t *testing.T) {
	rl := newYAML(t, filepath.Join(t.TempDir(), "limits.yaml"), quotas{"m": {MaxRPM: 3}})
	projects := withProjects(t, rl, project.Config{})
	if err := rl.Close(); err != nil {
		t.Fatal(err)
	}
	if _, d := rl.TryAcquire("m", 1); !d.Allowed {
		t.Errorf("%+v", d)
	}
	_, _, failed := rl.TryAcquireCall(t.Context(), of("p"))
	_, err := projects.Allow(t.Context(), "p")
	if !errors.Is(failed, store.ErrClosed) || !errors.Is(err, store.ErrClosed) {
		t.Errorf("a call of a project: %v, %v", failed, err)
	}
}

// Where prompt and output are known apart, a model that limits them apart is asked for each,
// and the project for both together.
func TestTokensApart(t *testing.T) {
	for name, c := range map[string]struct {
		call ratelimit.Call
		used int64
	}{
		"apart":    {ratelimit.Call{Project: "p", Model: "m", Tokens: ratelimit.Tokens{Input: 400, Output: 50}}, 900},
		"together": {ratelimit.Call{Project: "p", Model: "m", Estimated: 450}, 450},
	} {
		t.Run(name, func(t *testing.T) {
			everyLedger(t, quotas{"m": {MaxInputTPM: 1000, MaxOutputTPM: 100}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
				projects := withProjects(t, rl, project.Config{Default: &project.Limit{TokensPerMinute: 1000}})
				for i, want := range []bool{true, c.used == 900} {
					res, d, err := rl.TryAcquireCall(t.Context(), c.call)
					if err != nil || d.Allowed != want || (res != nil) != want {
						t.Fatalf("call %d: %+v, %v", i, d, err)
					}
				}
				if d, err := projects.Peek(t.Context(), "p"); err != nil || d.Windows()[0].Remaining != 1000-c.used {
					t.Errorf("%+v of the project are left, %v; want %d", d.Windows(), err, 1000-c.used)
				}
			})
		})
	}
}

// A project is the same one for calls with a model and for a project.Limiter alone on the same
// store: together they admit exactly what one would.
func TestProjectsOfTwoLimiters(t *testing.T) {
	each := &project.Limit{RequestsPerHour: 40, TokensPerDay: 1000}
	path, url := filepath.Join(t.TempDir(), "limits.db"), redistest.New(t).URL()
	memory := store.NewMemory()
	for name, open := range map[string]func() (ratelimit.Store, error){
		"memory": func() (ratelimit.Store, error) { return memory, nil },
		"SQLite": func() (ratelimit.Store, error) { return sqlitestore.Open(path) },
		"Redis": func() (ratelimit.Store, error) {
			return redisstore.New(redisstore.Config{URL: url, Timeout: 20 * time.Second})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stores [2]ratelimit.Store
			for i := range stores {
				s, err := open()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				stores[i] = s
			}
			alone, err := project.NewWithConfig(project.Config{Default: each, Store: stores[0]})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { alone.Close() })
			rl := onStore(t, stores[1], quotas{"m": plenty})
			withModels := withProjects(t, rl, project.Config{Default: each})
			var mu sync.Mutex
			passed := map[string]int{}
			var ofModel atomic.Int64 // requests of the model
			var all sync.WaitGroup
			for range 60 {
				for id, c := range map[string]ratelimit.Call{"one": {}, "three": {Requests: 3}, "seven": {Estimated: 70}} { // the limits are 40 requests, or 1,000 tokens
					for _, take := range []func() (bool, error){
						func() (bool, error) {
							c.Project, c.Model = id, "m"
							res, d, err := rl.TryAcquireCall(t.Context(), c)
							res.Commit(-1, -1)
							if d.Allowed {
								ofModel.Add(int64(max(c.Requests, 1)))
							}
							return d.Allowed, err
						},
						func() (bool, error) {
							d, err := alone.Spend(t.Context(), project.Call{Project: id, Requests: c.Requests, Estimated: c.Estimated})
							return d.Allowed, err
						},
					} {
						all.Go(func() {
							allowed, err := take()
							if err != nil {
								t.Errorf("%s: %v", id, err)
							}
							if allowed {
								mu.Lock()
								passed[id]++
								mu.Unlock()
							}
						})
					}
				}
			}
			all.Wait()
			if want := map[string]int{"one": 40, "three": 13, "seven": 14}; !maps.Equal(passed, want) {
				t.Errorf("passed: %v; want %v", passed, want)
			}
			if s := rl.Stats("m"); s.RPM != int(ofModel.Load()) {
				t.Errorf("%+v; want %d requests", s, ofModel.Load())
			}
			for _, id := range []string{"one", "three", "seven", "nobody"} {
				a, _ := alone.Peek(t.Context(), id)
				b, _ := withModels.Peek(t.Context(), id)
				for i, s := range a.Windows() {
					if s.Remaining != b.Windows()[i].Remaining {
						t.Errorf("%s has %+v left, or %+v", id, a.Windows(), b.Windows())
					}
				}
			}
		})
	}
}

// In a cluster, a project and a model are on different shards. A call is charged to both or to
// neither all the same, by any number of nodes.
func TestProjectsInARedisCluster(t *testing.T) {
	url := redistest.NewCluster(t, 3).URL()
	var nodes []*ratelimit.RateLimiter
	var projects []*project.Limiter
	for range 2 {
		rl := onRedis(t, url, quotas{"m": {MaxRPM: 25}})
		nodes = append(nodes, rl)
		projects = append(projects, withProjects(t, rl, project.Config{Default: &project.Limit{RequestsPerMinute: 10, RequestsPerDay: 1000}}))
	}
	left := func(id string) int64 {
		d, err := projects[0].Peek(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return d.Windows()[0].Remaining
	}
	admitted := map[string]*atomic.Int64{"a": {}, "b": {}, "c": {}, "d": {}}
	var group sync.WaitGroup
	for i := range 40 {
		for id, count := range admitted {
			group.Go(func() {
				if _, d, err := nodes[i%2].TryAcquireCall(t.Context(), of(id)); err != nil {
					t.Error(err)
				} else if d.Allowed {
					count.Add(1)
				}
			})
		}
	}
	group.Wait()
	sum := int64(0)
	for id, count := range admitted {
		if n := count.Load(); n > 10 || left(id) != 10-n {
			t.Errorf("project %s: %d were admitted of 10, and %d are left", id, n, left(id))
		}
		sum += count.Load()
	}
	if sum > 25 {
		t.Errorf("%d were admitted of the model's 25", sum)
	}
	for id := range admitted { // refunds of other calls may have left a rest
		for admitted[id].Load() < 10 && sum < 25 {
			_, d, err := nodes[1].TryAcquireCall(t.Context(), of(id))
			if err != nil || !d.Allowed {
				t.Fatalf("%s has %d, all have %d: %+v, %v", id, admitted[id].Load(), sum, d, err)
			}
			admitted[id].Add(1)
			sum++
		}
	}
	if _, d, err := nodes[0].TryAcquireCall(t.Context(), of("e")); err != nil || d.Code != overRPM || left("e") != 10 {
		t.Errorf("one more: %+v, %v", d, err)
	}
}

// Quotas and limits of projects are stored beside each other, each once, and are there again
// when the store is opened again.
func TestQuotasAndLimitsAreKept(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "limits.db"), redistest.New(t).URL()
	for name, kind := range map[string]struct {
		cfg  ratelimit.Config
		kept func() (map[string]string, error) // returns the settings; a SQLite file has quotas in a table of their own
		want []string
	}{
		"SQLite": {ratelimit.Config{Backend: ratelimit.BackendSQLite, FilePath: path}, func() (map[string]string, error) {
			s, err := sqlitestore.Open(path)
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return hidden.Of[settings.Keeper](s).Settings(t.Context())
		}, []string{"project/m", "project/p", "quotas"}}, // the last says that the table has changed
		"Redis": {ratelimit.Config{Backend: ratelimit.BackendRedis, FilePath: url}, func() (map[string]string, error) {
			s, err := redisstore.New(redisstore.Config{URL: url, Timeout: 20 * time.Second})
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return hidden.Of[settings.Keeper](s).Settings(t.Context())
		}, []string{"project/m", "project/p", "quota/m"}},
	} {
		t.Run(name, func(t *testing.T) {
			quota, limit := ratelimit.ModelQuota{MaxRPM: 8}, project.Limit{RequestsPerMinute: 3}
			kind.cfg.Quotas = quotas{"m": {MaxRPM: 7}}
			for i := range 3 {
				rl, err := ratelimit.NewWithConfig(kind.cfg.Patient())
				if err != nil {
					t.Fatal(err)
				}
				projects := withProjects(t, rl, project.Config{})
				if i == 0 {
					for _, err := range []error{rl.SetQuota("m", quota), projects.SetLimit("m", limit), projects.SetLimit("p", limit)} {
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				if rl.Quotas()["m"] != quota || projects.Limit("m") != limit || projects.Limit("p") != limit {
					t.Errorf("opened %d times: %+v, %+v", i+1, rl.Quotas()["m"], projects.Limits())
				}
				for _, err := range []error{rl.Persist(), rl.Close()} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			kept, err := kind.kept()
			if names := slices.Sorted(maps.Keys(kept)); err != nil || !slices.Equal(names, kind.want) {
				t.Errorf("settings %v, %v; want %v", names, err, kind.want)
			}
		})
	}
}
