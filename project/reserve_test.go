package project_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

const cent = price.Dollar / 100

// mayCost is a call that may cost 12 cents and is expected to cost half a cent.
func mayCost(projectID string) project.Call {
	return project.Call{
		Project: projectID, Tokens: llm.Tokens{Input: 10, Output: 100}, Dollars: cent / 2,
		Most: llm.Tokens{Input: 20, Output: 8192}, MostDollars: 12 * cent,
	}
}

// takeAll takes calls until one is denied. It returns their reservations and the denial.
func takeAll(t *testing.T, l *project.Limiter, c project.Call) (all []*project.Reservation, d project.Decision) {
	t.Helper()
	for {
		res, d, err := l.Take(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Allowed {
			return all, d
		}
		if all = append(all, res); len(all) > 1000 {
			t.Fatal("nothing denies the calls")
		}
	}
}

// Limits in dollars and those of runs reserve the most that a call can use, limits in tokens what is expected of it,
// unless their owner's Reserve says otherwise.
func TestWhatLimitsReserve(t *testing.T) {
	const tokens = 100_000
	for _, test := range []struct {
		name  string
		limit project.Limit
		runs  project.RunLimit
		want  int // calls that pass
	}{
		{"dollars", project.Limit{DollarsPerDay: price.Dollar}, project.RunLimit{}, 8},
		{"dollars in total", project.Limit{Dollars: price.Dollar}, project.RunLimit{}, 8},
		{"dollars, as expected", project.Limit{DollarsPerDay: price.Dollar, Reserve: project.ReserveExpected}, project.RunLimit{}, 200},
		{"tokens", project.Limit{TokensPerMinute: tokens}, project.RunLimit{}, 909},
		{"tokens, the most", project.Limit{TokensPerMinute: tokens, Reserve: project.ReserveMost}, project.RunLimit{}, 12},
		{"a run's dollars", project.Limit{}, project.RunLimit{Dollars: price.Dollar}, 8},
		{"a run's tokens", project.Limit{}, project.RunLimit{Tokens: tokens}, 12},
		{"a run's tokens, as expected", project.Limit{}, project.RunLimit{Tokens: tokens, Reserve: project.ReserveExpected}, 909},
		{"both", project.Limit{DollarsPerDay: price.Dollar, TokensPerMinute: 700}, project.RunLimit{}, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, kind := range kinds {
				t.Run(name, func(t *testing.T) {
					l := newLimiter(t, kind(t, project.Config{Default: &test.limit, Runs: test.runs}))
					c := mayCost("p")
					c.Run = "r"
					if all, _ := takeAll(t, l, c); len(all) != test.want {
						t.Errorf("%d calls have passed, want %d", len(all), test.want)
					}
				})
			}
		})
	}
}

// What calls reserve comes back when they end, and a denial says how much of what is used is only reserved.
func TestReservedComesBack(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{Dollars: price.Dollar}}))
			all, d := takeAll(t, l, mayCost("p"))
			s := d.Denying()
			if s == nil || !s.Held || s.Reserved != int64(96*cent) || d.RetryAfter != time.Second {
				t.Fatalf("%+v, %v: %s", s, d.RetryAfter, d.Reason())
			}
			if want := `project "p" has $0.04 of its $1.00 in total left, and calls under way have reserved $0.96 of what is used: try again in 1s`; d.Reason() != want {
				t.Errorf("%s; want %s", d.Reason(), want)
			}
			for _, res := range all {
				res.CommitPriced(llm.Tokens{Input: 10, Output: 100}, cent)
			}
			all, d = takeAll(t, l, mayCost("p"))
			if s := d.Denying(); len(all) != 7 || !s.Held || s.Reserved != int64(84*cent) || s.Used != int64(92*cent) {
				t.Errorf("%d calls have passed, and then %+v", len(all), s)
			}
			for _, res := range all {
				res.CommitPriced(llm.Tokens{Input: 10, Output: 8192}, 12*cent)
			}
			if _, d = takeAll(t, l, mayCost("p")); d.Denying().Held || d.Denying().Reserved != 0 || strings.Contains(d.Reason(), "reserved") {
				t.Errorf("nothing is reserved, and it says: %s", d.Reason())
			}
		})
	}
}

// A call that may wait waits for what others have reserved, even of a total, which never comes back once it is used.
// So a budget is used to its end, and never beyond it.
func TestABudgetIsUsedUpToItsEnd(t *testing.T) {
	for _, reserve := range []project.Reserve{project.ReserveMost, ""} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, project.Config{Default: &project.Limit{Dollars: price.Dollar, Reserve: reserve}})
			var spent, denied, idle atomic.Int64
			var all sync.WaitGroup
			for worker := range uint64(60) {
				all.Go(func() {
					random := rand.New(rand.NewPCG(worker, 1))
					for n := 0; ; n++ {
						c := mayCost("p")
						c.MaxWait = time.Hour
						res, _, err := l.Acquire(t.Context(), c)
						if err != nil {
							denied.Add(1)
							if n == 0 {
								idle.Add(1)
							}
							return
						}
						time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
						cost := price.Amount(random.Int64N(int64(cent)))
						if random.IntN(500) == 0 {
							cost = 12 * cent
						}
						res.CommitPriced(llm.Tokens{Input: 10, Output: 100}, cost)
						spent.Add(int64(cost))
					}
				})
			}
			all.Wait()
			if left := price.Dollar - price.Amount(spent.Load()); left < 0 || left >= 12*cent || denied.Load() != 60 || idle.Load() != 0 {
				t.Errorf("%v is left, %d of 60 workers were denied, and %d of them have not had a single call", left, denied.Load(), idle.Load())
			}
		})
	}
}

// A call fails whose most nobody knows, where a limit reserves that.
func TestMostThatNobodyKnows(t *testing.T) {
	l := newLimiter(t, project.Config{
		Default: &project.Limit{},
		Limits: map[string]project.Limit{
			"dollars": {Dollars: price.Dollar}, "tokens": {TokensPerMinute: 1000, Reserve: project.ReserveMost},
			"expected": {Dollars: price.Dollar, TokensPerMinute: 1000, Reserve: project.ReserveExpected},
		},
	})
	for id, says := range map[string]string{
		"dollars": `the limits of project "dollars" in dollars reserve that`, "tokens": `the limits of project "tokens" in tokens reserve that`,
		"expected": "", "other": "",
	} {
		_, d, err := l.Take(t.Context(), project.Call{
			Project: id, Tokens: llm.Tokens{Input: 1, Output: 1}, Dollars: 1, Most: llm.Tokens{Input: -1}, MostDollars: price.Unknown,
		})
		if says == "" && (err != nil || !d.Allowed) || says != "" && (!errors.Is(err, project.ErrUnbounded) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	_, _, err := l.Take(t.Context(), project.Call{Project: "tokens", Estimated: 5, Most: llm.Tokens{Output: 100}})
	if !errors.Is(err, project.ErrInvalid) || !strings.Contains(err.Error(), "Tokens is not") {
		t.Errorf("a most without its parts: %v", err)
	}
}

// Of what nobody has reported, limits that reserve the most keep the most.
func TestUnknownUsageStaysTheMost(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{
				Default: &project.Limit{},
				Limits: map[string]project.Limit{
					"a": {TokensPerDay: 100_000}, "a/b": {TokensPerDay: 100_000, Reserve: project.ReserveMost},
				},
			}))
			for _, test := range []struct {
				commit         func(*project.Reservation)
				expected, most int64
			}{
				{func(r *project.Reservation) { r.Commit(-1, -1) }, 110, 8212},
				{func(r *project.Reservation) { r.Commit(15, -1) }, 115, 8207},
				{func(r *project.Reservation) { r.Commit(15, 70) }, 85, 85},
				{func(r *project.Reservation) { r.Cancel() }, 0, 0},
			} {
				before := usedOf(t, l, "a/b")
				res, d, err := l.Take(t.Context(), mayCost("a/b"))
				if err != nil || !d.Allowed {
					t.Fatal(d.Reason(), err)
				}
				test.commit(res)
				after := usedOf(t, l, "a/b")
				if inner, outer := after[0]-before[0], after[1]-before[1]; inner != test.most || outer != test.expected {
					t.Errorf("%d of the most and %d of what is expected are used, want %d and %d", inner, outer, test.most, test.expected)
				}
			}
		})
	}
}

// usedOf returns what is used of each window of a project and of those above it.
func usedOf(t *testing.T, l *project.Limiter, id string) (used []int64) {
	t.Helper()
	d, err := l.Peek(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Windows() {
		used = append(used, s.Used)
	}
	return used
}

// However many calls come at once, however much each uses of what it may, and whoever waits: a limit that reserves the
// most is never exceeded.
func TestHardLimitsAreNeverExceeded(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{
				Default: &project.Limit{},
				Limits: map[string]project.Limit{
					"a": {DollarsPerMonth: 2 * price.Dollar}, "a/b": {DollarsPerDay: price.Dollar, TokensPerMonth: 50_000, Reserve: project.ReserveMost},
					"a/c": {Dollars: price.Dollar},
				},
				Runs: project.RunLimit{Dollars: 30 * cent},
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var spent [2]atomic.Int64
			var tokens atomic.Int64
			var all sync.WaitGroup
			for n := range 200 {
				all.Go(func() {
					which := n % 2
					c := mayCost([]string{"a/b", "a/c"}[which])
					res, d, err := l.Take(ctx, c)
					if err != nil || !d.Allowed {
						return
					}
					cost, output := price.Amount(1+rand.Int64N(int64(12*cent))), rand.IntN(8193)
					res.CommitPriced(llm.Tokens{Input: 20, Output: output}, cost)
					spent[which].Add(int64(cost))
					if which == 0 {
						tokens.Add(int64(20 + output))
					}
				})
			}
			all.Wait()
			b, c := price.Amount(spent[0].Load()), price.Amount(spent[1].Load())
			if b > price.Dollar || c > price.Dollar || tokens.Load() > 50_000 || b == 0 || c == 0 {
				t.Errorf("%v and %v of $1.00 are spent, and %d of 50,000 tokens", b, c, tokens.Load())
			}
			if used := usedOf(t, l, "a/c"); used[0] != int64(c) || used[1] != int64(b+c) {
				t.Errorf("%d are used, want %d and %d", used, c, b+c)
			}
		})
	}
}

// A limit is hard if it reserves the most of a call, or cuts those that overrun it.
func TestHard(t *testing.T) {
	for l, want := range map[project.Limit][2]bool{
		{}:                                 {false, true},
		{Reserve: project.ReserveMost}:     {true, true},
		{Reserve: project.ReserveExpected}: {false, false},
		{OnOverrun: project.OverrunCut}:    {true, true},
		{Reserve: project.ReserveExpected, OnOverrun: project.OverrunCut}:  {true, true},
		{Reserve: project.ReserveExpected, OnOverrun: project.OverrunDebt}: {false, false},
	} {
		if tokens, dollars := l.Hard(); [2]bool{tokens, dollars} != want {
			t.Errorf("%+v: tokens %v, dollars %v", l, tokens, dollars)
		}
		if tokens, dollars := (project.RunLimit{Reserve: l.Reserve, OnOverrun: l.OnOverrun}).Hard(); tokens != want[1] || dollars != want[1] {
			t.Errorf("runs of %+v: tokens %v, dollars %v", l, tokens, dollars)
		}
	}
}
