package ratelimit_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// competition runs calls of several projects that wait for one model, and records when each passed.
type competition struct {
	t     *testing.T
	rl    *ratelimit.RateLimiter
	ctx   context.Context
	holds time.Duration // how long a call lasts before it is committed; 0: it never is

	mu     sync.Mutex
	served map[string][]served
	group  sync.WaitGroup
}

// served is a call that has passed.
type served struct {
	number int // the how-many-th call of its project
	tokens int
	at     time.Time
	waited time.Duration
}

// newCompetition returns an empty competition, whose calls give up when the test ends. The usage of the
// last minute is spread evenly, so that a part of it leaves every second.
func newCompetition(t *testing.T, quota ratelimit.ModelQuota) *competition {
	t.Helper()
	rl := inMemory(t, quotas{"m": quota})
	return competitionOn(t, rl, quota)
}

func competitionOn(t *testing.T, rl *ratelimit.RateLimiter, quota ratelimit.ModelQuota) *competition {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &competition{t: t, rl: rl, ctx: ctx, served: map[string][]served{}}
	t.Cleanup(func() {
		cancel()
		c.group.Wait()
		if n := rl.Waiting("m"); n != 0 {
			t.Errorf("%d wait; want nobody", n)
		}
	})
	const parts = 60
	for i := range parts {
		if quota.MaxTPM > 0 {
			rl.RecordUsage("m", (i+1)*quota.MaxTPM/parts-i*quota.MaxTPM/parts, 0)
		}
		for range (i+1)*quota.MaxRPM/parts - i*quota.MaxRPM/parts {
			rl.RecordUsage("m", 0, 0)
		}
		time.Sleep(time.Minute / parts)
	}
	return c
}

// come starts a call of a project.
func (c *competition) come(call projectCall, number int) {
	start := time.Now()
	c.group.Go(func() {
		res, _, err := acquireCall(c.rl, c.ctx, call)
		if err != nil {
			if c.ctx.Err() == nil {
				c.t.Errorf("%s: %v", call.Project, err)
			}
			return
		}
		c.mu.Lock()
		c.served[call.Project] = append(c.served[call.Project], served{number, call.Estimated, time.Now(), time.Since(start)})
		c.mu.Unlock()
		if c.holds > 0 {
			time.Sleep(c.holds)
			res.Commit(call.Estimated, 0)
		}
	})
}

// queue starts n calls of a project, one after another.
func (c *competition) queue(call projectCall, n int, tokens func() int) {
	for i := range n {
		if tokens != nil {
			call.Estimated = tokens()
		}
		c.come(call, i)
		synctest.Wait()
	}
}

// keepComing starts calls at regular intervals, for a while.
func (c *competition) keepComing(call projectCall, every, during time.Duration) {
	c.group.Go(func() {
		for i := range int(during / every) {
			c.come(call, i)
			time.Sleep(every)
		}
	})
}

// keepWaiting keeps n calls of a project waiting until the test ends.
func (c *competition) keepWaiting(call projectCall, n int) {
	for range n {
		c.group.Go(func() {
			for c.ctx.Err() == nil {
				acquireCall(c.rl, c.ctx, call)
			}
		})
	}
}

// weighing returns a call of a project that has a weight and no limits.
func weighing(id string, weight int) projectCall {
	return projectCall{Model: "m", Project: id, Limits: only(&project.Limit{Weight: weight})}
}

// wantShares fails the test unless two projects were served three to one, within five percent,
// and the calls of each first come, first served. By weight, the shares may differ by a
// quantum of the whole quota, and the largest of their calls.
func (c *competition) wantShares(heavy, light string, amount func(served) int, whole int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	sum, largest := map[string]int{}, 0
	for project, list := range c.served {
		for _, s := range list {
			sum[project] += amount(s)
			largest = max(largest, amount(s))
		}
		slices.SortFunc(list, func(a, b served) int { return a.number - b.number })
		for i, s := range list {
			if s.number != i || i > 0 && s.at.Before(list[i-1].at) {
				c.t.Fatalf("%s: %d has passed as number %d, at %v, and the one before at %v", project, s.number, i, s.at, list[max(i-1, 0)].at)
			}
		}
	}
	share := float64(sum[heavy]) / float64(sum[heavy]+sum[light])
	if share < 0.75*0.95 || share > 0.75*1.05 {
		c.t.Errorf("%v: %.3f; want 0.75", sum, share)
	}
	apart, most := math.Abs(float64(sum[heavy])/3-float64(sum[light])), float64(whole)*quantum+float64(largest)
	if apart > most && largest < whole/4 {
		c.t.Errorf("%v: by weight they are %.1f apart; want at most %.1f", sum, apart, most)
	}
	c.t.Logf("%v: %.4f, %.1f apart", sum, share, apart)
}

// quantum is the part of the whole quota that a flow of weight 1 gains in a round.
const quantum = 1.0 / 256

func one(served) int      { return 1 }
func tokens(s served) int { return s.tokens }
func sizes(some ...int) func() int {
	random := rand.New(rand.NewPCG(1, uint64(len(some))))
	return func() int { return some[random.IntN(len(some))] }
}

// Two projects that compete for a model for half an hour share it by their weights.
func TestFairShares(t *testing.T) {
	for _, tt := range []struct {
		name         string
		quota        ratelimit.ModelQuota
		heavy, light func() int
		amount       func(served) int
		whole        int // the whole quota
		n            int // the most calls in half an hour
	}{
		{"requests", ratelimit.ModelQuota{MaxRPM: 60}, nil, nil, one, 60, 1800},
		{"tokens", ratelimit.ModelQuota{MaxTPM: 6000}, sizes(100), sizes(100), tokens, 6000, 1800},
		{"tokens of mixed sizes", ratelimit.ModelQuota{MaxTPM: 6000}, sizes(50, 300, 900), sizes(10, 50, 2000), tokens, 6000, 1800},
		{"small ones against large ones", ratelimit.ModelQuota{MaxTPM: 6000}, sizes(3000), sizes(60), tokens, 6000, 1800},
		{"large ones against small ones", ratelimit.ModelQuota{MaxTPM: 6000}, sizes(60), sizes(3000), tokens, 6000, 2700},
		{"requests and tokens", ratelimit.ModelQuota{MaxRPM: 60, MaxTPM: 12_000}, sizes(200), sizes(200), one, 60, 1800},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCompetition(t, tt.quota)
				minutes := testkit.Rounds(15, 30)
				c.queue(weighing("heavy", 3), tt.n*minutes/30, tt.heavy)
				c.queue(weighing("light", 1), tt.n*minutes/60, tt.light)
				time.Sleep(time.Duration(minutes) * time.Minute)
				synctest.Wait()
				c.wantShares("heavy", "light", tt.amount, tt.whole)
			})
		})
	}
}

// The same holds where the quota is counted in a store or a file.
func TestFairSharesOfALedger(t *testing.T) {
	quota := ratelimit.ModelQuota{MaxRPM: 30}
	everyLedger(t, quotas{"m": quota}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		c := competitionOn(t, rl, quota)
		c.queue(weighing("heavy", 3), 300, nil)
		c.queue(weighing("light", 1), 150, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		c.wantShares("heavy", "light", one, 30)
	})
}

// Slots are divided among projects by their weights too. How many each has decides, so at any time one may have a call
// more and the other one less than is due: by weight they are one call and a third apart.
func TestFairSharesOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCompetition(t, ratelimit.ModelQuota{MaxConcurrent: 8})
		c.holds = 10 * time.Second
		var group sync.WaitGroup
		for range 8 { // all slots are taken from the start
			res, d := c.rl.TryAcquire("m", 1)
			if res == nil {
				t.Fatalf("%+v", d)
			}
			group.Go(func() {
				time.Sleep(c.holds)
				res.Cancel()
			})
		}
		c.queue(weighing("heavy", 3), 1200, nil)
		c.queue(weighing("light", 1), 600, nil)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		group.Wait()
		c.wantShares("heavy", "light", one, 96)
		if n := len(c.served["heavy"]) + len(c.served["light"]); n < 8*6*29 || n > 8*6*30 {
			t.Errorf("%d were served; want eight every ten seconds", n)
		}
	})
}

// quiet returns how long the calls of a project have waited that uses less than its share,
// while others compete with it, and how many calls were served.
func quiet(t *testing.T, quota ratelimit.ModelQuota, tokens int, others func(c *competition)) (waits []time.Duration) {
	t.Helper()
	const every = 4*time.Second + 137*time.Millisecond
	run := time.Duration(testkit.Rounds(8, 20)) * time.Minute
	synctest.Test(t, func(t *testing.T) {
		c := newCompetition(t, quota)
		others(c)
		synctest.Wait()
		call := weighing("quiet", 1)
		call.Estimated = tokens
		c.keepComing(call, every, run)
		time.Sleep(run + 5*time.Minute)
		synctest.Wait()
		if n := len(c.served["quiet"]); n != int(run/every) {
			t.Errorf("%d of %d were served: it has less than its share", n, int(run/every))
		}
		for _, s := range c.served["quiet"] {
			waits = append(waits, s.waited)
		}
		c.wantTurns(quota)
	})
	slices.Sort(waits)
	return waits
}

// wantTurns fails the test if, while a call of the quiet project waited, the noisy project was
// served more than the call's size and what the two may differ by when the call comes and when
// it passes.
func (c *competition) wantTurns(quota ratelimit.ModelQuota) {
	c.t.Helper()
	amount, whole := one, quota.MaxRPM
	if quota.MaxTPM > 0 {
		amount, whole = tokens, quota.MaxTPM
	}
	largest := 0
	for _, list := range c.served {
		for _, s := range list {
			largest = max(largest, amount(s))
		}
	}
	for _, s := range c.served["quiet"] {
		came := s.at.Add(-s.waited)
		noisy, own := 0, 0
		for _, n := range c.served["noisy"] {
			if n.at.After(came) && n.at.Before(s.at) {
				noisy += amount(n)
			}
		}
		for _, q := range c.served["quiet"] {
			if q.at.After(came) && !q.at.After(s.at) {
				own += amount(q)
			}
		}
		if most := float64(own) + 2*(float64(whole)*quantum+float64(largest)); float64(noisy) > most {
			c.t.Errorf("while a call waited for %v, another project was served %d; want at most %.1f", s.waited, noisy, most)
		}
	}
}

// A project that sends a hundred times its share, or calls as large as the whole quota, or
// very many tiny ones, has its turns, and no more. A quiet project waits as long as it would
// beside a polite competitor, and as long as deficit round robin serves one flow before
// another: a quantum, and the largest call of either.
//
// A call that takes a part c of a quota of a minute may have to wait for c minutes until it
// fits, and calls behind it for another c until it has left the window.
func TestFairAmongNoise(t *testing.T) {
	for _, tt := range []struct {
		name   string
		quota  ratelimit.ModelQuota
		tokens int     // the tokens of a call of the quiet project, and of the polite one
		cost   float64 // the part of the quota that the largest call takes
		noise  func(c *competition)
	}{
		{"a hundred times its share", ratelimit.ModelQuota{MaxRPM: 30}, 1, 1.0 / 30, func(c *competition) {
			c.queue(weighing("noisy", 1), 100*15, nil)
			c.keepComing(weighing("noisy", 1), time.Minute/(100*15), 3*time.Minute)
		}},
		{"the whole quota", ratelimit.ModelQuota{MaxTPM: 6000}, 100, 1, func(c *competition) {
			c.queue(weighing("noisy", 1), 100, sizes(6000))
		}},
		{"half of the quota", ratelimit.ModelQuota{MaxTPM: 6000}, 100, 0.5, func(c *competition) {
			c.queue(weighing("noisy", 1), 200, sizes(3000))
		}},
		{"tiny ones", ratelimit.ModelQuota{MaxTPM: 600}, 10, 1.0 / 60, func(c *competition) {
			c.queue(weighing("noisy", 1), testkit.Rounds(4500, 9000), sizes(1))
		}},
		{"tiny and whole ones", ratelimit.ModelQuota{MaxTPM: 600}, 10, 1, func(c *competition) {
			c.queue(weighing("noisy", 1), 2000, sizes(1, 1, 1, 1, 1, 1, 1, 1, 1, 600))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			polite := quiet(t, tt.quota, tt.tokens, func(c *competition) {
				call := weighing("polite", 1)
				call.Estimated = tt.tokens
				c.keepWaiting(call, 3)
			})
			noisy := quiet(t, tt.quota, tt.tokens, tt.noise)
			bound := time.Duration(2 * (quantum + tt.cost) * float64(time.Minute))
			for _, percent := range []int{50, 90, 99, 100} {
				i := (len(polite) - 1) * percent / 100
				t.Logf("%d%% wait for at most %v, with noise %v; bound %v", percent, polite[i], noisy[i], polite[i]+bound)
				if noisy[i] > polite[i]+bound {
					t.Errorf("%d%% wait for up to %v; want %v and at most %v", percent, noisy[i], polite[i], bound)
				}
			}
		})
	}
}

// A project that waits for its own limits blocks no other project: the waits of the others are
// as if it was not there.
func TestFairWhileOneIsHeldUp(t *testing.T) {
	for _, tt := range []struct {
		name   string
		quota  ratelimit.ModelQuota
		limits *project.Limit
	}{
		{"an hour", ratelimit.ModelQuota{MaxRPM: 30}, projectLimits(window{"requests_per_hour", 1, time.Hour})},
		{"tokens", ratelimit.ModelQuota{MaxTPM: 3000}, projectLimits(window{"tokens_per_day", 150, 24 * time.Hour})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			polite := func(c *competition) {
				call := weighing("polite", 1)
				call.Estimated = 100
				c.queue(call, 600, nil)
			}
			without := quiet(t, tt.quota, 100, polite)
			with := quiet(t, tt.quota, 100, func(c *competition) {
				blocked := projectCall{Model: "m", Project: "held-up", Limits: only(tt.limits), Estimated: 100}
				setLimits(c.rl, blocked.Project, tt.limits)
				if _, d, err := projectsOf(c.rl).Take(c.ctx, project.Call{Project: blocked.Project, Estimated: 100}); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				c.queue(blocked, 50, nil)
				polite(c)
				for i := range 20 {
					c.come(blocked, i)
				}
			})
			if !slices.Equal(with, without) {
				t.Errorf("quiet calls wait for\n%v; without it\n%v", with, without)
			}
		})
	}
}

// A project that estimates next to nothing, and then uses much, gets no more of the model than
// others: a turn costs what the call has used.
func TestFairAmongLiars(t *testing.T) {
	for _, estimate := range []int{0, 1, 1000} {
		t.Run(fmt.Sprint(estimate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCompetition(t, ratelimit.ModelQuota{MaxTPM: 6000, MaxConcurrent: 40}) // so many slots that not all of them go to calls with wrong estimates
				var mu sync.Mutex
				used := map[string]int{}
				queue := func(project string, estimated, uses int) {
					call := weighing(project, 1)
					call.Estimated = estimated
					for range 1500 {
						c.group.Go(func() {
							res, _, err := acquireCall(c.rl, c.ctx, call)
							if err != nil {
								return
							}
							mu.Lock()
							used[project] += uses
							mu.Unlock()
							time.Sleep(time.Second)
							res.Commit(uses, 0)
						})
						synctest.Wait()
					}
				}
				queue("honest", 200, 200)
				queue("liar", estimate, 1000)
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				t.Logf("%v", used)
				if share := float64(used["honest"]) / float64(used["honest"]+used["liar"]); share < 0.4 {
					t.Errorf("%v: the honest one has %.2f of all; want about half", used, share)
				}
			})
		})
	}
}

// slowly is a store in memory that answers late.
type slowly struct {
	*store.Memory
	trip time.Duration
}

func (s slowly) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	time.Sleep(s.trip)
	defer time.Sleep(s.trip)
	return s.Memory.Take(ctx, charges)
}

func (s slowly) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	time.Sleep(s.trip)
	defer time.Sleep(s.trip)
	return s.Memory.Peek(ctx, charges)
}
