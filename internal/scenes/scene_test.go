package scenes

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/engine/fleettests/memorybus"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// crew is workers that make calls of one project: each waits for its turn, then for an answer, and calls again.
type crew struct {
	project string
	key     string // with which the workers call; empty: none
	workers int
	on      int           // the node that the workers call, from 1; 0: all in turn
	users   int           // that the workers work for in turn, each a project below the project; 0: none
	from    time.Duration // when the workers begin
	until   time.Duration // when they end; 0: with the scene
	pause   time.Duration // between an answer and the next call, on average
	retry   time.Duration // the workers do not wait, and call again after this time if they are turned away
	tokens  int           // of a call
	sizes   sizes         // how many tokens calls use, if not all use as many; tokens is the most
	asks    int           // how many tokens the calls ask for, if not for as many as they use
	answer  answers       // nil: each takes as long as the scene says
	cancels bool          // the workers give up every call once it has passed, and use nothing
	renames bool          // every call is of another user
	burst   time.Duration // the workers call only in the first such part of each cycle of burst and calm
	calm    time.Duration
}

// answers says how long the next answer takes.
type answers func(r *rand.Rand) time.Duration

// sizes says how many tokens the next call uses.
type sizes func(r *rand.Rand) int

// scene is projects that share a quota of a model.
type scene struct {
	name   string
	quota  ratelimit.ModelQuota
	minute int // what may be used in a minute; 0: the quota
	nodes  int // that share a store; 0: one that has its own
	answer time.Duration
	limits map[string]project.Limit
	crews  []crew

	want  map[string]int           // percent of what was used in the second half, by the crews' projects or, if they have one, keys
	least map[string]int           // percent, as want, at least
	wait  map[string]time.Duration // of a hundred calls of the project in the second half, 99 wait no longer
	used  int                      // percent of the quota, at least; 0 is 98
}

// minutes returns how long the scene lasts: twenty minutes, or fewer with -short if many work in it. Its shares are
// counted in the second half.
func (s *scene) minutes() int {
	workers := 0
	for _, c := range s.crews {
		workers += c.workers
	}
	if workers > 500 {
		return testkit.Rounds(8, 20)
	}
	return 20
}

// perMinute returns what may be used in a minute.
func (s *scene) perMinute() int { return cmp.Or(s.minute, max(s.quota.MaxRPM, s.quota.MaxTPM)) }

// played is what has passed in a scene.
type played struct {
	mu    sync.Mutex
	half  time.Duration              // after which the second half begins
	all   int                        // that was used
	by    map[string]int             // of it in the second half, by the crews' projects or keys
	waits map[string][]time.Duration // of the calls of each in the second half
	log   []passedCall               // in the second half
}

// passedCall is a call of a crew's project or key that has passed.
type passedCall struct {
	of     string
	amount int
}

// count counts a call of a crew that has passed.
func (p *played) count(c *crew, tokens int, since, waited time.Duration) {
	of, n := c.id(), max(tokens, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all += n
	if since >= p.half {
		p.by[of] += n
		p.waits[of] = append(p.waits[of], waited)
		p.log = append(p.log, passedCall{of, n})
	}
}

// open returns the limiters of the scene's nodes.
func (s *scene) open(t *testing.T) (nodes []*ratelimit.RateLimiter) {
	t.Helper()
	cfg := ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{"m": s.quota}}
	bus := memorybus.New()
	for range max(s.nodes, 1) {
		var all store.Store = store.NewMemory()
		if s.nodes > 0 {
			all, _ = bus.Open()
		}
		rl, err := ratelimit.NewWithStore(all, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rl.Close() })
		if _, err := rl.NewProjects(project.Config{Limits: s.limits}); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, rl)
	}
	return nodes
}

// run plays the scene.
func (s *scene) run(t *testing.T) *played {
	t.Helper()
	nodes := s.open(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(s.minutes())*time.Minute)
	defer stop()
	began, group := time.Now(), sync.WaitGroup{}
	p := &played{half: time.Duration(s.minutes()) * time.Minute / 2, by: map[string]int{}, waits: map[string][]time.Duration{}}
	work := func(c *crew, worker int) {
		rl := nodes[(c.on-1+len(nodes))%len(nodes)]
		if c.on == 0 {
			rl = nodes[worker%len(nodes)]
		}
		r := rand.New(rand.NewPCG(uint64(worker), 7))
		call := ratelimit.Call{Model: "m", Project: c.project, RunProject: c.project, Key: c.key, Tokens: llm.Tokens{Input: cmp.Or(c.asks, c.tokens)}}
		if c.users > 0 {
			call.Project = fmt.Sprintf("%s/u%d", c.project, worker%c.users)
		}
		time.Sleep(c.from)
		for n := 0; ; n++ {
			time.Sleep(time.Duration(r.ExpFloat64() * float64(c.pause)))
			if cycle := c.burst + c.calm; c.burst > 0 {
				if at := time.Since(began) % cycle; at >= c.burst {
					time.Sleep(cycle - at)
				}
			}
			if c.renames {
				call.Project = fmt.Sprintf("%s/u%d-%d", c.project, worker, n)
			}
			tokens := c.tokens
			if c.sizes != nil {
				tokens = c.sizes(r)
				call.Tokens.Input = tokens
			}
			asked := time.Now()
			if c.until > 0 && asked.Sub(began) >= c.until {
				return
			}
			res := c.acquire(ctx, rl, call)
			if res == nil {
				return
			}
			if c.cancels {
				time.Sleep(s.answer)
				res.Cancel()
				continue
			}
			p.count(c, tokens, time.Since(began), time.Since(asked))
			if c.answer != nil {
				time.Sleep(c.answer(r))
			} else {
				time.Sleep(s.answer)
			}
			res.Commit(tokens, 0)
		}
	}
	for _, c := range s.crews {
		for worker := range c.workers {
			group.Go(func() { work(&c, worker) })
		}
	}
	group.Wait()
	return p
}

// id is what the crew's calls are counted for: its key or, without one, its project.
func (c *crew) id() string { return cmp.Or(c.key, c.project) }

// acquire makes a call as the crew does, until it passes. It returns nil when ctx has ended.
func (c *crew) acquire(ctx context.Context, rl *ratelimit.RateLimiter, call ratelimit.Call) *ratelimit.Reservation {
	if c.retry == 0 {
		res, _, _ := rl.AcquireCall(ctx, call)
		return res
	}
	for ctx.Err() == nil {
		if res, d, err := rl.TryAcquireCall(ctx, call); err != nil || d.Allowed {
			return res
		}
		time.Sleep(c.retry)
	}
	return nil
}

// check checks that each project has had its share, that calls have not waited for too long, and that the quota was used.
func (s *scene) check(t *testing.T, p *played) {
	t.Helper()
	counted := 0
	for _, n := range p.by {
		counted += n
	}
	for id, n := range p.by {
		if len(p.by) <= 4 {
			t.Logf("%s has %.1f%%", id, 100*float64(n)/float64(counted))
		}
	}
	for id, want := range s.want {
		if got := 100 * p.by[id] / counted; got < want-5 || got > want+5 {
			t.Errorf("%s has %d%%: want %d%%", id, got, want)
		}
	}
	for id, least := range s.least {
		if got := 100 * p.by[id] / max(counted, 1); got < least {
			t.Errorf("%s has %d%%: want %d%% at least", id, got, least)
		}
	}
	for a := range p.by {
		for b := range p.by {
			if s.wants(a) && s.wants(b) && a < b {
				s.checkBound(t, p, a, b)
			}
		}
	}
	for id, most := range s.wait {
		waits := p.waits[id]
		slices.Sort(waits)
		t.Logf("%s: half of the calls wait for %v, one of 100 for %v, the longest is %v", id, waits[len(waits)/2], waits[len(waits)*99/100], waits[len(waits)-1])
		if got := waits[len(waits)*99/100]; got > most {
			t.Errorf("%s: of 100 calls one waits for %v: want %v at most", id, got, most)
		}
	}
	minute := s.perMinute()
	t.Logf("%.1f%% are used", 100*float64(p.all)/float64(minute*s.minutes()))
	if all := minute * s.minutes(); p.all < all*cmp.Or(s.used, 98)/100 {
		t.Errorf("%d of %d were used: %d%%", p.all, all, p.all*100/all)
	}
	if all := minute * s.minutes() / 2; counted > all+minute {
		t.Errorf("%d of %d were used in the second half: %d%%", counted, all, counted*100/all)
	}
}

// around returns answers that take from half of a time to half as much again.
func around(mean time.Duration) answers {
	return func(r *rand.Rand) time.Duration { return mean/2 + time.Duration(r.Int64N(int64(mean))) }
}

// heavyTail returns answers of which one in three takes three times as long, one in nine nine times, and so on.
func heavyTail(shortest time.Duration) answers {
	return func(r *rand.Rand) time.Duration {
		d := shortest
		for d < 60*shortest && r.IntN(3) == 0 {
			d *= 3
		}
		return d/2 + time.Duration(r.Int64N(int64(d)))
	}
}
