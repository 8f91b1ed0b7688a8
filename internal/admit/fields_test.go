package admit

import (
	"math"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"dappco.re/go/core/go-ratelimit/project"
)

// FuzzFields compares what is written by hand with what a library writes.
func FuzzFields(f *testing.F) {
	f.Add(int64(60), int64(time.Minute), int64(59), int64(time.Minute), true)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), false)
	f.Add(int64(1e15), int64(1e15-1), int64(1e15), int64(math.MaxInt64-1), false)
	f.Add(int64(0), int64(0), int64(-1), int64(time.Second+1), true)
	f.Fuzz(func(t *testing.T, count, period, remaining, until int64, tokens bool) {
		standings := []project.Standing{
			{Window: &project.Window{Name: "minute", Count: count, Period: time.Duration(period)}, Remaining: remaining},
			{Window: &project.Window{Name: "tokens-day", Tokens: tokens, Count: remaining, Period: time.Duration(until)}, Remaining: count},
		}
		p := newPolicy(standings)
		var limits []byte
		for i, s := range standings {
			limits = p.appendLimit(limits, i, s.Remaining, time.Duration(until))
		}
		if want := marshalLimits(t, standings, time.Duration(until)); string(limits) != want {
			t.Errorf("RateLimit: %s, want %s", limits, want)
		}
		if got, want := p.value[0], marshalPolicy(t, standings); got != want {
			t.Errorf("RateLimit-Policy: %s, want %s", got, want)
		}
	})
}

func marshalLimits(t *testing.T, standings []project.Standing, until time.Duration) string {
	list := httpsfv.List{}
	for _, s := range standings {
		item := httpsfv.NewItem(s.Window.Name)
		item.Params.Add("r", within(big.NewInt(s.Remaining)))
		if until != project.Never {
			item.Params.Add("t", wholeSeconds(until))
		}
		list = append(list, item)
	}
	return marshal(t, list)
}

func marshalPolicy(t *testing.T, standings []project.Standing) string {
	list := httpsfv.List{}
	for _, s := range standings {
		item := httpsfv.NewItem(s.Window.Name)
		item.Params.Add("q", within(big.NewInt(s.Window.Count)))
		item.Params.Add("w", wholeSeconds(s.Window.Period))
		if s.Window.Tokens {
			item.Params.Add("qu", "tokens")
		}
		list = append(list, item)
	}
	return marshal(t, list)
}

func marshal(t *testing.T, list httpsfv.List) string {
	t.Helper()
	text, err := httpsfv.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// wholeSeconds rounds up, with numbers that do not overflow.
func wholeSeconds(d time.Duration) int64 {
	n := big.NewInt(int64(d))
	n.Add(n, big.NewInt(int64(time.Second)-1))
	return within(n.Div(n, big.NewInt(int64(time.Second))))
}

// within returns a number as one that a structured field can have and that
// counts something.
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

// More sets of windows than there are slots, asked for by many at a time: each
// gets its own value, and what is remembered does not grow.
func TestPolicies(t *testing.T) {
	p := &Policies{}
	const sets = 4 << slotBits
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range int64(sets) {
				standings := []project.Standing{
					{Window: &project.Window{Name: "minute", Count: i % 8, Period: time.Minute}},
					{Window: &project.Window{Name: "hour", Count: i, Period: time.Hour}},
				}[:1+i%2]
				if got, want := p.of(standings).value, newPolicy(standings).value; !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			}
		})
	}
	all.Wait()
}

// Windows that are equal are the same, whoever's they are; others are not.
func TestPolicyIsOf(t *testing.T) {
	standings := func(windows ...project.Window) (all []project.Standing) {
		for _, w := range windows {
			all = append(all, project.Standing{Window: &w})
		}
		return all
	}
	minute, hour := project.Window{Name: "minute", Count: 9, Period: time.Minute}, project.Window{Name: "hour", Count: 9, Period: time.Hour}
	p := newPolicy(standings(minute, hour))
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
		if got := p.isOf(standings(c.windows...)); got != c.want {
			t.Errorf("%+v: %v", c.windows, got)
		}
	}
}
