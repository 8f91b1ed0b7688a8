package admit

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
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
		windows := []project.Standing{
			{Window: &project.Window{Name: "minute", Count: count, Period: time.Duration(period)}, Remaining: remaining},
			{Window: &project.Window{Name: "tokens-day", Tokens: tokens, Count: remaining, Period: time.Duration(until)}, Remaining: count},
		}
		p := newPolicy(windows)
		var limits []byte
		for _, s := range windows {
			limits = appendLimit(limits, &s, time.Duration(until))
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
		text := fmt.Sprintf("%q;q=%d;w=%d", s.Window.Name, within(big.NewInt(s.Window.Count)), wholeSeconds(s.Window.Period))
		if s.Window.Tokens {
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
					{Window: &project.Window{Name: "minute", Count: i % 8, Period: time.Minute}},
					{Window: &project.Window{Name: "hour", Count: i, Period: time.Hour}},
				}[:1+i%2]
				if got, want := p.find(windows).value, newPolicy(windows).value; !slices.Equal(got, want) {
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
	minute, hour := project.Window{Name: "minute", Count: 9, Period: time.Minute}, project.Window{Name: "hour", Count: 9, Period: time.Hour}
	p := newPolicy(windowsOf(minute, hour))
	for _, c := range []struct {
		windows []project.Window
		want    bool
	}{
		{[]project.Window{minute, hour}, true},
		{[]project.Window{hour, minute}, false},
		{[]project.Window{minute}, false},
		{[]project.Window{minute, hour, hour}, false},
		{[]project.Window{minute, {Name: "hour", Count: 8, Period: time.Hour}}, false},
		{[]project.Window{minute, {Name: "hour", Count: 9, Period: time.Minute}}, false},
		{[]project.Window{minute, {Name: "day", Count: 9, Period: time.Hour}}, false},
		{[]project.Window{minute, {Name: "hour", Count: 9, Period: time.Hour, Tokens: true}}, false},
	} {
		if got := p.matches(windowsOf(c.windows...)); got != c.want {
			t.Errorf("%+v: %v", c.windows, got)
		}
	}
}
