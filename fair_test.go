package ratelimit_test

import (
	"context"
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
	t   *testing.T
	rl  *ratelimit.RateLimiter
	ctx context.Context

	mu     sync.Mutex
	served map[string][]served
	group  sync.WaitGroup
}

// served is a call that has passed.
type served struct {
	number int // the how-many-th call of its project
	tokens int
	at     time.Time
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
	c.group.Go(func() {
		if _, _, err := acquireCall(c.rl, c.ctx, call); err != nil {
			if c.ctx.Err() == nil {
				c.t.Errorf("%s: %v", call.Project, err)
			}
			return
		}
		c.mu.Lock()
		c.served[call.Project] = append(c.served[call.Project], served{number, call.Estimated, time.Now()})
		c.mu.Unlock()
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
	apart := math.Abs(float64(sum[heavy])/3 - float64(sum[light]))
	most := float64(whole)*quantum + float64(largest)*4/3 // of a call that one has in place of the other, each has its part
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
