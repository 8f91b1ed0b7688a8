package ratelimit

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
)

func TestNilReservation(t *testing.T) {
	var none *Reservation
	none.Commit(1, 1)
	none.Cancel()
}

// TestRefundsAreNoHeadroomLater: a refund after its window has passed makes no room in the
// next window.
func TestRefundsAreNoHeadroomLater(t *testing.T) {
	for _, tt := range []struct {
		name  string
		quota ModelQuota
		later time.Duration
	}{
		{"requests_per_minute", ModelQuota{MaxRPM: 10, MaxTPM: 100, MaxInputTPM: 100, MaxOutputTPM: 100}, time.Minute},
		{"requests_per_day", ModelQuota{MaxRPD: 10, MaxTPD: 100}, 24 * time.Hour},
		{"calendar day", ModelQuota{MaxRPD: 10, MaxTPD: 100, DayResetsAt: "00:00 UTC"}, 24 * time.Hour},
		{"slot", ModelQuota{MaxConcurrent: 10}, 10 * time.Minute},
	} {
		for _, end := range []func(*Reservation){(*Reservation).Cancel, func(r *Reservation) { r.Commit(0, 0) }, func(r *Reservation) { r.Commit(50, 50) }} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rl := memLimiter(t, tt.quota)
					var early []*Reservation
					for range 10 {
						early = append(early, memTake(t, rl, 10))
					}
					memDenied(t, rl, 10)
					time.Sleep(tt.later)
					for range 10 {
						memTake(t, rl, 10)
					}
					before := memDenied(t, rl, 10)
					for _, res := range early {
						end(res)
					}
					after := memDenied(t, rl, 10)
					if tt.quota.MaxRPD == 0 { // the day is still that of the first calls
						before.Stats.RPD, after.Stats.RPD = 0, 0
					}
					if after != before {
						t.Errorf("%+v; want %+v", after, before)
					}
				})
			})
		}
	}
}

// TestSettleAfterReset: a reservation from before a reset is not counted any more, so it is
// not refunded, and later usage stays.
func TestSettleAfterReset(t *testing.T) {
	quota := ModelQuota{MaxTPM: 100, MaxRPM: 5, MaxRPD: 5, MaxTPD: 500, MaxConcurrent: 5}
	for _, tt := range []struct {
		name   string
		forget func(t *testing.T, rl *RateLimiter)
	}{
		{"Reset", func(_ *testing.T, rl *RateLimiter) { rl.Reset(memModel) }},
		{"Load", func(t *testing.T, rl *RateLimiter) {
			saved := memLimiter(t, quota)
			saved.file = rl.file
			saved.RecordUsage("other", 1, 1)
			if err := saved.Persist(); err != nil {
				t.Fatal(err)
			}
			if err := rl.Load(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rl := memLimiter(t, quota)
				var before []*Reservation
				for range 3 {
					before = append(before, memTake(t, rl, 30))
				}
				tt.forget(t, rl)
				if s := rl.Stats(memModel); s.TPM+s.RPM+s.RPD+s.TPD+s.Concurrent != 0 || !s.DayStart.IsZero() {
					t.Fatalf("%+v; want nothing used", s)
				}
				now := memTake(t, rl, 20)
				want := rl.Stats(memModel)
				before[0].Cancel()
				before[1].Commit(1, 1)
				before[2].Commit(0, 30)
				if s := rl.Stats(memModel); s != want {
					t.Errorf("stats %+v; want %+v", s, want)
				}
				now.Commit(1, 1)
				if s := rl.Stats(memModel); s.TPM != 2 || s.RPM != 1 || s.Concurrent != 0 {
					t.Errorf("%+v; want 2 tokens", s)
				}
			})
		})
	}
}

// TestDayOfTokensThatWereNotEstimated: the day of tokens begins with the call that used them.
func TestDayOfTokensThatWereNotEstimated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxTPD: 10})
		cancelled := memTake(t, rl, 5)
		time.Sleep(time.Hour)
		none := memTake(t, rl, 0)
		time.Sleep(time.Hour)
		cancelled.Cancel()
		none.Commit(4, 6)
		memPassesIn(t, rl, 1, DecisionTPDLimit, 23*time.Hour)

		none = memTake(t, rl, 0)
		time.Sleep(time.Hour)
		memTake(t, rl, 6) // begins the day, which includes the earlier usage
		none.Commit(1, 3)
		memPassesIn(t, rl, 1, DecisionTPDLimit, 24*time.Hour)
	})
}

// TestEndedOnce: of many concurrent ends of a reservation, one counts.
func TestEndedOnce(t *testing.T) {
	rl := memLimiter(t, ModelQuota{MaxTPM: 1 << 40, MaxConcurrent: 100, MaxRPM: 1000})
	kept := memTake(t, rl, 1000)
	for range 50 {
		res := memTake(t, rl, 100)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { res.Commit(100, 100) })
		}
		group.Wait()
	}
	for range 50 {
		res := memTake(t, rl, 100)
		var group sync.WaitGroup
		for range 8 {
			group.Go(res.Cancel)
		}
		group.Wait()
	}
	if s := rl.Stats(memModel); s.TPM != 50*200+1000 || s.RPM != 51 || s.Concurrent != 1 {
		t.Errorf("%+v; want 50 calls of 200 tokens, and one of 1000", s)
	}
	kept.Cancel()
}

// The naive model follows what the package promises, with no regard to cost: a list of calls,
// and sums over windows.

// naiveCall is a call, with its usage as far as it is known.
type naiveCall struct {
	at     int64
	n      [4]int64 // requests, tokens, input, output
	slot   bool     // the call has a slot until at+10m
	days   [2]*naiveDay
	split  bool // the estimate was given by input and output
	loose  bool // the model had no limits
	forgot bool // Reset has removed the call
}

// naiveDay is a day of requests or of tokens.
type naiveDay struct{ start, end, used int64 }

type naiveModel struct {
	quota ModelQuota
	known bool
	now   int64
	calls []*naiveCall
	days  [2]*naiveDay // the last day of requests, and of tokens
}

// naiveOrder is the order in which the limits of a model decide.
var naiveOrder = []kind.Kind{kind.MaxRPD, kind.MaxRPM, kind.MaxTPM, kind.MaxInputTPM, kind.MaxOutputTPM, kind.MaxTPD, kind.MaxConcurrent}

func (m *naiveModel) maxima() [kind.Models]int64 {
	q := m.quota
	return [kind.Models]int64{kind.MaxRPD: int64(q.MaxRPD), kind.MaxRPM: int64(q.MaxRPM), kind.MaxTPM: int64(q.MaxTPM), kind.MaxInputTPM: int64(q.MaxInputTPM),
		kind.MaxOutputTPM: int64(q.MaxOutputTPM), kind.MaxTPD: int64(q.MaxTPD), kind.MaxConcurrent: int64(q.MaxConcurrent)}
}

func (m *naiveModel) limited() bool { return m.maxima() != [kind.Models]int64{} }

// window returns the day that a time is in.
func (m *naiveModel) window(at int64) (start, end int64) {
	const day = int64(24 * time.Hour)
	switch m.quota.DayResetsAt {
	case "":
		return at, at + day
	case "00:00 UTC":
		return at / day * day, at/day*day + day
	case "18:00 UTC":
		start := (at+day/4)/day*day - day/4
		return start, start + day
	default:
		panic(m.quota.DayResetsAt)
	}
}

// day returns the day of a unit at a time, which is empty if it has ended.
func (m *naiveModel) day(unit int, at int64) naiveDay {
	if d := m.days[unit]; d != nil && at < d.end && d.used > 0 {
		return *d
	}
	return naiveDay{}
}

// used returns the usage that counts at a time if nothing else happens.
func (m *naiveModel) used(at int64) (used [kind.Models]int64) {
	for _, c := range m.calls {
		if at < c.at+int64(time.Minute) {
			used[kind.MaxRPM] += c.n[0]
			used[kind.MaxTPM] += c.n[1]
			used[kind.MaxInputTPM] += c.n[2]
			used[kind.MaxOutputTPM] += c.n[3]
		}
		if c.slot && at < c.at+int64(10*time.Minute) {
			used[kind.MaxConcurrent]++
		}
	}
	used[kind.MaxRPD], used[kind.MaxTPD] = m.day(0, at).used, m.day(1, at).used
	return used
}

// asks returns how much a call takes of each dimension.
func (m *naiveModel) asks(n [4]int64) [kind.Models]int64 {
	return [kind.Models]int64{kind.MaxRPD: n[0], kind.MaxRPM: n[0], kind.MaxTPM: n[1], kind.MaxInputTPM: n[2], kind.MaxOutputTPM: n[3], kind.MaxTPD: n[1], kind.MaxConcurrent: 1}
}

// denies returns the dimensions that deny a call at a time.
func (m *naiveModel) denies(at int64, n [4]int64) (by []kind.Kind) {
	used, asks := m.used(at), m.asks(n)
	for _, d := range naiveOrder {
		if most := m.maxima()[d]; most > 0 && used[d]+asks[d] > most {
			by = append(by, d)
		}
	}
	return by
}

// moments returns the times at which usage stops counting.
func (m *naiveModel) moments() []int64 {
	moments := []int64{m.now}
	for _, c := range m.calls {
		moments = append(moments, c.at+int64(time.Minute), c.at+int64(10*time.Minute))
	}
	for _, d := range m.days {
		if d != nil {
			moments = append(moments, d.end)
		}
	}
	slices.Sort(moments)
	return moments
}

// decide returns the code of a decision, and its RetryAfter.
func (m *naiveModel) decide(n [4]int64) (code DecisionCode, retry time.Duration) {
	if !m.known {
		return DecisionUnknownModel, 0
	}
	if !m.limited() {
		return DecisionUnlimited, 0
	}
	asks := m.asks(n)
	for _, d := range naiveOrder {
		if most := m.maxima()[d]; most > 0 && asks[d] > most {
			return factsOf(d.Name()).code, Never
		}
	}
	by := m.denies(m.now, n)
	if len(by) == 0 {
		return DecisionAllowed, 0
	}
	passes := func(but kind.Kind) time.Duration {
		for _, at := range m.moments() {
			if at >= m.now && !slices.ContainsFunc(m.denies(at, n), func(d kind.Kind) bool { return d != but }) {
				return time.Duration(at - m.now)
			}
		}
		panic("it never passes")
	}
	if slices.Contains(by, kind.MaxConcurrent) { // nobody knows when a call ends; at the latest, its lease does
		return factsOf(by[0].String()).code, max(passes(kind.MaxConcurrent), min(passes(kind.Models), engine.SlotGuess))
	}
	return factsOf(by[0].String()).code, passes(kind.Models)
}

func (m *naiveModel) stats() (s ModelStats) {
	used, q := m.used(m.now), m.quota
	s = ModelStats{RPM: int(used[kind.MaxRPM]), MaxRPM: q.MaxRPM, TPM: int(used[kind.MaxTPM]), MaxTPM: q.MaxTPM, RPD: int(used[kind.MaxRPD]), MaxRPD: q.MaxRPD,
		MaxInputTPM: q.MaxInputTPM, MaxOutputTPM: q.MaxOutputTPM, MaxTPD: q.MaxTPD, MaxConcurrent: q.MaxConcurrent}
	if day := m.day(0, m.now); day.used > 0 {
		s.DayStart = time.Unix(0, day.start).UTC()
	}
	for d, field := range map[kind.Kind]*int{kind.MaxInputTPM: &s.InputTPM, kind.MaxOutputTPM: &s.OutputTPM, kind.MaxTPD: &s.TPD, kind.MaxConcurrent: &s.Concurrent} {
		if m.maxima()[d] > 0 {
			*field = int(used[d])
		}
	}
	return s
}

func (m *naiveModel) state() (s UsageStats) {
	entries := func(unit int) (list []TokenEntry) {
		sums := map[int64]int64{}
		for _, c := range m.calls {
			if m.now < c.at+int64(time.Minute) {
				sums[c.at] += c.n[unit]
			}
		}
		for _, at := range slices.Sorted(maps.Keys(sums)) {
			if sums[at] > 0 {
				list = append(list, TokenEntry{time.Unix(0, at).UTC(), int(sums[at])})
			}
		}
		return list
	}
	for _, e := range entries(0) {
		s.Requests = append(s.Requests, slices.Repeat([]time.Time{e.Time}, e.Count)...)
	}
	s.Tokens = entries(1)
	if m.quota.MaxInputTPM > 0 {
		s.InputTokens = entries(2)
	}
	if m.quota.MaxOutputTPM > 0 {
		s.OutputTokens = entries(3)
	}
	if day := m.day(0, m.now); day.used > 0 {
		s.DayStart, s.DayCount = time.Unix(0, day.start).UTC(), int(day.used)
	}
	if day := m.day(1, m.now); day.used > 0 && m.quota.MaxTPD > 0 {
		s.DayTokens = &TokenEntry{time.Unix(0, day.start).UTC(), int(day.used)}
	}
	return s
}

// charge records a call as of now.
func (m *naiveModel) charge(n [4]int64, slot bool) *naiveCall {
	c := &naiveCall{at: m.now, slot: slot}
	m.calls = append(m.calls, c)
	m.correct(c, n)
	return c
}

// correct changes the known usage of a call to n.
func (m *naiveModel) correct(c *naiveCall, n [4]int64) {
	for unit := range c.days {
		switch of := c.days[unit]; {
		case of != nil:
			of.used += n[unit] - c.n[unit]
		case n[unit] > 0:
			c.days[unit] = m.dayOf(unit, c.at)
			c.days[unit].used += n[unit]
		}
	}
	c.n = n
}

// dayOf returns the day for a call that is in none yet: the present day, or one that begins
// with the call.
func (m *naiveModel) dayOf(unit int, at int64) *naiveDay {
	start, end := m.window(at)
	if d := m.days[unit]; d != nil && d.used > 0 && at < d.end && end > d.start {
		return d
	}
	d := &naiveDay{start: start, end: end}
	if last := m.days[unit]; last == nil || last.used == 0 || last.end <= at {
		m.days[unit] = d
	}
	return d
}

// estimate returns how much is reserved for an estimate.
func (m *naiveModel) estimate(input, output int, split bool) [4]int64 {
	if split {
		return [4]int64{1, int64(input + output), int64(input), int64(output)}
	}
	total := int64(input + output)
	return [4]int64{1, total, min(total, int64(m.quota.MaxInputTPM)), min(total, int64(m.quota.MaxOutputTPM))}
}

func (m *naiveModel) take(n [4]int64) *naiveCall {
	if !m.known || !m.limited() {
		return &naiveCall{loose: true}
	}
	return m.charge(n, m.quota.MaxConcurrent > 0)
}

func (m *naiveModel) commit(c *naiveCall, prompt, output int) {
	if c.loose {
		p, o := int64(max(prompt, 0)), int64(max(output, 0))
		m.charge([4]int64{1, p + o, p, o}, false)
		return
	}
	c.slot = false
	n := c.n
	if prompt >= 0 {
		n[2] = int64(prompt)
	}
	if output >= 0 {
		n[3] = int64(output)
	}
	switch {
	case prompt >= 0 && output >= 0:
		n[1] = int64(prompt + output)
	case c.split:
		n[1] = n[2] + n[3]
	default: // at least the known usage
		n[1] = max(n[1], int64(prompt), int64(output))
	}
	if !c.forgot {
		m.correct(c, n)
	}
}

func (m *naiveModel) cancel(c *naiveCall) {
	c.slot = false
	if !c.forgot && !c.loose {
		m.correct(c, [4]int64{})
	}
}

func (m *naiveModel) reset() {
	for _, c := range m.calls {
		c.forgot = true
	}
	m.calls, m.days = nil, [2]*naiveDay{}
}

func (m *naiveModel) setQuota(q ModelQuota) {
	moved := q.DayResetsAt != m.quota.DayResetsAt
	m.quota, m.known = q, true
	for _, d := range m.days {
		if moved && q.DayResetsAt != "" && d != nil && m.now < d.end {
			_, d.end = m.window(m.now)
		}
	}
}

var naiveSteps = []time.Duration{
	0, 0, 0, 1, time.Second, 10 * time.Second, 30 * time.Second, time.Minute - 1, time.Minute, 10*time.Minute - 1, 10 * time.Minute,
	time.Hour, 7 * time.Hour, 24*time.Hour - 1, 24 * time.Hour,
}

// naiveQuota draws quotas that all limit the same dimensions, of those that are counted only
// where they are limited.
func naiveQuota(limited map[string]bool) *rapid.Generator[ModelQuota] {
	return rapid.Custom(func(t *rapid.T) ModelQuota {
		draw := func(name string, most int) int {
			if is, ok := limited[name]; ok && !is {
				return 0
			} else if is {
				return rapid.IntRange(1, most).Draw(t, name)
			}
			return rapid.OneOf(rapid.Just(0), rapid.IntRange(1, most)).Draw(t, name)
		}
		return ModelQuota{
			MaxRPM: draw("max_rpm", 5), MaxTPM: draw("max_tpm", 50), MaxRPD: draw("max_rpd", 8), MaxInputTPM: draw("input", 40),
			MaxOutputTPM: draw("output", 40), MaxTPD: draw("max_tpd", 90), MaxConcurrent: draw("max_concurrent", 3),
			DayResetsAt: rapid.SampledFrom([]string{"", "", "00:00 UTC", "18:00 UTC"}).Draw(t, "day"),
		}
	})
}

// TestAgainstNaiveModel runs random histories through the limiter and the naive model, and
// compares every answer.
func TestAgainstNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := &memTime{}
		rl, err := NewWithConfig(Config{FilePath: "none", Providers: []Provider{ProviderLocal}, clock: func() int64 { return clock.now }})
		if err != nil {
			t.Fatal(err)
		}
		clock.now = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		model := &naiveModel{now: clock.now}
		limited := map[string]bool{}
		for _, name := range []string{"input", "output", "max_tpd", "max_concurrent"} {
			limited[name] = rapid.Bool().Draw(t, name)
		}
		set := func() {
			q := naiveQuota(limited).Draw(t, "quota")
			if err := rl.SetQuota(memModel, q); err != nil {
				t.Fatal(err)
			}
			model.setQuota(q)
		}
		if slices.Contains(slices.Collect(maps.Values(limited)), true) || rapid.IntRange(0, 9).Draw(t, "unknown") > 0 {
			set()
		}
		type pair struct {
			res  *Reservation
			call *naiveCall
		}
		var open, ended []pair
		tokens := rapid.IntRange(1, 45) // not zero, because usage of such a call counts from the next call with an estimate
		end := func() (p pair, ok bool) {
			if len(open) == 0 {
				return p, false
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			p = open[i]
			open = slices.Delete(open, i, i+1)
			ended = append(ended, p)
			return p, true
		}
		check := func(d Decision, code DecisionCode, retry time.Duration) {
			allowed := code == DecisionAllowed || code == DecisionUnknownModel || code == DecisionUnlimited
			if d.Allowed != allowed || d.Code != code || d.RetryAfter != retry {
				t.Fatalf("%+v; want %t, %s, %v", d, allowed, code, retry)
			}
			if want := model.stats(); d.Stats != want {
				t.Fatalf("the decision says\n%+v; want\n%+v", d.Stats, want)
			}
		}
		try := func(split bool) {
			input, output := tokens.Draw(t, "input"), tokens.Draw(t, "output")
			n := model.estimate(input, output, split)
			code, retry := model.decide(n)
			if !split {
				check(rl.Decide(memModel, input+output), code, retry)
			}
			var res *Reservation
			var d Decision
			if split {
				res, d = rl.TryAcquireTokens(memModel, Tokens{Input: input, Output: output})
			} else {
				res, d = rl.TryAcquire(memModel, input+output)
			}
			if (res != nil) != d.Allowed {
				t.Fatalf("%v, %+v", res, d)
			}
			if d.Allowed {
				call := model.take(n)
				call.split = split
				open = append(open, pair{res, call})
			}
			check(d, code, retry)
			if !d.Allowed && retry != Never && rapid.Bool().Draw(t, "come back") {
				clock.pass(retry - 1)
				model.now = clock.now
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"TryAcquire":       func(*rapid.T) { try(false) },
			"TryAcquireTokens": func(*rapid.T) { try(true) },
			"Commit": func(t *rapid.T) {
				if p, ok := end(); ok {
					prompt, output := rapid.IntRange(-1, 60).Draw(t, "prompt"), rapid.IntRange(-1, 60).Draw(t, "output")
					p.res.Commit(prompt, output)
					model.commit(p.call, prompt, output)
				}
			},
			"Cancel": func(*rapid.T) {
				if p, ok := end(); ok {
					p.res.Cancel()
					model.cancel(p.call)
				}
			},
			"end again": func(t *rapid.T) {
				if len(ended) > 0 {
					p := rapid.SampledFrom(ended).Draw(t, "which")
					p.res.Commit(40, 40)
					p.res.Cancel()
				}
			},
			"RecordUsage": func(t *rapid.T) {
				prompt, output := rapid.IntRange(-1, 60).Draw(t, "prompt"), rapid.IntRange(-1, 60).Draw(t, "output")
				rl.RecordUsage(memModel, prompt, output)
				model.commit(&naiveCall{loose: true}, prompt, output)
			},
			"SetQuota": func(*rapid.T) { set() },
			"Reset": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
					rl.Reset(memModel)
					model.reset()
					open = nil // whether usage beyond the estimates counts after a reset is not defined
				}
			},
			"prune": func(*rapid.T) { rl.prune() },
			"time": func(t *rapid.T) {
				clock.pass(rapid.SampledFrom(naiveSteps).Draw(t, "step"))
				model.now = clock.now
			},
			"": func(t *rapid.T) {
				if got, want := rl.Stats(memModel), model.stats(); got != want {
					t.Fatalf("stats\n%+v; want\n%+v", got, want)
				}
				got, ok := rl.State()[memModel]
				want := model.state()
				if !reflect.DeepEqual(got, want) || ok == reflect.DeepEqual(want, UsageStats{}) {
					t.Fatalf("state\n%+v, %t; want\n%+v", got, ok, want)
				}
			},
		})
	})
}
