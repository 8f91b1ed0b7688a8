package ratelimit_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llm"
)

// grants returns a provider's window with a limit.
func grants(unit llm.Unit, per time.Duration, limit int64) llm.Window {
	return llm.Window{Unit: unit, Per: per, Limit: limit, Remaining: -1}
}

// learn passes windows of m's provider to Heed.
func learn(t testing.TB, rl *ratelimit.RateLimiter, windows ...llm.Window) {
	rl.Heed(t.Context(), "m", llm.Limits{Windows: windows})
}

// wantQuota fails the test unless m has the quota.
func wantQuota(t testing.TB, rl *ratelimit.RateLimiter, what string, want ratelimit.ModelQuota) {
	t.Helper()
	if got := rl.Quotas()["m"]; got != want {
		t.Errorf("%s: %+v; want %+v", what, got, want)
	}
}

// Limits that the provider reports replace the maxima of a quota that is Auto, each by itself.
// They change no other quota.
func TestAuto(t *testing.T) {
	for _, c := range []struct {
		say  llm.Window
		name string
		want func(*ratelimit.ModelQuota)
	}{
		{grants(llm.Requests, time.Minute, 7), "max_rpm", func(q *ratelimit.ModelQuota) { q.MaxRPM = 7 }},
		{grants(llm.Requests, llm.Day, 7), "max_rpd", func(q *ratelimit.ModelQuota) { q.MaxRPD = 7 }},
		{grants(llm.AllTokens, time.Minute, 7), "max_tpm", func(q *ratelimit.ModelQuota) { q.MaxTPM = 7 }},
		{grants(llm.AllTokens, llm.Day, 1<<53), "max_tpd", func(q *ratelimit.ModelQuota) { q.MaxTPD = 1 << 53 }},
		{grants(llm.InputTokens, time.Minute, 7), "max_input_tpm", func(q *ratelimit.ModelQuota) { q.MaxInputTPM = 7 }},
		{grants(llm.OutputTokens, time.Minute, 7), "max_output_tpm", func(q *ratelimit.ModelQuota) { q.MaxOutputTPM = 7 }},
		{grants(llm.Requests, time.Minute, 0), "", nil},
		{grants(llm.Requests, time.Minute, -1), "", nil},
		{grants(llm.AllTokens, time.Minute, 1<<53+1), "", nil},
		{grants(llm.AllTokens, time.Minute, 1<<63-1), "", nil},
		{grants(llm.Requests, time.Second, 7), "", nil},
		{grants(llm.Requests, 0, 7), "", nil},
		{grants(llm.Requests, time.Hour, 7), "", nil},
		{grants(llm.InputTokens, llm.Day, 7), "", nil},
		{grants("images", time.Minute, 7), "", nil},
	} {
		for name, before := range map[string]ratelimit.ModelQuota{
			"nothing known": {Auto: true},
			"all known": {
				MaxRPM: 3, MaxTPM: 40, MaxRPD: 50, MaxInputTPM: 60, MaxOutputTPM: 70, MaxTPD: 80, MaxConcurrent: 90,
				DayResetsAt: "00:00 America/Los_Angeles", Auto: true,
			},
			"not auto":     {MaxRPM: 3, MaxTPM: 40},
			"nor anything": {},
		} {
			if !before.Auto && c.want == nil {
				continue
			}
			t.Run(fmt.Sprintf("%s %v %d/%s", c.say.Unit, c.say.Per, c.say.Limit, name), func(t *testing.T) {
				observed(t, quotas{"m": before, "n": before}, func(t *testing.T, rl *ratelimit.RateLimiter, d *diary) {
					want := before
					if before.Auto && c.want != nil {
						c.want(&want)
					}
					learn(t, rl, c.say)
					wantQuota(t, rl, "once it is said", want)
					if want == before {
						d.none(t, "nothing to learn")
					} else {
						d.want(t, "learned", eventOf(event.Learned, func(e *event.Event) { e.Limit, e.Said = c.name, c.say.Limit }), nil)
					}
					learn(t, rl, c.say)
					d.none(t, "it is known")
					wantQuota(t, rl, "once it is said twice", want)
					if got := rl.Quotas()["n"]; got != before {
						t.Errorf("another model: %+v", got)
					}
				})
			})
		}
	}
}

// A total that the provider does not report is at least the sum of the input and the output
// that it grants. Once, a guess of 40,000 tokens limited an account that had 2,000,000.
func TestAutoTotalIsNotLessThanItsParts(t *testing.T) {
	input, output := grants(llm.InputTokens, time.Minute, 2_000_000), grants(llm.OutputTokens, time.Minute, 400_000)
	for _, c := range []struct {
		before int
		said   []llm.Window
		want   int
	}{
		{40_000, []llm.Window{input, output}, 2_400_000},
		{40_000, []llm.Window{output}, 400_000},
		{3_000_000, []llm.Window{input, output}, 3_000_000},
		{40_000, []llm.Window{input, output, grants(llm.AllTokens, time.Minute, 50_000)}, 50_000},
		{40_000, []llm.Window{input, grants(llm.OutputTokens, time.Minute, 1<<63-1)}, 40_000},
		{0, []llm.Window{input, output}, 0},
	} {
		everyLedger(t, quotas{"m": {MaxTPM: c.before, Auto: true}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
			learn(t, rl, c.said...)
			if got := rl.Quotas()["m"].MaxTPM; got != c.want {
				t.Errorf("%d, and then %+v: %d; want %d", c.before, c.said, got, c.want)
			}
		})
	}
}

// Before a limit is known, nothing is limited. Once it is, earlier usage counts, and so do
// calls that are still under way.
func TestAutoFromNothing(t *testing.T) {
	everyLedger(t, quotas{"m": {Auto: true}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		first, d := rl.TryAcquire("m", 1000)
		if d.Code != ratelimit.DecisionUnlimited || !d.Allowed {
			t.Errorf("%+v", d)
		}
		first.Commit(20, 10)
		under, _ := rl.TryAcquire("m", 1000)
		learn(t, rl, llm.Window{Unit: llm.Requests, Per: time.Minute, Limit: 3, Remaining: 2, Reset: time.Minute},
			llm.Window{Unit: llm.AllTokens, Per: time.Minute, Limit: 100, Remaining: 70, Reset: time.Minute})
		wantQuota(t, rl, "learned", ratelimit.ModelQuota{MaxRPM: 3, MaxTPM: 100, Auto: true})
		if d := rl.Decide("m", 71); d.Code != overTPM || d.Stats.RPM != 1 || d.Stats.TPM != 30 || d.Stats.MaxTPM != 100 {
			t.Errorf("%+v", d)
		}
		under.Commit(30, 20)
		if s := rl.Stats("m"); s.RPM != 2 || s.TPM != 80 {
			t.Errorf("%+v", s)
		}
		if n, d := fill(rl, "m", 10); n != 1 || d.Code != overRPM {
			t.Errorf("%d pass, and then %+v", n, d)
		}
	})
}

// A limit that falls or rises is learned too, and waiting calls go on at once.
func TestAutoFollows(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 1, Auto: true}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		mustTake(t, rl, 1)
		l := newPausedLine(t)
		for i := range 3 {
			l.acquire(rl, "m", fmt.Sprint(i))
		}
		l.want()
		time.Sleep(time.Second)
		learn(t, rl, grants(llm.Requests, time.Minute, 3))
		l.want("0 at 1s", "1 at 1s")
		learn(t, rl, grants(llm.Requests, time.Minute, 9)) // too soon after the last change
		l.want("0 at 1s", "1 at 1s")
		time.Sleep(time.Second)
		learn(t, rl, grants(llm.Requests, time.Minute, 2))
		time.Sleep(58*time.Second - 1)
		l.want("0 at 1s", "1 at 1s")
		time.Sleep(2 * time.Second)
		l.want("0 at 1s", "1 at 1s", "2 at 1m1s")
	})
}

// A learned quota is kept where quotas are kept.
func TestAutoIsKept(t *testing.T) {
	before := quotas{"m": {MaxRPM: 5, Auto: true}, "n": {MaxRPM: 5}, "o": {Auto: true}}
	want := quotas{"m": {MaxRPM: 50, MaxTPM: 700, Auto: true}, "n": {MaxRPM: 5}, "o": {Auto: true}}
	heard := []llm.Window{grants(llm.Requests, time.Minute, 50), grants(llm.AllTokens, time.Minute, 700)}
	t.Run("yaml", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.yaml")
		rl := newYAML(t, path, before)
		learn(t, rl, heard...)
		mustPersist(t, rl)
		again := newYAML(t, path, quotas{"m": {MaxRPM: 1}})
		mustLoad(t, again)
		if got := again.Quotas(); !maps.Equal(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.db")
		rl, other := openFile(t, path, before), openFile(t, path, before)
		mustPersist(t, rl)
		learn(t, rl, heard...)
		mustLoad(t, other)
		for _, rl := range []*ratelimit.RateLimiter{other, openFile(t, path, quotas{"m": {MaxRPM: 1}})} {
			if got := rl.Quotas(); !maps.Equal(got, want) {
				t.Errorf("%v; want %v", got, want)
			}
		}
	})
	t.Run("redis", func(t *testing.T) {
		url := redistest.New(t).URL()
		rl, other := onRedis(t, url, before), onRedis(t, url, before)
		learn(t, rl, heard...)
		has(t, other, "m", want["m"])
		for _, rl := range []*ratelimit.RateLimiter{rl, other, onRedis(t, url, before)} {
			if got := rl.Quotas(); !maps.Equal(got, want) {
				t.Errorf("%v; want %v", got, want)
			}
		}
		if n, d := fill(other, "m", 1); n != 50 || d.Code != overRPM {
			t.Errorf("%d pass, and then %+v", n, d)
		}
	})
}

func TestAutoInYAML(t *testing.T) {
	for text, want := range map[string]ratelimit.ModelQuota{
		"auto: true":                   {Auto: true},
		"auto: false":                  {},
		"auto: true\n    max_rpm: 5":   {Auto: true, MaxRPM: 5},
		"max_rpm: 5\n    auto:  true ": {Auto: true, MaxRPM: 5},
	} {
		rl := newYAML(t, yamlFile(t, "quotas:\n  m:\n    "+text+"\n"), quotas{"m": {MaxRPM: 1}})
		mustLoad(t, rl)
		wantQuota(t, rl, text, want)
	}
	for text, at := range map[string]string{
		"auto: maybe":                  "3:11",
		"auto: yes":                    "3:11",
		"auto: True":                   "3:11",
		"auto: 1":                      "3:11",
		"auto: ~":                      "3:5",
		"auto: [true]":                 "3:5",
		"auto: {}":                     "3:5",
		"auto:":                        "3:5",
		"max_rpm: 1\n    auto: maybe":  "4:11",
		"auto: true\n    auto: true":   "4:5",
		"auto: true\n    autos: false": "4:5",
	} {
		path := yamlFile(t, "quotas:\n  m:\n    "+text+"\n")
		rl := newYAML(t, path, quotas{"m": {MaxRPM: 1}})
		err := rl.Load()
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+path+":"+at+": ") || !strings.Contains(err.Error(), "auto") && !strings.Contains(err.Error(), "true or false") {
			t.Errorf("%q: %v; want what is allowed, at %s", text, err, at)
		}
		if strings.Count(text, "auto") == 1 && !strings.Contains(err.Error(), "it must be true or false") {
			t.Errorf("%q: %v; want what is allowed", text, err)
		}
		wantQuota(t, rl, text, ratelimit.ModelQuota{MaxRPM: 1})
	}
}
