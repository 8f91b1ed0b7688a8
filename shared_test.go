package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"pgregory.net/rapid"
)

const (
	day = 24 * time.Hour

	ok         = ratelimit.DecisionAllowed
	overRPD    = ratelimit.DecisionRPDLimit
	overRPM    = ratelimit.DecisionRPMLimit
	overTPM    = ratelimit.DecisionTPMLimit
	overInput  = ratelimit.DecisionInputTPMLimit
	overOutput = ratelimit.DecisionOutputTPMLimit
	overTPD    = ratelimit.DecisionTPDLimit
	overSlots  = ratelimit.DecisionConcurrencyLimit
)

// play is a limiter that runs a scenario, and a record of all of its answers.
type play struct {
	*testing.T
	rl      *ratelimit.RateLimiter
	start   time.Time
	answers []string
}

func (p *play) record(what any) {
	text, err := json.Marshal(what)
	if err != nil {
		p.Fatal(err)
	}
	p.answers = append(p.answers, fmt.Sprintf("%v: %s", time.Since(p.start), text))
}

func (p *play) heard(asked string, d ratelimit.Decision, code ratelimit.DecisionCode, retry time.Duration) {
	p.Helper()
	p.record(d)
	if d.Code != code || d.RetryAfter != retry || d.Allowed != (code == ok || code == ratelimit.DecisionUnlimited || code == ratelimit.DecisionUnknownModel) || d.Reason() == "" {
		p.Errorf("at %v, %s: %+v; want %s, in %v", time.Since(p.start), asked, d, code, retry)
	}
}

func (p *play) try(model string, tokens int, code ratelimit.DecisionCode, retry time.Duration) *ratelimit.Reservation {
	p.Helper()
	p.decide(model, tokens, code, retry)
	res, d := p.rl.TryAcquire(model, tokens)
	p.heard(fmt.Sprintf("TryAcquire(%s, %d)", model, tokens), d, code, retry)
	if (res != nil) != d.Allowed {
		p.Errorf("%+v with %v", d, res)
	}
	return res
}

func (p *play) trySplit(model string, tokens ratelimit.Tokens, code ratelimit.DecisionCode, retry time.Duration) *ratelimit.Reservation {
	p.Helper()
	res, d := p.rl.TryAcquireTokens(model, tokens)
	p.heard(fmt.Sprintf("TryAcquireTokens(%s, %+v)", model, tokens), d, code, retry)
	return res
}

func (p *play) decide(model string, tokens int, code ratelimit.DecisionCode, retry time.Duration) {
	p.Helper()
	p.heard(fmt.Sprintf("Decide(%s, %d)", model, tokens), p.rl.Decide(model, tokens), code, retry)
}

// used records the usage of m, and fails the test unless some of it is as given.
func (p *play) used(rpm, tpm, rpd int) ratelimit.ModelStats {
	p.Helper()
	s := p.rl.Stats("m")
	p.record(s)
	if s.RPM != rpm || s.TPM != tpm || s.RPD != rpd {
		p.Errorf("at %v: %+v; want RPM %d, TPM %d, RPD %d", time.Since(p.start), s, rpm, tpm, rpd)
	}
	return s
}

func (p *play) setQuota(quota ratelimit.ModelQuota) {
	p.Helper()
	if err := p.rl.SetQuota("m", quota); err != nil {
		p.Fatal(err)
	}
}

// scenario is what happens to a limiter with some quotas.
type scenario struct {
	quotas quotas
	act    func(p *play)
}

// scenarios must end the same way in every ledger.
var scenarios = map[string]scenario{
	"requests a minute": {quotas{"m": {MaxRPM: 2}}, func(p *play) {
		p.try("m", 5, ok, 0)
		time.Sleep(10 * time.Second)
		p.try("m", 5, ok, 0)
		p.try("m", 5, overRPM, 50*time.Second)
		time.Sleep(50*time.Second - 1)
		p.try("m", 5, overRPM, 1)
		time.Sleep(time.Nanosecond)
		p.try("m", 5, ok, 0)
		p.try("m", 5, overRPM, 10*time.Second)
		p.used(2, 10, 3)
	}},
	"tokens a minute": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		p.try("m", 60, ok, 0)
		time.Sleep(time.Second)
		p.try("m", 41, overTPM, 59*time.Second)
		res := p.try("m", 40, ok, 0)
		p.try("m", 1, overTPM, 59*time.Second)
		p.try("m", 61, overTPM, time.Minute)
		p.try("m", 101, overTPM, ratelimit.Never)
		p.try("m", 0, ok, 0) // the call wants no tokens, and none are left
		res.Commit(30, 30)
		p.used(3, 120, 3)
		p.try("m", 0, overTPM, 59*time.Second) // a debt denies even a call without tokens
		p.try("m", 1, overTPM, 59*time.Second)
		p.try("m", 41, overTPM, time.Minute)
		time.Sleep(59 * time.Second)
		p.try("m", 40, ok, 0)
	}},
	"requests a day": {quotas{"m": {MaxRPD: 2}}, func(p *play) {
		p.try("m", 1, ok, 0)
		time.Sleep(time.Hour)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPD, 23*time.Hour)
		if s := p.used(1, 1, 2); !s.DayStart.Equal(p.start) {
			p.Errorf("%+v", s)
		}
		time.Sleep(23*time.Hour - 1)
		p.try("m", 1, overRPD, 1)
		time.Sleep(time.Nanosecond)
		if s := p.used(0, 0, 0); !s.DayStart.IsZero() {
			p.Errorf("%+v", s)
		}
		time.Sleep(5 * time.Hour)
		p.try("m", 1, ok, 0) // begins the next day
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPD, day)
	}},
	"a day of the calendar": {quotas{"m": {MaxRPD: 1, DayResetsAt: "00:00 America/Los_Angeles"}}, func(p *play) {
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPD, 8*time.Hour)
		time.Sleep(8 * time.Hour)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPD, day)
		time.Sleep(time.Until(time.Date(2000, time.April, 2, 8, 0, 0, 0, time.UTC)))
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPD, 23*time.Hour) // the clocks go forward
		time.Sleep(23 * time.Hour)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPD, day)
	}},
	"tokens a day": {quotas{"m": {MaxTPD: 100}}, func(p *play) {
		res := p.try("m", 60, ok, 0)
		time.Sleep(2 * time.Hour)
		p.try("m", 41, overTPD, 22*time.Hour)
		p.try("m", 101, overTPD, ratelimit.Never)
		res.Commit(10, 10)
		p.try("m", 81, overTPD, 22*time.Hour)
		p.try("m", 80, ok, 0)
		if s := p.used(1, 80, 2); s.TPD != 100 {
			p.Errorf("%+v", s)
		}
		time.Sleep(22 * time.Hour)
		p.try("m", 100, ok, 0)
	}},
	"a debt of a day": {quotas{"m": {MaxTPD: 100, MaxRPD: 2}}, func(p *play) {
		p.try("m", 90, ok, 0).Commit(100, 50)
		p.used(1, 150, 1)
		p.decide("m", 1, overTPD, day)
		p.rl.RecordUsage("m", 1, 1)
		p.rl.RecordUsage("m", 1, 1)
		if s := p.used(3, 154, 3); s.TPD != 154 {
			p.Errorf("%+v", s)
		}
		p.try("m", 1, overRPD, day)
	}},
	"input and output": {quotas{"m": {MaxInputTPM: 100, MaxOutputTPM: 50}}, func(p *play) {
		p.trySplit("m", ratelimit.Tokens{Input: 60, Output: 20}, ok, 0)
		p.trySplit("m", ratelimit.Tokens{Input: 41}, overInput, time.Minute)
		p.trySplit("m", ratelimit.Tokens{Output: 31}, overOutput, time.Minute)
		p.trySplit("m", ratelimit.Tokens{Input: 101}, overInput, ratelimit.Never)
		p.trySplit("m", ratelimit.Tokens{Input: 41, Output: 51}, overOutput, ratelimit.Never)
		time.Sleep(time.Second)
		p.trySplit("m", ratelimit.Tokens{Input: 40, Output: 30}, ok, 0)
		time.Sleep(time.Minute)
		res := p.try("m", 40, ok, 0) // input and output may each be all of it
		p.try("m", 11, overOutput, time.Minute)
		res.Commit(30, 5)
		if s := p.used(1, 35, 3); s.InputTPM != 30 || s.OutputTPM != 5 {
			p.Errorf("%+v", s)
		}
		p.trySplit("m", ratelimit.Tokens{Input: 70, Output: 45}, ok, 0)
		time.Sleep(time.Minute)
		p.try("m", 100, ok, 0)
	}},
	"nothing of what there is none": {quotas{"m": {MaxInputTPM: 100, MaxOutputTPM: 50}}, func(p *play) {
		p.trySplit("m", ratelimit.Tokens{Input: 10, Output: 10}, ok, 0).Commit(101, 5)
		p.trySplit("m", ratelimit.Tokens{Output: 5}, overInput, time.Minute) // a debt denies even a call without input
		time.Sleep(time.Minute)
		p.trySplit("m", ratelimit.Tokens{Input: 100}, ok, 0)
		p.trySplit("m", ratelimit.Tokens{Output: 5}, ok, 0)
	}},
	"concurrency": {quotas{"m": {MaxConcurrent: 2}}, func(p *play) {
		one, two := p.try("m", 1, ok, 0), p.try("m", 1, ok, 0)
		p.try("m", 1, overSlots, time.Second)
		one.Commit(1, 1)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overSlots, time.Second)
		two.Cancel()
		p.try("m", 1, ok, 0)
		p.rl.RecordUsage("m", 1, 1) // takes no slot
		p.try("m", 1, overSlots, time.Second)
		time.Sleep(10*time.Minute - 1)
		p.try("m", 1, overSlots, 1)
		time.Sleep(time.Nanosecond) // the leases of the callers that died have ended
		p.try("m", 1, ok, 0)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overSlots, time.Second)
	}},
	"the order of limits": {quotas{"m": {MaxRPM: 1, MaxTPM: 10, MaxRPD: 1}, "n": {MaxRPM: 1, MaxTPM: 10}}, func(p *play) {
		p.try("m", 10, ok, 0)
		p.try("m", 10, overRPD, day)
		p.try("m", 11, overTPM, ratelimit.Never)
		p.try("n", 10, ok, 0)
		p.try("n", 10, overRPM, time.Minute)
	}},
	"all or nothing": {quotas{"m": {MaxRPM: 5, MaxTPM: 10, MaxRPD: 5, MaxTPD: 100, MaxConcurrent: 5, MaxInputTPM: 10}}, func(p *play) {
		p.try("m", 8, ok, 0)
		for range 9 {
			p.try("m", 3, overTPM, time.Minute)
		}
		if s := p.used(1, 8, 1); s.Concurrent != 1 || s.TPD != 8 || s.InputTPM != 8 {
			p.Errorf("%+v", s)
		}
	}},
	"settled once": {quotas{"m": {MaxRPM: 9, MaxTPM: 100}}, func(p *play) {
		less, more, same, cancelled, unknown, half := p.try("m", 20, ok, 0), p.try("m", 10, ok, 0), p.try("m", 10, ok, 0), p.try("m", 10, ok, 0), p.try("m", 10, ok, 0), p.try("m", 10, ok, 0)
		p.used(6, 70, 6)
		for range 2 {
			less.Commit(4, 1)
			more.Commit(20, 5)
			same.Commit(5, 5)
			cancelled.Cancel()
			unknown.Commit(-1, -1)
			half.Commit(3, -1)
			p.used(5, 60, 5)
			less.Cancel()
			cancelled.Commit(50, 50)
		}
		(*ratelimit.Reservation)(nil).Commit(1, 1)
		(*ratelimit.Reservation)(nil).Cancel()
		p.used(5, 60, 5)
	}},
	"settled late": {quotas{"m": {MaxRPM: 9, MaxTPM: 100}}, func(p *play) {
		first, second := p.try("m", 90, ok, 0), p.try("m", 10, ok, 0)
		time.Sleep(time.Minute)
		p.try("m", 100, ok, 0)
		first.Commit(0, 0) // makes no room in a later window
		second.Commit(500, 0)
		p.used(1, 100, 3)
		p.try("m", 1, overTPM, time.Minute)
	}},
	"a debt of nothing": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		res := p.try("m", 0, ok, 0)
		time.Sleep(30 * time.Second)
		p.try("m", 11, ok, 0)
		res.Commit(7, 1)
		p.used(2, 19, 2)
		time.Sleep(time.Minute) // until then, the file may be stricter
	}},
	"no limits": {quotas{"free": {}}, func(p *play) {
		p.decide("free", 1<<40, ratelimit.DecisionUnlimited, 0)
		p.decide("nobody", 5, ratelimit.DecisionUnknownModel, 0)
		p.decide("free", -1, ratelimit.DecisionInvalidTokens, ratelimit.Never)
		p.decide("nobody", 1<<60, ratelimit.DecisionInvalidTokens, ratelimit.Never)
		if got := p.rl.State(); len(got) != 0 {
			p.Errorf("%+v", got)
		}
		p.try("free", 5, ratelimit.DecisionUnlimited, 0).Commit(3, 4)
		p.try("nobody", 5, ratelimit.DecisionUnknownModel, 0).Commit(-5, 1<<62)
		p.try("free", 5, ratelimit.DecisionUnlimited, 0).Cancel()
		if got := slices.Collect(p.rl.Models()); !slices.Equal(got, []string{"free", "nobody"}) {
			p.Errorf("%q", got)
		}
		p.record(p.rl.State())
		time.Sleep(day)
		if got := slices.Collect(p.rl.Models()); !slices.Equal(got, []string{"free"}) {
			p.Errorf("once nothing of it counts: %q", got)
		}
	}},
	"usage that was recorded": {quotas{"m": {MaxRPM: 2, MaxTPM: 10, MaxRPD: 100}}, func(p *play) {
		for range 4 {
			p.rl.RecordUsage("m", 3, 4)
			time.Sleep(time.Second)
		}
		p.used(4, 28, 4)
		p.try("m", 3, overRPM, 58*time.Second)
		p.rl.RecordUsage("m", -5, -6)
		p.rl.RecordUsage("", 5, 6)
		p.rl.RecordUsage("a\x00b", 5, 6)
		p.used(5, 28, 5)
		time.Sleep(time.Minute)
		p.rl.RecordUsage("m", 1<<62, 1<<62)
		p.try("m", 1, overTPM, time.Minute)
		time.Sleep(time.Minute)
		p.try("m", 10, ok, 0)
	}},
	"reset": {quotas{"m": {MaxRPM: 2, MaxTPM: 50, MaxRPD: 2, MaxConcurrent: 2}, "n": {MaxRPM: 1}}, func(p *play) {
		one := p.try("m", 10, ok, 0)
		p.try("m", 10, ok, 0)
		p.try("n", 1, ok, 0)
		p.rl.Reset("m")
		p.rl.Reset("nobody")
		if s := p.used(0, 0, 0); s.Concurrent != 0 || !s.DayStart.IsZero() {
			p.Errorf("%+v", s)
		}
		p.try("n", 1, overRPM, time.Minute)
		p.try("m", 10, ok, 0)
		two := p.try("m", 10, ok, 0)
		one.Cancel()
		p.try("m", 10, overRPD, day)
		two.Cancel()
		p.try("m", 10, ok, 0)
	}},
	"another quota": {quotas{"m": {MaxRPM: 3, MaxTPM: 100, MaxRPD: 10}}, func(p *play) {
		for range 3 {
			p.try("m", 10, ok, 0)
			time.Sleep(time.Second)
		}
		reserved := p.rl.Quotas()
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 1, MaxTPM: 100, MaxRPD: 10})
		p.try("m", 10, overRPM, 59*time.Second)
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 10, MaxTPM: 20, MaxRPD: 10})
		p.try("m", 10, overTPM, 58*time.Second)
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 10, MaxTPM: 40, MaxRPD: 3})
		p.try("m", 10, overRPD, day-3*time.Second)
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 4, MaxTPM: 40, MaxRPD: 4})
		p.try("m", 10, ok, 0)
		p.try("m", 10, overRPD, day-3*time.Second)
		p.setQuota(ratelimit.ModelQuota{})
		p.try("m", 10, ratelimit.DecisionUnlimited, 0).Commit(1, 1)
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 5})
		p.try("m", 10, overRPM, 57*time.Second)
		if reserved["m"].MaxRPM != 3 {
			p.Error("Quotas is no copy")
		}
	}},
	"settled under another quota": {quotas{"m": {MaxRPM: 9, MaxTPM: 100, MaxConcurrent: 2, MaxTPD: 500}}, func(p *play) {
		less, more := p.try("m", 50, ok, 0), p.try("m", 50, ok, 0)
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 3, MaxTPM: 90, MaxConcurrent: 1, MaxTPD: 400})
		p.try("m", 1, overTPM, time.Minute)
		less.Commit(5, 5)
		p.try("m", 10, overSlots, time.Second)
		more.Commit(40, 30)
		if s := p.used(2, 80, 2); s.TPD != 80 || s.Concurrent != 0 {
			p.Errorf("%+v", s)
		}
		p.try("m", 10, ok, 0)
	}},
	"a day that ends at another time": {quotas{"m": {MaxRPD: 2, MaxTPD: 50}}, func(p *play) {
		time.Sleep(time.Hour)
		p.try("m", 20, ok, 0)
		p.try("m", 20, ok, 0)
		time.Sleep(time.Hour)
		p.setQuota(ratelimit.ModelQuota{MaxRPD: 2, MaxTPD: 50, DayResetsAt: "00:00 UTC"})
		if s := p.rl.Stats("m"); s.RPD != 2 || s.TPD != 40 {
			p.Errorf("%+v", s)
		}
		p.try("m", 1, overRPD, 22*time.Hour)
		p.setQuota(ratelimit.ModelQuota{MaxRPD: 3, MaxTPD: 50, DayResetsAt: "12:00 UTC"})
		p.try("m", 20, overTPD, 10*time.Hour)
		time.Sleep(10 * time.Hour)
		p.try("m", 50, ok, 0)
	}},
	"a day whose first request was never made": {quotas{"m": {MaxRPD: 1}}, func(p *play) {
		res := p.try("m", 1, ok, 0)
		time.Sleep(time.Hour)
		res.Cancel()
		if s := p.used(0, 0, 0); !s.DayStart.IsZero() {
			p.Errorf("%+v", s)
		}
		p.try("m", 1, ok, 0)
		p.record(p.rl.Decide("m", 1))
	}},
	"names": {quotas{"a": {MaxRPM: 1}, "a/b": {MaxRPM: 1}, "a%2Fb": {MaxRPM: 1}, "ä": {MaxRPM: 1}, "model/a": {MaxRPM: 1}, "..": {MaxRPM: 1}, " ": {MaxRPM: 1}, "A": {MaxRPM: 1}, "a/requests": {MaxRPM: 1}}, func(p *play) {
		names := slices.Sorted(maps.Keys(p.rl.Quotas()))
		for _, name := range names {
			p.try(name, 1, ok, 0)
		}
		p.rl.RecordUsage("a/", 1, 1)
		if got := slices.Collect(p.rl.Models()); !slices.Equal(got, slices.Sorted(slices.Values(append(names, "a/")))) {
			p.Errorf("%q", got)
		}
		for _, name := range names {
			p.rl.Reset(name)
			for _, other := range names {
				if want := map[bool]int{true: 0, false: 1}[other == name]; p.rl.Stats(other).RPM != want {
					p.Errorf("%q was reset; %d are used of %q", name, p.rl.Stats(other).RPM, other)
				}
			}
			p.try(name, 1, ok, 0)
		}
		for name := range p.rl.Iter() {
			if name != " " {
				p.Errorf("the first is %q", name)
			}
			break
		}
	}},
	"first come, first served": {quotas{"m": {MaxRPM: 2, MaxTPM: 100}}, func(p *play) {
		p.try("m", 50, ok, 0)
		time.Sleep(10 * time.Second)
		p.try("m", 50, ok, 0)
		var served [4]time.Duration
		var wg sync.WaitGroup
		for i, tokens := range []int{90, 1, 1, 1} {
			wg.Go(func() {
				if _, err := p.rl.Acquire(p.Context(), "m", tokens); err != nil {
					p.Error(err)
				}
				served[i] = time.Since(p.start)
			})
			synctest.Wait()
		}
		p.heard("TryAcquire", p.rl.Decide("m", 0), overRPM, time.Minute)
		if _, d := p.rl.TryAcquire("m", 101); d.RetryAfter != ratelimit.Never {
			p.Errorf("%+v", d)
		}
		time.Sleep(time.Minute - 10*time.Second)
		synctest.Wait()
		p.heard("TryAcquire", p.rl.Decide("m", 0), overTPM, 10*time.Second) // there is room for the call, but others wait
		wg.Wait()
		if want := [4]time.Duration{70 * time.Second, 70 * time.Second, 130 * time.Second, 130 * time.Second}; served != want {
			p.Errorf("served after %v; want %v", served, want)
		}
		p.record(served)
	}},
	"waiting": {quotas{"m": {MaxRPM: 1, MaxTPM: 10, MaxConcurrent: 1}, "free": {}}, func(p *play) {
		for _, model := range []string{"free", "nobody"} {
			if res, err := p.rl.Acquire(p.Context(), model, 5); err != nil || res == nil {
				p.Errorf("%v, %v", res, err)
			}
			if err := p.rl.WaitForCapacity(p.Context(), model, 5); err != nil {
				p.Error(err)
			}
		}
		if _, err := p.rl.Acquire(p.Context(), "m", -1); err == nil {
			p.Error("less than nothing was acquired")
		}
		res, err := p.rl.Acquire(p.Context(), "m", 5)
		if err != nil {
			p.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(p.Context(), 5*time.Second)
		defer cancel()
		if _, err := p.rl.Acquire(ctx, "m", 5); !errors.Is(err, context.DeadlineExceeded) || time.Since(p.start) != 0 {
			p.Errorf("after %v: %v", time.Since(p.start), err)
		}
		<-ctx.Done()
		if err := p.rl.WaitForCapacity(ctx, "m", 5); !errors.Is(err, context.DeadlineExceeded) {
			p.Errorf("too late: %v", err)
		}
		if _, err := p.rl.Acquire(p.Context(), "m", 11); !errors.Is(err, ratelimit.ErrNever) {
			p.Errorf("too much: %v", err)
		}
		p.used(1, 5, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(20 * time.Second)
			res.Cancel() // lets the waiting call pass at once
		})
		if err := p.rl.WaitForCapacity(p.Context(), "m", 5); err != nil || time.Since(p.start) != 25*time.Second {
			p.Errorf("after %v: %v", time.Since(p.start), err)
		}
		p.used(0, 0, 0)
		wg.Wait()
		p.try("m", 10, ok, 0)
		wg.Go(func() {
			time.Sleep(time.Second)
			p.setQuota(ratelimit.ModelQuota{MaxRPM: 2, MaxTPM: 20})
		})
		if _, err := p.rl.Acquire(p.Context(), "m", 10); err != nil || time.Since(p.start) != 26*time.Second {
			p.Errorf("after %v: %v", time.Since(p.start), err)
		}
		wg.Wait()
	}},
}

// ledgers are the ways in which a limiter can count in a bubble: in memory, with a YAML file, and in a SQLite file.
var ledgers = []string{ratelimit.BackendYAML, ratelimit.BackendSQLite}

// openLedger returns a limiter that counts in a ledger, and closes it when the test ends.
func openLedger(t testing.TB, ledger, path string, cfg ratelimit.Config) *ratelimit.RateLimiter {
	t.Helper()
	cfg.Backend, cfg.FilePath = ledger, path
	rl, err := ratelimit.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rl.Close() })
	return rl
}

// wantSame fails the test unless all ledgers have given the same answers.
func wantSame(t rapid.TB, said [][]string) {
	t.Helper()
	for k, ledger := range ledgers {
		for i, inMemory := range said[0] {
			if i >= len(said[k]) || inMemory != said[k][i] {
				t.Fatalf("memory says\n  %s\nand %s\n  %q", inMemory, ledger, said[k][min(i, len(said[k])):min(i+1, len(said[k]))])
			}
		}
	}
}

func TestStoresLikeMemory(t *testing.T) { playEverywhere(t, scenarios) }

// playEverywhere plays scenarios in every ledger. They must end the same way.
func playEverywhere(t *testing.T, scenarios map[string]scenario) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			said := make([][]string, len(ledgers))
			for k, ledger := range ledgers {
				t.Run(ledger, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						rl := openLedger(t, ledger, filepath.Join(t.TempDir(), "limits"), ratelimit.Config{Quotas: scenario.quotas})
						p := &play{T: t, rl: rl, start: time.Now()}
						scenario.act(p)
						p.record(rl.AllStats())
						p.record(rl.State())
						p.record(rl.Quotas())
						p.record(slices.Collect(rl.Models()))
						said[k] = p.answers
						closeFile(t, rl)
					})
				})
			}
			if !t.Failed() {
				wantSame(t, said)
			}
		})
	}
}

// step is one step of a random history.
type step struct {
	Do     string
	Model  string
	Tokens ratelimit.Tokens
	Which  int // which of the reservations so far
	Quota  ratelimit.ModelQuota
	Wait   time.Duration
}

// histories draws quotas and steps. The set of limits of a model does not change, because only
// memory may know the usage from before a limit was set. Nor do the end of its day and its
// margin, and nothing is settled after a reset.
func histories(t *rapid.T) (quotas, []step) {
	resets := rapid.SampledFrom([]string{"", "00:00 UTC", "12:00 America/Los_Angeles"}).Draw(t, "resets")
	margin := rapid.SampledFrom([]time.Duration{0, 2 * time.Second, ratelimit.MaxMargin}).Draw(t, "margin")
	has := rapid.SliceOfN(rapid.Bool(), 7, 7).Draw(t, "has")
	quota := rapid.Custom(func(t *rapid.T) (q ratelimit.ModelQuota) {
		q.DayResetsAt, q.Margin = resets, margin
		few, many := rapid.SampledFrom([]int{1, 2, 3, 5, 8}), rapid.SampledFrom([]int{5, 10, 20, 50})
		for i, field := range []*int{&q.MaxRPM, &q.MaxRPD, &q.MaxConcurrent, &q.MaxTPM, &q.MaxTPD, &q.MaxInputTPM, &q.MaxOutputTPM} {
			most := map[bool]*rapid.Generator[int]{true: few, false: many}[i < 3].Draw(t, "most")
			if has[i] {
				*field = most
			}
		}
		return q
	})
	tokens := rapid.Custom(func(t *rapid.T) ratelimit.Tokens {
		n := rapid.SampledFrom([]int{1, 2, 3, 5, 7, 10, 11, 21})
		return ratelimit.Tokens{Input: n.Draw(t, "input"), Output: n.Draw(t, "output")}
	})
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		s := step{
			Do:     rapid.SampledFrom([]string{"try", "try", "split", "decide", "commit", "commit", "cancel", "record", "wait", "wait", "quota", "reset"}).Draw(t, "do"),
			Model:  rapid.SampledFrom([]string{"m", "m", "m", "a/b", "unknown"}).Draw(t, "model"),
			Tokens: tokens.Draw(t, "tokens"),
			Which:  rapid.IntRange(0, 9).Draw(t, "which"),
			Wait:   rapid.SampledFrom([]time.Duration{1, time.Second, 7 * time.Second, 30 * time.Second, time.Minute, time.Minute + margin, 10 * time.Minute, 5 * time.Hour, day}).Draw(t, "wait"),
		}
		if s.Do == "quota" && s.Model != "unknown" {
			s.Quota = quota.Draw(t, "quota")
		}
		return s
	}), 5, 30).Draw(t, "steps")
	return quotas{"m": quota.Draw(t, "m"), "a/b": quota.Draw(t, "a/b")}, steps
}

func (p *play) take(s step, reserved *[]*ratelimit.Reservation) {
	switch s.Do {
	case "try":
		res, d := p.rl.TryAcquire(s.Model, s.Tokens.Input)
		p.record(d)
		*reserved = append(*reserved, res)
	case "split":
		res, d := p.rl.TryAcquireTokens(s.Model, s.Tokens)
		p.record(d)
		*reserved = append(*reserved, res)
	case "decide":
		p.record(p.rl.Decide(s.Model, s.Tokens.Input))
	case "commit", "cancel":
		if s.Which >= len(*reserved) {
			return
		}
		if res := (*reserved)[s.Which]; s.Do == "commit" {
			res.Commit(s.Tokens.Input, s.Tokens.Output)
		} else {
			res.Cancel()
		}
	case "record":
		p.rl.RecordUsage(s.Model, s.Tokens.Input, s.Tokens.Output)
	case "wait":
		time.Sleep(s.Wait)
	case "quota":
		if s.Model == "unknown" {
			return
		}
		if err := p.rl.SetQuota(s.Model, s.Quota); err != nil {
			p.Error(err)
		}
	case "reset":
		p.rl.Reset(s.Model)
		*reserved = nil
	}
	p.record(p.rl.Stats(s.Model))
}

func TestStoresLikeMemoryAtRandom(t *testing.T) {
	dir, files := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		quotas, steps := histories(rt)
		if rapid.IntRange(0, 3).Draw(rt, "a file takes its time") != 0 {
			return
		}
		said := make([][]string, len(ledgers))
		for k, ledger := range ledgers {
			files++
			synctest.Test(t, func(t *testing.T) {
				rl := openLedger(t, ledger, filepath.Join(dir, fmt.Sprint(files)), ratelimit.Config{Quotas: quotas})
				p := &play{T: t, rl: rl, start: time.Now()}
				var reserved []*ratelimit.Reservation
				for _, s := range steps {
					p.take(s, &reserved)
				}
				p.record(rl.AllStats())
				p.record(rl.State())
				said[k] = p.answers
				closeFile(t, rl)
			})
		}
		wantSame(rt, said)
	})
}

// two opens a file twice, as two processes would.
func two(t *testing.T, q quotas) (a, b *ratelimit.RateLimiter) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.db")
	return openFile(t, path, q), openFile(t, path, q)
}

func mustTake(t *testing.T, rl *ratelimit.RateLimiter, tokens int) *ratelimit.Reservation {
	t.Helper()
	res, d := rl.TryAcquire("m", tokens)
	if !d.Allowed {
		t.Fatalf("%+v", d)
	}
	return res
}

// settled makes what a limiter has committed or cancelled known to other processes: a reading comes after it.
func settled(rl *ratelimit.RateLimiter) { rl.Stats("m") }

// settle waits until other processes find settled what was committed or cancelled.
func settle() {
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
}

// acquired returns how long a call of Acquire waits.
func acquired(t *testing.T, rl *ratelimit.RateLimiter, tokens int) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := rl.Acquire(t.Context(), "m", tokens); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

// Usage of another process leaves when the file says.
func TestWaitForAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, quotas{"m": {MaxRPM: 2, MaxTPM: 100, MaxRPD: 3}})
		mustTake(t, a, 90)
		time.Sleep(10 * time.Second)
		if waited := acquired(t, b, 11); waited != 50*time.Second {
			t.Errorf("waited for %v", waited)
		}
		mustTake(t, a, 1)
		if err := b.WaitForCapacity(t.Context(), "m", 1); err != nil || time.Now().UTC().Hour() != 0 || time.Now().Day() != 2 {
			t.Errorf("it is %v, %v", time.Now(), err)
		}
	})
}

// A refund of another process is found when the file says, at the latest; a free slot within a
// second.
func TestWaitForWhatAnotherProcessGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, quotas{"m": {MaxTPM: 100}})
		reserved := mustTake(t, a, 100)
		go func() {
			time.Sleep(5 * time.Second)
			reserved.Commit(1, 1)
		}()
		if waited := acquired(t, b, 50); waited < 5*time.Second || waited > time.Minute {
			t.Errorf("waited for %v", waited)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, quotas{"m": {MaxConcurrent: 1}})
		for _, given := range []time.Duration{1, 300 * time.Millisecond, time.Second, 3500 * time.Millisecond, 5 * time.Minute} {
			reserved := mustTake(t, a, 1)
			go func() {
				time.Sleep(given)
				reserved.Commit(1, 1)
			}()
			start := time.Now()
			res, err := b.Acquire(t.Context(), "m", 1)
			if err != nil {
				t.Fatal(err)
			}
			if late := time.Since(start) - given; late < 0 || late > time.Second {
				t.Errorf("given back after %v, and found %v later", given, late)
			}
			res.Commit(1, 1)
			settle()
		}
		mustTake(t, a, 1) // the caller dies
		if waited := acquired(t, b, 1); waited < 10*time.Minute || waited > 10*time.Minute+time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// A quota that another process sets is found by Load, and by waiting calls.
func TestWaitForAnotherQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, quotas{"m": {MaxRPM: 1}})
		mustTake(t, a, 1)
		go func() {
			time.Sleep(7 * time.Second)
			if err := errors.Join(a.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 2}), b.Load()); err != nil {
				t.Error(err)
			}
		}()
		if waited := acquired(t, b, 1); waited != 7*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// An account that cannot be read is lost for its model alone. Methods that return no error
// report it by Persist, once. A reset repairs it.
func TestDamagedAccount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	rl := openFile(t, path, quotas{"m": {MaxRPM: 2}, "n": {MaxRPM: 2}})
	reserved := mustTake(t, rl, 1)
	if err := rl.Persist(); err != nil { // which folds the changes
		t.Fatal(err)
	}
	execSQL(t, path, "UPDATE ledger SET account = x'99' WHERE key = CAST('model/m/requests' AS BLOB)")
	execSQL(t, path, "UPDATE journal SET id = id + 1") // so that the limiter reads the ledger again
	wantSaid := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "model/m/requests") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, d := rl.TryAcquire("m", 1)
	if d.Code != ratelimit.DecisionStoreLost || d.Allowed {
		t.Errorf("%+v", d)
	}
	wantSaid("TryAcquire", errors.New(d.Reason()))
	_, err := rl.Acquire(t.Context(), "m", 1)
	wantSaid("Acquire", err)
	wantSaid("WaitForCapacity", rl.WaitForCapacity(t.Context(), "m", 1))
	if _, d := rl.TryAcquire("n", 1); !d.Allowed {
		t.Errorf("n: %+v", d)
	}
	if state := rl.State(); state["n"].DayCount != 1 {
		t.Errorf("%+v", state)
	}
	wantSaid("State and Persist", rl.Persist())
	reserved.Commit(1, 1)
	rl.RecordUsage("m", 1, 1)
	if _, d := rl.TryAcquire("n", 1); !d.Allowed {
		t.Errorf("n, when m cannot be settled: %+v", d)
	}
	rl.Reset("m")
	wantSaid("Commit and Persist", rl.Persist())
	if err := rl.Persist(); err != nil {
		t.Errorf("said before: %v", err)
	}
	if n, _ := fill(rl, "m", 1); n != 2 {
		t.Errorf("%d pass once it was reset", n)
	}
	closeFile(t, rl)
}
