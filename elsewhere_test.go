package ratelimit_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// leaves returns a provider's window with so much remaining.
func leaves(unit llm.Unit, per time.Duration, remaining int64, reset time.Duration) llm.Window {
	return llm.Window{Unit: unit, Per: per, Remaining: remaining, Reset: reset}
}

// hears passes windows that m's provider reports to Heed.
func (p *play) hears(windows ...llm.Window) {
	p.rl.Heed(p.Context(), "m", llm.Limits{Windows: windows})
}

// lowered has scenarios in which others use the same account. They must end the same way in
// every ledger.
var lowered = map[string]scenario{
	"fewer requests": {quotas{"m": {MaxRPM: 10}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 3, time.Minute)) // others use 7
		for range 3 {
			p.try("m", 1, ok, 0)
		}
		seventh := time.Minute/7 + 1
		p.try("m", 1, overRPM, seventh)
		time.Sleep(seventh - 1)
		p.try("m", 1, overRPM, 1)
		time.Sleep(time.Nanosecond)
		p.try("m", 1, ok, 0)
		time.Sleep(time.Minute - seventh - 1)
		for range 5 {
			p.try("m", 1, ok, 0)
		}
		time.Sleep(time.Nanosecond) // nothing is missing any more, and the first three calls have left the window
		for range 4 {
			p.try("m", 1, ok, 0)
		}
		p.used(10, 10, 13)
	}},
	"a pace": {quotas{"m": {MaxRPM: 10, MaxTPM: 100, Pace: ratelimit.PaceEven}}, func(p *play) {
		p.try("m", 60, ok, 0)
		time.Sleep(40 * time.Second)                                                                                    // the pace has caught up
		p.hears(leaves(llm.Requests, time.Minute, 9, time.Minute), leaves(llm.AllTokens, time.Minute, 40, time.Minute)) // others use nothing
		p.try("m", 40, ok, 0)
		p.used(2, 100, 2)
		time.Sleep(20 * time.Second)
		p.hears(leaves(llm.AllTokens, time.Minute, 30, time.Minute)) // others use 30
		p.try("m", 31, overTPM, 4*time.Second)                       // 24 s for 40 tokens ahead of the pace
		time.Sleep(4 * time.Second)
		p.try("m", 31, ok, 0)
		p.try("m", 1, overRPM, 13_200*time.Millisecond) // 32 would be ahead, and 10 may be
	}},
	"fewer tokens": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		p.hears(leaves(llm.AllTokens, time.Minute, 10, 90*time.Second)) // others use 90
		p.decide("m", 10, ok, 0)
		p.try("m", 11, overTPM, time.Second)
		p.try("m", 50, overTPM, 40*time.Second)
		p.try("m", 100, overTPM, 90*time.Second)
		p.try("m", 101, overTPM, ratelimit.Never)
		time.Sleep(40*time.Second - 1)
		p.try("m", 50, overTPM, 1)
		time.Sleep(time.Nanosecond)
		p.try("m", 50, ok, 0)
		p.used(1, 50, 1)
	}},
	"those who have used some": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		p.try("m", 60, ok, 0)
		time.Sleep(10 * time.Second)
		p.hears(leaves(llm.AllTokens, time.Minute, 10, 30*time.Second)) // others use 30
		p.try("m", 10, ok, 0)
		p.try("m", 1, overTPM, time.Second)
		p.try("m", 30, overTPM, 30*time.Second)
		p.try("m", 31, overTPM, 50*time.Second) // others use less than 30 by then
		p.try("m", 90, overTPM, 50*time.Second)
		p.try("m", 91, overTPM, time.Minute)
		time.Sleep(50 * time.Second)
		p.try("m", 90, ok, 0)
	}},
	"all that is left is theirs": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		p.try("m", 90, ok, 0)
		p.hears(leaves(llm.AllTokens, time.Minute, 0, 10*time.Second)) // others use 10
		p.try("m", 10, overTPM, 10*time.Second)
		p.try("m", 11, overTPM, time.Minute)
		p.try("m", 50, overTPM, time.Minute)
		p.try("m", 100, overTPM, time.Minute)
		time.Sleep(10 * time.Second)
		p.try("m", 10, ok, 0)
		p.try("m", 1, overTPM, 50*time.Second)
	}},
	"own use leaves sooner than theirs": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		p.try("m", 50, ok, 0)
		time.Sleep(50 * time.Second)
		p.hears(leaves(llm.AllTokens, time.Minute, 0, time.Hour)) // others use 50
		p.try("m", 40, overTPM, 10*time.Second)
		p.try("m", 51, overTPM, 72*time.Second)
		time.Sleep(10 * time.Second)
		p.try("m", 50, ok, 0)
	}},
	"nothing is left, and nothing is used": {quotas{"m": {MaxRPM: 5, MaxTPM: 100}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 0, time.Minute), leaves(llm.AllTokens, time.Minute, 0, time.Minute))
		p.try("m", 2, overTPM, 1200*time.Millisecond)
		p.try("m", 1, ok, 0) // one call passes, to find out
		p.try("m", 1, overRPM, 24*time.Second)
	}},
	"more than the quota": {quotas{"m": {MaxRPM: 2, MaxTPM: 100}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 500, time.Minute), leaves(llm.AllTokens, time.Minute, 100, time.Minute))
		p.try("m", 60, ok, 0)
		p.try("m", 41, overTPM, time.Minute)
		p.try("m", 40, ok, 0)
		p.try("m", 0, overRPM, time.Minute)
	}},
	"more again, of a minute": {quotas{"m": {MaxRPM: 10}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 4, time.Minute)) // others use 6
		p.hears(leaves(llm.Requests, time.Minute, 9, time.Second)) // from an answer that may be older
		for range 4 {
			p.try("m", 1, ok, 0)
		}
		p.try("m", 1, overRPM, 10*time.Second)
		time.Sleep(20 * time.Second) // others use 4
		p.hears(leaves(llm.Requests, time.Minute, 1, time.Minute))
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPM, 12*time.Second)                       // others used 5
		p.hears(leaves(llm.Requests, time.Minute, 3, 2*time.Second)) // the difference of 2 is smaller
		p.try("m", 1, overRPM, 12*time.Second)
	}},
	"more again, of a day": {quotas{"m": {MaxRPD: 10}}, func(p *play) {
		p.hears(leaves(llm.Requests, llm.Day, 1, 24*time.Hour))
		p.try("m", 1, ok, 0)
		p.hears(leaves(llm.Requests, llm.Day, 3, 12*time.Hour)) // others use 6
		for range 3 {
			p.try("m", 1, ok, 0)
		}
		p.try("m", 1, overRPD, 2*time.Hour)
		p.hears(leaves(llm.Requests, llm.Day, 6, 12*time.Hour)) // others use none
		for range 6 {
			p.try("m", 1, ok, 0)
		}
		p.try("m", 1, overRPD, 24*time.Hour)
	}},
	"less again": {quotas{"m": {MaxRPM: 10}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 5, time.Minute))
		time.Sleep(30 * time.Second) // others use 3 of 5
		p.hears(leaves(llm.Requests, time.Minute, 2, 16*time.Second))
		p.try("m", 1, ok, 0)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPM, 2*time.Second)
	}},
	"what it does not say stays": {quotas{"m": {MaxRPD: 10, MaxTPM: 100}}, func(p *play) {
		p.hears(leaves(llm.Requests, llm.Day, 1, 24*time.Hour), leaves(llm.AllTokens, time.Minute, 10, 90*time.Second))
		p.hears(leaves(llm.Requests, llm.Day, 10, 24*time.Hour), leaves(llm.AllTokens, time.Minute, -1, time.Second))
		p.try("m", 11, overTPM, time.Second)
		p.try("m", 5, ok, 0)
		p.try("m", 5, ok, 0)
		p.try("m", 1, overTPM, time.Second)
	}},
	"a window that nothing limits": {quotas{"m": {MaxRPM: 3}}, func(p *play) {
		p.hears(
			leaves(llm.Requests, llm.Day, 0, time.Hour), leaves(llm.AllTokens, time.Minute, 0, time.Minute), leaves(llm.AllTokens, llm.Day, 0, time.Hour),
			leaves(llm.InputTokens, time.Minute, 0, time.Minute), leaves(llm.OutputTokens, time.Minute, 0, time.Minute),
			leaves(llm.Requests, time.Second, 0, time.Second), leaves(llm.Requests, 0, 0, time.Minute), leaves("images", time.Minute, 0, time.Minute),
		)
		for range 3 {
			p.try("m", 1000, ok, 0)
		}
		p.try("m", 1000, overRPM, time.Minute)
	}},
	"a model that nothing limits": {quotas{"m": {}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 0, time.Minute), leaves(llm.AllTokens, time.Minute, 0, time.Minute))
		p.try("m", 1000, ratelimit.DecisionUnlimited, 0)
	}},
	"another model": {quotas{"m": {MaxRPM: 3}, "n": {MaxRPM: 1}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 0, time.Minute))
		p.try("n", 1, ok, 0)
		p.try("n", 1, overRPM, time.Minute)
		p.rl.Heed(p.Context(), "unknown", llm.Limits{Windows: []llm.Window{leaves(llm.Requests, time.Minute, 0, time.Minute)}})
		p.try("unknown", 1, ratelimit.DecisionUnknownModel, 0)
	}},
	"a reset that is not said": {quotas{"m": {MaxRPM: 7, MaxRPD: 10}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 1, 0), leaves(llm.Requests, llm.Day, 0, 0)) // the reset of a day is not known
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPM, 10*time.Second)
	}},
	"several windows": {quotas{"m": {MaxRPM: 10, MaxTPM: 1000, MaxInputTPM: 600, MaxOutputTPM: 400, MaxRPD: 100, MaxTPD: 5000}}, func(p *play) {
		p.hears(
			leaves(llm.Requests, time.Minute, 5, time.Minute),
			leaves(llm.AllTokens, time.Minute, 600, time.Minute),
			leaves(llm.InputTokens, time.Minute, 100, 50*time.Second),
			leaves(llm.OutputTokens, time.Minute, 300, 10*time.Second),
			leaves(llm.Requests, llm.Day, 4, 96*time.Hour/4),
			leaves(llm.AllTokens, llm.Day, 500, 9*time.Hour),
		)
		p.trySplit("m", ratelimit.Tokens{Input: 101, Output: 1}, overInput, 100*time.Millisecond)
		p.trySplit("m", ratelimit.Tokens{Input: 1, Output: 301}, overOutput, 100*time.Millisecond)
		p.trySplit("m", ratelimit.Tokens{Input: 350, Output: 251}, overTPM, 12*time.Minute+7200*time.Millisecond)
		p.trySplit("m", ratelimit.Tokens{Input: 100, Output: 300}, ok, 0)
		for range 3 {
			p.trySplit("m", ratelimit.Tokens{}, ok, 0)
		}
		p.trySplit("m", ratelimit.Tokens{}, overRPD, 15*time.Minute)
	}},
	"a day": {quotas{"m": {MaxRPD: 10, MaxTPD: 1000}}, func(p *play) {
		p.hears(leaves(llm.Requests, llm.Day, 2, 24*time.Hour)) // others use 8
		p.try("m", 1, ok, 0)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPD, 3*time.Hour)
		time.Sleep(3*time.Hour - 1)
		p.try("m", 1, overRPD, 1)
		time.Sleep(time.Nanosecond)
		p.try("m", 1, ok, 0)
		p.hears(leaves(llm.Requests, llm.Day, 7, 24*time.Hour), leaves(llm.AllTokens, llm.Day, 0, time.Hour)) // others use 997 tokens
		p.try("m", 997, overTPD, time.Hour)
		p.try("m", 998, overTPD, 21*time.Hour)
		time.Sleep(time.Hour)
		p.try("m", 997, ok, 0)
	}},
	"a debt": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		reserved := p.try("m", 20, ok, 0)
		time.Sleep(10 * time.Second)
		p.try("m", 20, ok, 0)
		p.hears(leaves(llm.AllTokens, time.Minute, 40, 10*time.Second)) // others use 20
		reserved.Commit(40, 50)                                         // 110 are used
		p.try("m", 10, overTPM, 50*time.Second)
		p.try("m", 0, overTPM, 50*time.Second)
		p.try("m", 80, overTPM, 50*time.Second)
		p.try("m", 81, overTPM, 60*time.Second)
		time.Sleep(50 * time.Second)
		p.try("m", 80, ok, 0)
	}},
	"a debt, and then a word": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		p.try("m", 20, ok, 0).Commit(100, 20)
		p.hears(leaves(llm.AllTokens, time.Minute, 0, 10*time.Second))
		p.try("m", 1, overTPM, time.Minute)
		time.Sleep(time.Minute)
		p.try("m", 100, ok, 0)
	}},
	"plenty again, whatever is owed": {quotas{"m": {MaxRPD: 10}}, func(p *play) {
		p.hears(leaves(llm.Requests, llm.Day, 5, 24*time.Hour))
		for range 12 {
			p.rl.RecordUsage("m", 1, 1)
		}
		time.Sleep(time.Hour)
		p.hears(leaves(llm.Requests, llm.Day, math.MaxInt64, 24*time.Hour))
		p.try("m", 1, overRPD, 23*time.Hour)
		time.Sleep(23 * time.Hour)
		for range 10 {
			p.try("m", 1, ok, 0)
		}
	}},
	"what is given back": {quotas{"m": {MaxTPM: 100, MaxRPM: 10}}, func(p *play) {
		reserved := p.try("m", 40, ok, 0)
		p.hears(leaves(llm.AllTokens, time.Minute, 10, time.Minute)) // others use 50
		p.try("m", 11, overTPM, 1200*time.Millisecond)
		reserved.Commit(5, 5)
		p.try("m", 41, overTPM, 1200*time.Millisecond)
		p.try("m", 40, ok, 0).Cancel()
		p.try("m", 40, ok, 0)
		p.try("m", 1, overTPM, 1200*time.Millisecond)
	}},
	"another quota meanwhile": {quotas{"m": {MaxRPM: 10}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 4, time.Minute)) // others use 6
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 8})
		p.try("m", 1, ok, 0)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPM, 10*time.Second)
		p.setQuota(ratelimit.ModelQuota{MaxRPM: 3})
		p.try("m", 1, overRPM, time.Minute) // all 6 have to be back
		p.setQuota(ratelimit.ModelQuota{MaxTPM: 10})
		p.try("m", 8, ok, 0)
	}},
	"reset": {quotas{"m": {MaxRPM: 2}}, func(p *play) {
		p.hears(leaves(llm.Requests, time.Minute, 0, time.Hour))
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPM, time.Minute)
		p.rl.Reset("m")
		p.try("m", 1, ok, 0)
		p.try("m", 1, ok, 0)
		p.try("m", 1, overRPM, time.Minute)
	}},
	"what was given back since": {quotas{"m": {MaxOutputTPM: 3}}, func(p *play) { // the refund hid the usage of others
		p.try("m", 3, ok, 0).Cancel()
		p.hears(leaves(llm.OutputTokens, time.Minute, 0, time.Minute))
		p.try("m", 1, ok, 0)
		p.try("m", 1, ratelimit.DecisionOutputTPMLimit, 40*time.Second)
	}},
	"the stricter of two that say the same": {quotas{"m": {MaxTPM: 100}}, func(p *play) {
		p.hears(leaves(llm.AllTokens, time.Minute, 10, time.Minute), leaves(llm.AllTokens, time.Minute, 80, time.Minute))
		p.try("m", 10, ok, 0)
		p.try("m", 1, overTPM, time.Minute/90+1)
	}},
}

func TestHeedOthers(t *testing.T) { playEverywhere(t, lowered) }

// Invalid windows change nothing, with a debt or without.
func TestHeedNonsense(t *testing.T) {
	for _, w := range []llm.Window{
		leaves(llm.Requests, time.Minute, math.MaxInt64, time.Minute),
		leaves(llm.AllTokens, time.Minute, math.MaxInt64, math.MaxInt64),
		leaves(llm.Requests, time.Minute, -1, time.Minute),
		leaves(llm.AllTokens, time.Minute, math.MinInt64, time.Minute),
		leaves(llm.Requests, llm.Day, 0, -time.Hour),
		leaves(llm.Requests, -time.Minute, 0, time.Minute),
		{},
	} {
		t.Run(fmt.Sprintf("%+v", w), func(t *testing.T) {
			everyLedger(t, quotas{"m": {MaxRPM: 10, MaxTPM: 100, MaxRPD: 50}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
				reserved := mustTake(t, rl, 10)
				for _, tokens := range []int{5, 200} { // the second makes a debt
					want := rl.Decide("m", 50)
					rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{w}})
					if got := rl.Decide("m", 50); got != want {
						t.Errorf("%+v; want %+v", got, want)
					}
					reserved.Commit(tokens, 0)
					reserved = nil
					rl.RecordUsage("m", tokens, 0)
				}
			})
		})
	}
	t.Run("a reset that is far away", func(t *testing.T) {
		everyLedger(t, quotas{"m": {MaxRPM: 10}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
			rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{leaves(llm.Requests, time.Minute, 2, math.MaxInt64)}})
			if n, d := fill(rl, "m", 1); n != 2 || d.Code != overRPM || d.RetryAfter > day {
				t.Errorf("%d pass, and then %+v; want 2", n, d)
			}
		})
	})
}

// A waiting call passes when the usage of others has left, or at once when the provider
// reports that more is left.
func TestHeedWakes(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPD: 10}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		heed := func(remaining int64) {
			rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{leaves(llm.Requests, llm.Day, remaining, 10*time.Hour)}})
		}
		heed(0) // others use all 10, and one call passes to find out
		l := newPausedLine(t)
		for i := range 6 {
			l.acquire(rl, "m", fmt.Sprint(i))
		}
		l.want("0 at 0s")
		time.Sleep(2*time.Hour - 1)
		l.want("0 at 0s")
		time.Sleep(time.Nanosecond)
		l.want("0 at 0s", "1 at 2h0m0s")
		time.Sleep(10 * time.Minute)
		heed(3) // for three of the waiting calls
		l.want("0 at 0s", "1 at 2h0m0s", "2 at 2h10m0s", "3 at 2h10m0s", "4 at 2h10m0s")
		heed(0)
		time.Sleep(10 * time.Minute)
		l.want("0 at 0s", "1 at 2h0m0s", "2 at 2h10m0s", "3 at 2h10m0s", "4 at 2h10m0s")
		heed(9)
		l.want("0 at 0s", "1 at 2h0m0s", "2 at 2h10m0s", "3 at 2h10m0s", "4 at 2h10m0s", "5 at 2h20m0s")
	})
}

// naiveUnits has the units that are limited by the minute, in the order of naiveAmounts.
var naiveUnits = [...]llm.Unit{llm.Requests, llm.AllTokens, llm.InputTokens, llm.OutputTokens}

type naiveAmounts [len(naiveUnits)]int64

// naiveAccount is a model whose account others use too: a list of calls, and the usage of
// others as exact fractions.
type naiveAccount struct {
	most    naiveAmounts // the maxima; zero is unlimited
	uses    []*naiveTaken
	missing [len(naiveUnits)]struct {
		n           int64
		from, until time.Time
	}
}

type naiveTaken struct {
	at time.Time
	n  naiveAmounts
}

func (a *naiveAccount) used(at time.Time) (sum naiveAmounts) {
	for _, u := range a.uses {
		for i := range sum {
			if at.Sub(u.at) < time.Minute {
				sum[i] += u.n[i]
			}
		}
	}
	return sum
}

// missed returns the usage of others at a time, rounded up.
func (a *naiveAccount) missed(i int, at time.Time) int64 {
	m := &a.missing[i]
	if !at.Before(m.until) {
		return 0
	}
	part := big.NewRat(int64(m.until.Sub(at)), int64(m.until.Sub(m.from)))
	part.Mul(part, new(big.Rat).SetInt64(-m.n))
	return -new(big.Int).Div(part.Num(), part.Denom()).Int64() // Div rounds down, so that the negative is rounded up
}

// left returns how much may be used in all at a time.
func (a *naiveAccount) left(i int, at time.Time) int64 {
	return max(a.most[i]-a.missed(i, at), 1)
}

func (a *naiveAccount) allows(at time.Time, ask naiveAmounts) bool {
	used := a.used(at)
	for i, most := range a.most {
		if most > 0 && used[i]+ask[i] > a.left(i, at) {
			return false
		}
	}
	return true
}

func (a *naiveAccount) never(ask naiveAmounts) bool {
	for i, most := range a.most {
		if most > 0 && ask[i] > most {
			return true
		}
	}
	return false
}

func (a *naiveAccount) heed(at time.Time, windows []llm.Window) {
	used := a.used(at)
	for _, w := range windows {
		for i, unit := range naiveUnits {
			if unit == w.Unit && a.most[i] > 0 {
				m := &a.missing[i]
				if n := a.most[i] - used[i] - w.Remaining; n > a.missed(i, at) { // a smaller difference is not believed
					m.n, m.from, m.until = n, at, at.Add(w.Reset)
				}
			}
		}
	}
}

// wait returns when a call that is denied now passes, if no other call does. Once it may pass,
// it may at any later time.
func (a *naiveAccount) wait(now time.Time, ask naiveAmounts) time.Duration {
	latest := time.Minute
	for i := range a.missing {
		latest = max(latest, a.missing[i].until.Sub(now))
	}
	return time.Duration(sort.Search(int(latest), func(in int) bool { return a.allows(now.Add(time.Duration(in)), ask) }))
}

// word is one event in the history of an account.
type word struct {
	Do      string
	Tokens  ratelimit.Tokens
	Which   int
	Wait    time.Duration
	Windows []llm.Window
}

func words(t *rapid.T) (ratelimit.ModelQuota, []word) {
	most := rapid.SampledFrom([]int{0, 1, 3, 10, 40})
	q := ratelimit.ModelQuota{MaxRPM: most.Draw(t, "rpm"), MaxTPM: most.Draw(t, "tpm"), MaxInputTPM: most.Draw(t, "input"), MaxOutputTPM: most.Draw(t, "output")}
	tokens := rapid.IntRange(0, 12)
	waits := rapid.OneOf(rapid.SampledFrom([]time.Duration{0, 1, time.Second, 10 * time.Second, time.Minute - 1, time.Minute}), rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "wait"))
	}))
	windows := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) llm.Window {
		return leaves(rapid.SampledFrom(naiveUnits[:]).Draw(t, "unit"), time.Minute, rapid.Int64Range(0, 45).Draw(t, "remaining"), waits.Draw(t, "reset")+1)
	}), 1, 4, func(w llm.Window) llm.Unit { return w.Unit })
	return q, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) word {
		w := word{Do: rapid.SampledFrom([]string{"try", "try", "try", "wait", "wait", "heed", "heed", "commit", "cancel"}).Draw(t, "do")}
		switch w.Do {
		case "try", "commit":
			w.Tokens = ratelimit.Tokens{Input: tokens.Draw(t, "input"), Output: tokens.Draw(t, "output")}
			w.Which = rapid.IntRange(0, 5).Draw(t, "which")
		case "cancel":
			w.Which = rapid.IntRange(0, 5).Draw(t, "which")
		case "wait":
			w.Wait = waits.Draw(t, "wait")
		case "heed":
			w.Windows = windows.Draw(t, "windows")
		}
		return w
	}), 5, 40).Draw(t, "words")
}

// heedNaively gives the events to a limiter, and returns where it differs from the naive
// account.
func heedNaively(ctx context.Context, rl *ratelimit.RateLimiter, q ratelimit.ModelQuota, list []word) string {
	a := &naiveAccount{most: naiveAmounts{int64(q.MaxRPM), int64(q.MaxTPM), int64(q.MaxInputTPM), int64(q.MaxOutputTPM)}}
	var reserved []*ratelimit.Reservation
	var taken []*naiveTaken
	start := time.Now()
	for i, w := range list {
		now := time.Now()
		n := naiveAmounts{1, int64(w.Tokens.Input + w.Tokens.Output), int64(w.Tokens.Input), int64(w.Tokens.Output)}
		switch w.Do {
		case "wait":
			time.Sleep(w.Wait)
		case "heed":
			rl.Heed(ctx, "m", llm.Limits{Windows: w.Windows})
			a.heed(now, w.Windows)
		case "commit":
			// If a call reserved nothing of a unit, stores do not know when it began: its
			// usage of the unit counts from its settlement on.
			if w.Which < len(reserved) && reserved[w.Which] != nil && min(taken[w.Which].n[2], taken[w.Which].n[3]) > 0 {
				reserved[w.Which].Commit(w.Tokens.Input, w.Tokens.Output)
				taken[w.Which].n, reserved[w.Which] = n, nil
			}
		case "cancel":
			if w.Which < len(reserved) && reserved[w.Which] != nil {
				reserved[w.Which].Cancel()
				taken[w.Which].n, reserved[w.Which] = naiveAmounts{}, nil
			}
		case "try":
			res, d := rl.TryAcquireTokens("m", w.Tokens)
			fault := ""
			switch allows := a.allows(now, n); {
			case d.Allowed != allows:
				fault = fmt.Sprintf("want it allowed: %t", allows)
			case allows && d.RetryAfter != 0:
				fault = "want no wait"
			case allows:
				taken = append(taken, &naiveTaken{now, n})
				a.uses = append(a.uses, taken[len(taken)-1])
				reserved = append(reserved, res)
			case (d.RetryAfter == ratelimit.Never) != a.never(n):
				fault = fmt.Sprintf("want never: %t", a.never(n))
			case d.RetryAfter == ratelimit.Never:
			case !a.allows(now.Add(d.RetryAfter), n):
				fault = fmt.Sprintf("that is too early: want %v", a.wait(now, n))
			case d.RetryAfter != a.wait(now, n):
				fault = fmt.Sprintf("that is too late: want %v", a.wait(now, n))
			}
			if fault != "" {
				return fmt.Sprintf("word %d, at %v, %+v: allowed %t, %s, in %v: %s", i, now.Sub(start), w.Tokens, d.Allowed, d.Limit, d.RetryAfter, fault)
			}
		}
	}
	return ""
}

// Whatever the provider says, a call passes exactly if its own account's usage and that of
// others leave room for it. RetryAfter of a denial is exact, and Never only for a call that is
// larger than the whole quota.
func TestHeedOthersNaively(t *testing.T) {
	dir, files := t.TempDir(), 0
	for k, ledger := range ledgers {
		t.Run(ledger, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				q, list := words(rt)
				if ledger == ratelimit.BackendSQLite && rapid.IntRange(0, 9).Draw(rt, "a file takes its time") != 0 {
					return
				}
				files++
				var fault string
				synctest.Test(t, func(t *testing.T) {
					if q == (ratelimit.ModelQuota{}) {
						q.MaxRPM = 5
					}
					rl := openLedger(t, ledger, filepath.Join(dir, fmt.Sprint(k, "-", files)), ratelimit.Config{Quotas: quotas{"m": q}})
					fault = heedNaively(t.Context(), rl, q, list)
					closeFile(t, rl)
				})
				if fault != "" {
					rt.Fatal(fault)
				}
			})
		})
	}
}

// However many goroutines call Heed at a time, no more passes than the quota, nor than the
// least that was reported before the first call.
func TestHeedTogether(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 60, MaxTPM: 1000}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		stands := func(remaining int64) {
			rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{
				leaves(llm.Requests, time.Minute, remaining, time.Minute), leaves(llm.AllTokens, time.Minute, 10*remaining, time.Minute),
			}})
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for k := range 25 {
					if i%2 == 0 {
						stands(int64(k))
					}
					if res, d := rl.TryAcquire("m", 10); d.Allowed {
						admitted.Add(1)
						res.Commit(5, 5)
					}
				}
			})
		}
		wg.Wait()
		if n, s := admitted.Load(), rl.Stats("m"); n > 60 || s.RPM != int(n) || s.TPM != int(10*n) {
			t.Errorf("%d were admitted: %+v", n, s)
		}
		time.Sleep(time.Minute)
		stands(5)
		if n, _ := fill(rl, "m", 10); n != 5 {
			t.Errorf("%d pass where 5 are left", n)
		}
	})
}

// The same holds on Redis.
func TestRedisHeedOthers(t *testing.T) {
	url := redistest.New(t).URL()
	rl := onRedis(t, url, quotas{"m": {MaxRPD: 100, MaxTPD: 1000}})
	mustTake(t, rl, 100).Commit(50, 50)
	rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{leaves(llm.Requests, llm.Day, 7, day), leaves(llm.AllTokens, llm.Day, 300, day)}})
	if _, d := rl.TryAcquire("m", 400); d.Code != overTPD || d.RetryAfter > 5*time.Hour || d.RetryAfter < 3*time.Hour {
		t.Errorf("%+v; want a sixth of a day, or a little less", d)
	}
	if _, d := rl.TryAcquire("m", 901); d.Code != overTPD || d.RetryAfter < 23*time.Hour || d.RetryAfter > day {
		t.Errorf("%+v; want it to wait for what is its own", d)
	}
	if _, d := rl.TryAcquire("m", 1001); d.RetryAfter != ratelimit.Never {
		t.Errorf("%+v; want never", d)
	}
	n, d := fill(rl, "m", 10)
	if n != 7 || d.Code != overRPD || d.RetryAfter > day/92+1 || d.RetryAfter < day/92-time.Minute || d.Stats.RPD != 8 || d.Stats.MaxRPD != 100 {
		t.Errorf("%d pass, and then %+v; want 7", n, d)
	}
	if looked := rl.Decide("m", 10); looked.Code != overRPD || looked.RetryAfter > d.RetryAfter || looked.Stats != d.Stats {
		t.Errorf("%+v; want what TryAcquire has said: %+v", looked, d)
	}
	served := make(chan error)
	go func() {
		_, err := rl.Acquire(t.Context(), "m", 10)
		served <- err
	}()
	testkit.Eventually(t, "it waits", func() bool { return rl.Waiting("m") == 1 })
	rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{leaves(llm.Requests, llm.Day, 50, day)}})
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it still waits, although there is more")
	}
	if n, d := fill(rl, "m", 1); n != 49 || d.Code != overRPD {
		t.Errorf("%d pass, and then %+v; want 49", n, d)
	}
}

// An observer gets an event each time that the provider has less left than before.
func TestObserverOfLowered(t *testing.T) {
	observed(t, quotas{"m": {MaxRPM: 10, MaxTPM: 100}}, func(t *testing.T, rl *ratelimit.RateLimiter, d *diary) {
		heed := func(windows ...llm.Window) { rl.Heed(t.Context(), "m", llm.Limits{Windows: windows}) }
		requests := func(remaining int64) llm.Window {
			return leaves(llm.Requests, time.Minute, remaining, 30*time.Second)
		}
		told := func(limit string, said int64, reset time.Duration) event.Event {
			return eventOf(event.Lowered, func(e *event.Event) { e.Limit, e.Said, e.RetryAfter = limit, said, reset })
		}
		heed(requests(10))
		heed(requests(500))
		heed(leaves(llm.Requests, llm.Day, 0, time.Hour))
		d.none(t, "as much as the quota has, or what it does not limit")
		heed(requests(4))
		d.want(t, "less", told("max_rpm", 4, 30*time.Second), nil)
		heed(requests(4))
		heed(requests(5))
		d.none(t, "no less")
		heed(requests(3))
		d.want(t, "still less", told("max_rpm", 3, 30*time.Second), nil)
		heed(leaves(llm.AllTokens, time.Minute, 99, 0))
		d.want(t, "tokens, without a reset", told("max_tpm", 99, time.Minute), nil)
		heed(requests(0), leaves(llm.AllTokens, time.Minute, 1, time.Second))
		list := d.Since()
		if len(list) != 2 || list[0] != told("max_rpm", 0, 30*time.Second) || list[1] != told("max_tpm", 1, time.Second) {
			t.Errorf("both: %+v", list)
		}
		time.Sleep(time.Minute)
		heed(requests(9))
		d.want(t, "less, once all was back", told("max_rpm", 9, 30*time.Second), nil)
		rl.Heed(t.Context(), "unknown", llm.Limits{Windows: []llm.Window{requests(0)}})
		d.none(t, "a model without a quota")
	})
}

// changing is a store in memory that calls changed once, after it has decided on a take.
type changing struct {
	*store.Memory
	changed func()
}

func (s *changing) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	r, said, err := s.Memory.Take(ctx, charges)
	if changed := s.changed; changed != nil {
		s.changed = nil
		changed()
	}
	return r, said, err
}

// A call that a lowered limit has denied, while the limit is lifted, waits for a moment: that it can never pass was true of
// no quota that the model has had.
func TestHeedWhileALimitIsLifted(t *testing.T) {
	s := &changing{Memory: store.NewMemory()}
	rl, err := ratelimit.NewWithStore(s, ratelimit.Config{Quotas: quotas{"m": {MaxRPM: 100, MaxInputTPM: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{leaves(llm.InputTokens, time.Minute, 0, time.Minute)}})
	if _, d := rl.TryAcquireTokens("m", ratelimit.Tokens{Input: 5}); d.Allowed || d.RetryAfter == ratelimit.Never {
		t.Fatalf("%+v; want a denial for a while", d)
	}
	s.changed = func() {
		if err := rl.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 100}); err != nil {
			t.Error(err)
		}
	}
	if _, d := rl.TryAcquireTokens("m", ratelimit.Tokens{Input: 5}); d.Allowed || d.RetryAfter == ratelimit.Never {
		t.Errorf("%+v; want a denial for a while", d)
	}
	if _, d := rl.TryAcquireTokens("m", ratelimit.Tokens{Input: 5}); !d.Allowed {
		t.Errorf("without the limit: %+v", d)
	}
}
