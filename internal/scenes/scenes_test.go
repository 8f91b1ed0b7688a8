package scenes

import (
	"cmp"
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
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// crew is workers that make calls of one project: each waits for its turn, then for an answer, and calls again.
type crew struct {
	project string
	key     string // with which the workers call; empty: none
	workers int
	users   int           // that the workers work for in turn, each a project below the project; 0: none
	from    time.Duration // when the workers begin
	pause   time.Duration // between an answer and the next call, on average
	retry   time.Duration // the workers do not wait, and call again after this time if they are turned away
	tokens  int           // of a call
	asks    int           // how many tokens the calls ask for, if not for as many as they use
	answer  answers       // nil: each takes as long as the scene says
	cancels bool          // the workers give up every call once it has passed, and use nothing
	renames bool          // every call is of another user
	burst   time.Duration // the workers call only in the first such part of each cycle of burst and calm
	calm    time.Duration
}

// answers says how long the next answer takes.
type answers func(r *rand.Rand) time.Duration

// scene is projects that share a quota of a model.
type scene struct {
	name   string
	quota  ratelimit.ModelQuota
	minute int // what may be used in a minute; 0: the quota
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
func (p *played) count(c *crew, since time.Duration, waited time.Duration) {
	of, n := cmp.Or(c.key, c.project), max(c.tokens, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all += n
	if since >= p.half {
		p.by[of] += n
		p.waits[of] = append(p.waits[of], waited)
		p.log = append(p.log, passedCall{of, n})
	}
}

// run plays the scene.
func (s *scene) run(t *testing.T) *played {
	t.Helper()
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: map[string]ratelimit.ModelQuota{"m": s.quota}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rl.NewProjects(project.Config{Limits: s.limits}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(s.minutes())*time.Minute)
	defer stop()
	began, group := time.Now(), sync.WaitGroup{}
	p := &played{half: time.Duration(s.minutes()) * time.Minute / 2, by: map[string]int{}, waits: map[string][]time.Duration{}}
	work := func(c *crew, worker int) {
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
			asked := time.Now()
			res := c.acquire(ctx, rl, call)
			if res == nil {
				return
			}
			if c.cancels {
				time.Sleep(s.answer)
				res.Cancel()
				continue
			}
			p.count(c, time.Since(began), time.Since(asked))
			if c.answer != nil {
				time.Sleep(c.answer(r))
			} else {
				time.Sleep(s.answer)
			}
			res.Commit(c.tokens, 0)
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
	for a := range s.want {
		for b := range s.want {
			if apart, most := s.apart(p, a, b), s.mostApart(); a < b && apart > most {
				t.Errorf("%s and %s were served %.1f apart, by weight: want %.1f at most", a, b, apart, most)
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
	minute := cmp.Or(s.minute, max(s.quota.MaxRPM, s.quota.MaxTPM))
	t.Logf("%.1f%% are used", 100*float64(p.all)/float64(minute*s.minutes()))
	if all := minute * s.minutes(); p.all < all*cmp.Or(s.used, 98)/100 {
		t.Errorf("%d of %d were used: %d%%", p.all, all, p.all*100/all)
	}
	if all := minute * s.minutes() / 2; counted > all+minute {
		t.Errorf("%d of %d were used in the second half: %d%%", counted, all, counted*100/all)
	}
}

// apart returns by how much the service of two projects over their weights differs at most, over any interval of the
// second half.
func (s *scene) apart(p *played, a, b string) float64 {
	at, least, most := 0.0, 0.0, 0.0
	for _, c := range p.log {
		switch c.of {
		case a:
			at += float64(c.amount) / float64(max(s.limits[a].Weight, 1))
		case b:
			at -= float64(c.amount) / float64(max(s.limits[b].Weight, 1))
		}
		least, most = min(least, at), max(most, at)
	}
	return most - least
}

// mostApart returns by how much the service of two projects that want more than they get may differ, by weight: by what a
// project of weight 1 has of two minutes, and two of the largest calls.
func (s *scene) mostApart() float64 {
	weights, largest := 0, 1
	for _, l := range s.limits {
		if l.Priority != 0 || l.MinShare != 0 {
			return math.Inf(1) // not by weight
		}
		weights += max(l.Weight, 1)
	}
	for _, c := range s.crews {
		largest = max(largest, c.tokens)
	}
	return 2*float64(max(s.quota.MaxRPM, s.quota.MaxTPM))/float64(weights) + 2*float64(largest)
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

// Each project that wants its share has it within five points, however many users it has, and 98% of the quota is used.
func TestSharesHoldInScenes(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { s.check(t, s.run(t)) })
		})
	}
}

func scenes() (list []scene) {
	const second = time.Second
	rpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxRPM: n} }
	tpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxTPM: n} }
	none := project.Limit{}

	// Answers take long: workers of a have just enough calls under way for its three quarters.
	weights, due := map[string]project.Limit{"a": {Weight: 3}, "b": none}, map[string]int{"a": 75, "b": 25}
	for answer, workers := range map[time.Duration]int{15 * second: 34, 20 * second: 45, 22 * second: 50, 35 * second: 79, 90 * second: 200} {
		list = append(list, scene{name: "answers of " + answer.String(), quota: rpm(120), answer: answer, limits: weights, want: due,
			crews: []crew{{project: "a", workers: workers}, {project: "b", workers: 300}}})
	}
	for name, answer := range map[string]answers{"around 20 s": around(20 * second), "of a heavy tail": heavyTail(7 * second)} {
		list = append(list, scene{name: "answers " + name, quota: rpm(120), limits: weights, want: due,
			crews: []crew{{project: "a", workers: 45, answer: answer}, {project: "b", workers: 300, answer: answer}}})
	}

	// Callers do not wait, and try again.
	hog := crew{project: "hog", workers: 100}
	for _, retries := range []struct{ weight, pause, want int }{{1, 1, 50}, {9, 1, 90}, {1, 5, 50}} {
		list = append(list, scene{name: fmt.Sprintf("tries after %d s, weight %d", retries.pause, retries.weight), quota: rpm(120), answer: second,
			limits: map[string]project.Limit{"hog": none, "retries": {Weight: retries.weight}},
			crews:  []crew{hog, {project: "retries", workers: 20, retry: time.Duration(retries.pause) * second}},
			want:   map[string]int{"hog": 100 - retries.want, "retries": retries.want}})
	}

	// Crowds of users, beside one project of the same weight.
	equal, half := map[string]project.Limit{"honest": none, "crowd": none}, map[string]int{"honest": 50, "crowd": 50}
	crowd := func(n int) crew { return crew{project: "crowd", workers: n, users: n} }
	late := crowd(100)
	late.from = 90 * second
	list = append(list,
		scene{name: "a crowd of 150", quota: rpm(120), answer: second, limits: equal, want: half, crews: []crew{crowd(150), {project: "honest", workers: 20, users: 1}}},
		scene{name: "a crowd of 1,300", quota: rpm(120), answer: second, limits: equal, want: half, crews: []crew{crowd(1300), {project: "honest", workers: 20, users: 1}}},
		scene{name: "a crowd of 600, answers of 20 s", quota: rpm(600), answer: 20 * second, limits: equal, want: half, crews: []crew{crowd(600), {project: "honest", workers: 120}}},
		scene{name: "a late crowd", quota: rpm(120), answer: 5 * second, limits: equal, want: half, crews: []crew{{project: "honest", workers: 20}, late}},
		scene{name: "three teams of 40", quota: rpm(120), answer: 5 * second, limits: map[string]project.Limit{"honest": {Weight: 3}, "t1": none, "t2": none, "t3": none},
			crews: []crew{{project: "t1", workers: 40, users: 40}, {project: "t2", workers: 40, users: 40}, {project: "t3", workers: 40, users: 40}, {project: "honest", workers: 15}},
			want:  map[string]int{"honest": 50, "t1": 17, "t2": 17, "t3": 17}})
	many := scene{name: "a hundred projects", quota: rpm(600), answer: 2 * second, limits: map[string]project.Limit{"p0": {Weight: 25}}, want: map[string]int{"p0": 20}}
	for i := range 100 {
		many.crews = append(many.crews, crew{project: fmt.Sprintf("p%d", i), workers: 5 + 15*max(1-i, 0)})
	}
	list = append(list, many)

	// Keys of one project: one of them invents users.
	one := map[string]project.Limit{"p": none}
	keys := []crew{{project: "p", key: "inventive", workers: 20, users: 20}, {project: "p", key: "honest", workers: 5, users: 1}}
	due = map[string]int{"inventive": 50, "honest": 50}
	list = append(list,
		scene{name: "a key that invents users", quota: rpm(60), answer: second, limits: one, want: due, crews: keys},
		scene{name: "a key that invents users, by the limit of its project", quota: rpm(6000), minute: 60, answer: second, want: due, crews: keys,
			limits: map[string]project.Limit{"p": {RequestsPerMinute: 60}}},
		scene{name: "a key with many workers, by the limit of its project", quota: rpm(6000), minute: 60, answer: second, want: due,
			limits: map[string]project.Limit{"p": {RequestsPerMinute: 60}},
			crews:  []crew{{project: "p", key: "inventive", workers: 60}, {project: "p", key: "honest", workers: 5}}})

	// Calls that use ten times what they ask for.
	for answer, workers := range map[time.Duration]int{2 * second: 100, 20 * second: 600} {
		list = append(list, scene{name: "asks for a tenth, answers of " + answer.String(), quota: tpm(120_000), answer: answer,
			limits: map[string]project.Limit{"liar": none, "honest": none}, want: map[string]int{"liar": 50, "honest": 50},
			crews: []crew{{project: "liar", workers: workers, tokens: 1000, asks: 100}, {project: "honest", workers: 100, tokens: 1000}}})
	}

	// Calls that are larger than the share. One that asks for the whole quota needs a minute in which nothing else passes.
	fifths := map[string]project.Limit{"large": none, "small": {Weight: 5}}
	for tokens, used := range map[int]int{40_000: 98, 60_000: 95} {
		list = append(list, scene{name: fmt.Sprintf("calls of %d", tokens), quota: tpm(120_000), answer: 2 * second, limits: fifths, used: used,
			crews: []crew{{project: "large", workers: 4, tokens: tokens}, {project: "small", workers: 100, tokens: 1000}}, want: map[string]int{"large": 17, "small": 83},
			wait: map[string]time.Duration{"small": time.Minute * 2 * time.Duration(tokens+100*1000) / 120_000}}) // until a large call has gathered what it asks for, and has left again
	}

	// Slots: how many each project has decides, so by weight two are a call and a third apart at any time.
	users := crowd(150)
	users.answer = around(10 * second)
	list = append(list,
		scene{name: "8 slots", quota: ratelimit.ModelQuota{MaxConcurrent: 8}, minute: 48, answer: 10 * second, limits: weights, least: map[string]int{"a": 72, "b": 23},
			crews: []crew{{project: "a", workers: 40}, {project: "b", workers: 100}}},
		scene{name: "12 slots, beside a crowd of 150", quota: ratelimit.ModelQuota{MaxConcurrent: 12}, minute: 72, limits: equal, least: map[string]int{"honest": 43, "crowd": 43}, used: 95,
			crews: []crew{users, {project: "honest", workers: 12, answer: around(10 * second)}}})

	// Few people, who use less than their share, beside a project that makes as many calls as it can. A call of a part of
	// the quota may have to wait for that part of a minute until it fits, and those behind it until it has left again.
	people := crew{project: "people", workers: 5, pause: 15 * second, tokens: 100}
	for tokens, most := range map[int]time.Duration{10: 10 * second, 3000: 65 * second, 6000: 125 * second} {
		list = append(list, scene{name: fmt.Sprintf("people beside calls of %d", tokens), quota: tpm(6000), answer: second, limits: map[string]project.Limit{"noisy": none, "people": none},
			crews: []crew{{project: "noisy", workers: 200, tokens: tokens}, people}, used: 1, wait: map[string]time.Duration{"people": most}})
	}

	return append(list,
		scene{name: "levels of projects", quota: rpm(120), answer: second, least: map[string]int{"acme/search": 33, "acme/chat": 8, "beta": 45},
			limits: map[string]project.Limit{"acme": none, "acme/search": {Weight: 3}, "acme/chat": {Weight: 1}, "beta": {Weight: 1}},
			crews:  []crew{{project: "acme/search", workers: 8}, {project: "acme/chat", workers: 20}, {project: "beta", workers: 12}}},
		scene{name: "people beside one that waits for its own limit", quota: rpm(120), answer: 2 * second, limits: map[string]project.Limit{"hog": none, "chat": none, "stuck": {RequestsPerHour: 1}},
			crews: []crew{hog, {project: "stuck", workers: 50}, {project: "chat", workers: 10, pause: 15 * second}}, wait: map[string]time.Duration{"chat": 3 * second}},
		scene{name: "a minimum beside a higher priority", quota: rpm(120), answer: second, limits: map[string]project.Limit{"high": {Priority: 10}, "late": {MinShare: 30}},
			crews: []crew{{project: "high", workers: 200}, {project: "late", workers: 50, from: 90 * second}}, want: map[string]int{"high": 70, "late": 30}},
		scene{name: "people beside a hog", quota: rpm(120), answer: 2 * second, limits: map[string]project.Limit{"hog": none, "chat": none},
			crews: []crew{hog, {project: "chat", workers: 10, pause: 15 * second}}, wait: map[string]time.Duration{"chat": 3 * second}}) // a share of one call a second: of three people at once the last waits for two
}

// A project has no more than its maximum in any minute, wherever the minute begins.
func TestMaxShareHoldsInEveryMinute(t *testing.T) {
	const minutes = 20
	synctest.Test(t, func(t *testing.T) {
		rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: map[string]ratelimit.ModelQuota{"m": {MaxRPM: 120}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rl.NewProjects(project.Config{Limits: map[string]project.Limit{"capped": {MaxShare: 20}, "other": {}}}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), minutes*time.Minute)
		defer stop()
		var mu sync.Mutex
		var passed []time.Time
		group := sync.WaitGroup{}
		for worker := range 60 {
			r := rand.New(rand.NewPCG(uint64(worker), 7))
			c := crew{project: []string{"capped", "other"}[worker%2]}
			group.Go(func() {
				for {
					time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
					res := c.acquire(ctx, rl, ratelimit.Call{Model: "m", Project: c.project})
					if res == nil {
						return
					}
					if c.project == "capped" {
						mu.Lock()
						passed = append(passed, time.Now())
						mu.Unlock()
					}
					res.Commit(1, 1)
				}
			})
		}
		group.Wait()
		for i := 24; i < len(passed); i++ {
			if within := passed[i].Sub(passed[i-24]); within < time.Minute {
				t.Fatalf("25 calls passed within %v, until %v after the beginning; want 24 at most", within, passed[i].Sub(passed[0]))
			}
		}
		if len(passed) < 24*minutes*90/100 {
			t.Errorf("%d calls passed in %d minutes", len(passed), minutes)
		}
	})
}
