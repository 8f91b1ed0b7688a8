package admit

import (
	"fmt"
	"math"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// FuzzFields compares the headers with ones that are written with big numbers. In interop, a
// library for structured fields reads the headers.
func FuzzFields(f *testing.F) {
	f.Add(int64(60), int64(time.Minute), int64(59), int64(time.Minute), true)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), false)
	f.Add(int64(1e15), int64(1e15-1), int64(1e15), int64(math.MaxInt64-1), false)
	f.Add(int64(0), int64(0), int64(-1), int64(time.Second+1), true)
	f.Fuzz(func(t *testing.T, count, period, remaining, until int64, tokens bool) {
		unit := project.Requests
		if tokens {
			unit = project.Tokens
		}
		windows := []project.Standing{
			{Window: &project.Window{Name: "requests_per_minute", Unit: project.Requests, Count: count, Period: time.Duration(period)}, Remaining: remaining},
			{Window: &project.Window{Name: "tokens_per_day", Unit: unit, Count: remaining, Period: time.Duration(until)}, Remaining: count},
		}
		p := newPolicy(windows, "")
		var limits []byte
		for _, s := range windows {
			limits = appendLimit(limits, "", &s, time.Duration(until))
		}
		if want := wantedLimits(windows, time.Duration(until)); string(limits) != want {
			t.Errorf("RateLimit: %s, want %s", limits, want)
		}
		if got, want := p.value[0], wantedPolicy(windows); got != want {
			t.Errorf("RateLimit-Policy: %s, want %s", got, want)
		}
	})
}

func wantedLimits(windows []project.Standing, until time.Duration) string {
	var members []string
	for _, s := range windows {
		text := fmt.Sprintf("%q;r=%d", s.Window.Name, within(big.NewInt(s.Remaining)))
		if until != project.Never {
			text += fmt.Sprintf(";t=%d", wholeSeconds(until))
		}
		members = append(members, text)
	}
	return strings.Join(members, ", ")
}

func wantedPolicy(windows []project.Standing) string {
	var members []string
	for _, s := range windows {
		text := fmt.Sprintf("%q;q=%d", s.Window.Name, within(big.NewInt(s.Window.Count)))
		if s.Window.Period <= 30*24*time.Hour {
			text += fmt.Sprintf(";w=%d", wholeSeconds(s.Window.Period))
		}
		if s.Window.Unit == project.Tokens {
			text += `;qu="tokens"`
		}
		members = append(members, text)
	}
	return strings.Join(members, ", ")
}

// wholeSeconds returns a duration in seconds, rounded up, with numbers that do not overflow.
func wholeSeconds(d time.Duration) int64 {
	n := big.NewInt(int64(d))
	n.Add(n, big.NewInt(int64(time.Second)-1))
	return within(n.Div(n, big.NewInt(int64(time.Second))))
}

// within returns the nearest number that a structured field can have, and that is not
// negative.
func within(n *big.Int) int64 {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(15), nil)
	most.Sub(most, big.NewInt(1))
	switch {
	case n.Sign() < 0:
		return 0
	case n.Cmp(most) > 0:
		return most.Int64()
	}
	return n.Int64()
}

// Goroutines that ask for more sets of windows than the cache has entries get the right value for
// each.
func TestPolicies(t *testing.T) {
	p := &Policies{}
	const sets = 4 << cacheBits
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range int64(sets) {
				windows := []project.Standing{
					{Window: &project.Window{Name: "requests_per_minute", Unit: project.Requests, Count: i % 8, Period: time.Minute}},
					{Window: &project.Window{Name: "requests_per_hour", Unit: project.Requests, Count: i, Period: time.Hour}},
				}[:1+i%2]
				if got, want := p.find(windows, "").value, newPolicy(windows, "").value; !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			}
		})
	}
	all.Wait()
}

// A policy matches equal windows, of any project, and no others.
func TestPolicyMatches(t *testing.T) {
	windowsOf := func(windows ...project.Window) (all []project.Standing) {
		for _, w := range windows {
			all = append(all, project.Standing{Window: &w})
		}
		return all
	}
	minute, hour := project.Window{Name: "requests_per_minute", Unit: project.Requests, Count: 9, Period: time.Minute}, project.Window{Name: "requests_per_hour", Unit: project.Requests, Count: 9, Period: time.Hour}
	p := newPolicy(windowsOf(minute, hour), "")
	for _, c := range []struct {
		windows []project.Window
		want    bool
	}{
		{[]project.Window{minute, hour}, true},
		{[]project.Window{hour, minute}, false},
		{[]project.Window{minute}, false},
		{[]project.Window{minute, hour, hour}, false},
		{[]project.Window{minute, {Name: "requests_per_hour", Unit: project.Requests, Count: 8, Period: time.Hour}}, false},
		{[]project.Window{minute, {Name: "requests_per_hour", Unit: project.Requests, Count: 9, Period: time.Minute}}, false},
		{[]project.Window{minute, {Name: "requests_per_day", Unit: project.Requests, Count: 9, Period: time.Hour}}, false},
		{[]project.Window{minute, {Name: "requests_per_hour", Count: 9, Period: time.Hour, Unit: project.Tokens}}, false},
	} {
		if got := p.matches(windowsOf(c.windows...), ""); got != c.want {
			t.Errorf("%+v: %v", c.windows, got)
		}
	}
}

// The windows of owners other than the call's project have names of their own, and those of other
// projects share no policy.
func TestNamesOfOwners(t *testing.T) {
	day := &project.Window{Name: "dollars_per_day", Unit: project.Dollars, Count: 2_000_000_000, Period: 24 * time.Hour}
	run := &project.Window{Name: "runs.dollars", Unit: project.Dollars, Run: true, Count: 1 << 53, Period: time.Hour}
	windows := []project.Standing{
		{Owner: "acme/search", Window: day, Remaining: 1}, {Owner: "acme", Window: day, Remaining: 2},
		{Owner: `key a"b\`, Window: day, Remaining: 3}, {Owner: "run r", Window: run, Remaining: 1 << 53},
	}
	policies := &Policies{}
	want := `"dollars_per_day";q=2000000000;w=86400;qu="nanodollars", "acme:dollars_per_day";q=2000000000;w=86400;qu="nanodollars", ` +
		`"key a\"b\\:dollars_per_day";q=2000000000;w=86400;qu="nanodollars", "run r:runs.dollars";q=999999999999999;qu="nanodollars"`
	if got := policies.find(windows, "acme/search").value[0]; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var limits []byte
	for _, s := range windows {
		limits = appendLimit(limits, "acme/search", &s, project.Never)
	}
	if want := `"dollars_per_day";r=1, "acme:dollars_per_day";r=2, "key a\"b\\:dollars_per_day";r=3, "run r:runs.dollars";r=999999999999999`; string(limits) != want {
		t.Errorf("%s, want %s", limits, want)
	}
	other := slices.Clone(windows)
	other[0].Owner = "acme/chat"
	if got := policies.find(other, "acme/chat").value; &got[0] != &policies.find(windows, "acme/search").value[0] {
		t.Error("projects with the same limits below the same one have two policies")
	}
	other[1].Owner = "else"
	if got := policies.find(other, "acme/chat").value[0]; !strings.Contains(got, `"else:dollars_per_day"`) {
		t.Error(got)
	}
}

// The tightest window is the one of which the smallest part is left, whoever has it.
func TestTightest(t *testing.T) {
	standing := func(owner string, left, of int64) project.Standing {
		return project.Standing{Owner: owner, Window: &project.Window{Name: "requests_per_day", Unit: project.Requests, Count: of, Period: time.Hour}, Remaining: left, ResetAfter: time.Minute}
	}
	for want, windows := range map[string][]project.Standing{
		`"acme:requests_per_day";r=9;t=60`:  {standing("acme/search", 1, 10), standing("acme", 9, 100)},
		`"requests_per_day";r=1;t=60`:       {standing("acme/search", 1, 10), standing("acme", 11, 100)},
		`"run r:requests_per_day";r=0;t=60`: {standing("acme/search", 1, 10), standing("run r", -5, 1<<53)},
		`"acme:requests_per_day";r=98;t=60`: {standing("acme/search", 1<<53-1, 1<<53), standing("acme", 98, 100), standing("key k", 99, 100)},
		``:                                  {standing("acme/search", 1, 10), standing("acme/search", 2, 10)},
	} {
		if got := tightest(windows, "acme/search"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// If a project's share of a window denies a call, the window has what is left of the share.
func TestFieldsOfADeniedShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := project.New(&project.Limit{})
		defer l.Close()
		if err := l.SetLimits(map[string]project.Limit{"acme": {TokensPerMinute: 4_000, RequestsPerDay: 100}, "acme/ads": {MaxShare: 10, RequestsPerDay: 5}}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			project, limits, tightest string
		}{
			{"acme/search", `"acme:requests_per_day";r=99;t=86400, "acme:tokens_per_minute";r=3700;t=60`, ""},
			{"acme/ads", `"requests_per_day";r=4;t=86400, "acme:requests_per_day";r=98;t=86400, "acme:tokens_per_minute";r=3400;t=60`, `"requests_per_day";r=4;t=86400`},
			{"acme/ads", `"acme:tokens_per_minute";r=100;t=60`, `"acme:tokens_per_minute";r=100;t=60`},
		} {
			_, d, err := l.Take(t.Context(), project.Call{Project: c.project, Estimated: 300})
			if err != nil {
				t.Fatal(err)
			}
			r := &Result{Project: c.project, Decision: d}
			h := http.Header{}
			new(Policies).SetHeaders(h, r)
			if got := h.Get("RateLimit"); got != c.limits || r.Tightest() != c.tightest {
				t.Errorf("%s: %s and %s, want %s and %s", c.project, got, r.Tightest(), c.limits, c.tightest)
			}
		}
	})
}
