package ratelimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// newAsking returns a limiter with limits of a model, of projects and of runs.
func newAsking(t testing.TB) *RateLimiter {
	t.Helper()
	rl, err := NewWithConfig(Config{NoDefaults: true, Quotas: map[string]ModelQuota{"m": {MaxRPM: 3, MaxTPM: 100, MaxConcurrent: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rl.Close() })
	if _, err := rl.NewProjects(project.Config{
		Default: &project.Limit{}, Runs: project.RunLimit{Calls: 9},
		Limits: map[string]project.Limit{"a": {RequestsPerDay: 10}, "a/b": {TokensPerMinute: 50}},
	}); err != nil {
		t.Fatal(err)
	}
	return rl
}

// Asked has what every limit has answered: what was used before the call, and what it needed. It is the
// same whether the call is admitted, denied, or only asked about.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := newAsking(t)
		var asked Asked
		c := Call{Model: "m", Project: "a/b", Run: "r", Estimated: 30, Asked: &asked}
		want := func(used int64, retry ...time.Duration) []LimitAnswer {
			retry = append(retry, make([]time.Duration, 6-len(retry))...)
			return []LimitAnswer{
				{Limit: "max_rpm", Unit: "requests", Max: 3, Used: used, Needed: 1, RetryAfter: retry[0]},
				{Limit: "max_tpm", Unit: "tokens", Max: 100, Used: 30 * used, Needed: 30, RetryAfter: retry[1]},
				{Limit: "max_concurrent", Unit: "calls", Max: 2, Used: used, Needed: 1, RetryAfter: retry[2]},
				{Owner: "a/b", Limit: "tokens_per_minute", Unit: "tokens", Max: 50, Used: 30 * used, Needed: 30, RetryAfter: retry[3]},
				{Owner: "a", Limit: "requests_per_day", Unit: "requests", Max: 10, Used: used, Needed: 1, RetryAfter: retry[4]},
				{Owner: "run r", Limit: "runs.calls", Unit: "requests", Max: 9, Used: used, Needed: 1, RetryAfter: retry[5]},
			}
		}
		got := func() []LimitAnswer {
			list := asked.Limits()
			for i := range list {
				list[i].ResetAfter = 0
			}
			return list
		}
		for range 2 {
			if d, err := rl.DecideCall(t.Context(), c); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			testkit.Equal(t, "a question", want(0), got())
		}
		res, _, err := rl.TryAcquireCall(t.Context(), c)
		if err != nil || res == nil {
			t.Fatal(err)
		}
		testkit.Equal(t, "the first call", want(0), got())
		time.Sleep(time.Second)
		for name, ask := range map[string]func() (Decision, error){
			"a question": func() (Decision, error) { return rl.DecideCall(t.Context(), c) },
			"a call":     func() (Decision, error) { _, d, err := rl.TryAcquireCall(t.Context(), c); return d, err },
		} {
			d, err := ask()
			if owner, known := d.Denier(); err != nil || d.Allowed || owner != "a/b" || !known {
				t.Fatal(d, err)
			}
			testkit.Equal(t, name+" that is denied", want(1, 0, 0, 0, 59*time.Second), got())
		}
		kept := asked.Clone()
		asked.Forget()
		if len(asked.Limits()) != 0 || len(kept.Limits()) != 6 {
			t.Error("a copy changes with the original")
		}
		res.Cancel()
	})
}

// Waiting calls are listed in their order, with their tags.
func TestWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := newAsking(t)
		ctx, leave := context.WithCancel(t.Context())
		for range 2 {
			if res, _ := rl.TryAcquire("m", 1); res == nil {
				t.Fatal("the slots are taken")
			}
		}
		for _, tag := range []string{"first", "second"} {
			go rl.AcquireCall(ctx, Call{Model: "m", Project: "p", Estimated: 7, Tag: tag, MaxWait: time.Minute})
			synctest.Wait()
		}
		all := func(any, string, string) bool { return true }
		list := rl.WaitingCalls(all)
		now := time.Now().UTC()
		for i, tag := range []string{"first", "second"} {
			w := list[i]
			if w.Tag != tag || w.Position != i+1 || w.Project != "p" || w.Model != "m" || w.Tokens != 7 || w.Limit != "max_concurrent" || !w.Since.Equal(now) || !w.Until.Equal(now.Add(time.Minute)) || !w.PassesAt.IsZero() {
				t.Errorf("%d: %+v", i+1, w)
			}
		}
		if some := rl.WaitingCalls(func(tag any, _, _ string) bool { return tag == "second" }); len(some) != 1 || some[0].Position != 2 {
			t.Errorf("%+v", some)
		}
		leave()
		synctest.Wait()
		if list := rl.WaitingCalls(all); len(list) != 0 {
			t.Errorf("%+v", list)
		}
	})
}

// To keep the answers allocates nothing, once there is room for them.
func TestAskedAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	var asked Asked
	allocations := func(a *Asked) float64 {
		rl := newAsking(t)
		return testing.AllocsPerRun(100, func() {
			res, _, _ := rl.TryAcquireCall(t.Context(), Call{Model: "m", Project: "a/b", Run: "r", Estimated: 1, Asked: a})
			if res != nil {
				res.Cancel()
			}
		})
	}
	allocations(&asked)
	if with, without := allocations(&asked), allocations(nil); with > without {
		t.Errorf("%v allocations with answers, and %v without", with, without)
	}
}

func BenchmarkAsked(b *testing.B) {
	for name, asked := range map[string]*Asked{"kept": new(Asked), "not kept": nil} {
		b.Run(name, func(b *testing.B) {
			rl := newAsking(b)
			b.ReportAllocs()
			for b.Loop() {
				if res, _, _ := rl.TryAcquireCall(context.Background(), Call{Model: "m", Project: "a/b", Run: "r", Estimated: 1, Asked: asked}); res != nil {
					res.Cancel()
				}
			}
		})
	}
}

// Asked distinguishes what was used of a limit that reserves the most of a call from what calls under way have only
// reserved of it: the call itself aside.
func TestAskedTellsWhatIsReserved(t *testing.T) {
	rl := newAsking(t)
	if err := rl.Projects().SetLimit("p", project.Limit{Dollars: 100}); err != nil {
		t.Fatal(err)
	}
	var asked Asked
	c := Call{Project: "p", Tokens: Tokens{Input: 1}, Dollars: 10, MostDollars: 40, Asked: &asked}
	for i, want := range []LimitAnswer{
		{Owner: "p", Limit: "dollars", Unit: "nanodollars", Max: 100, Needed: 40},
		{Owner: "p", Limit: "dollars", Unit: "nanodollars", Max: 100, Used: 40, Reserved: 40, Needed: 40},
		{Owner: "p", Limit: "dollars", Unit: "nanodollars", Max: 100, Used: 45, Reserved: 40, Needed: 40},
		{Owner: "p", Limit: "dollars", Unit: "nanodollars", Max: 100, Used: 85, Reserved: 80, Needed: 40, RetryAfter: time.Second},
	} {
		res, d, err := rl.TryAcquireCall(t.Context(), c)
		got := asked.Limits()
		if err != nil || len(got) != 1 {
			t.Fatal(d, err, got)
		}
		got[0].ResetAfter = 0
		testkit.Equal(t, "the answer", want, got[0])
		if i == 1 {
			res.CommitPriced(Tokens{Input: 1}, 5)
		}
	}
}
