package fair

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// expect checks the parts of the quota that clients have between two minutes.
func (w *world) expect(from, to float64, want map[string]float64) {
	w.t.Helper()
	minutes := func(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }
	parts, _ := w.parts(minutes(from), minutes(to))
	for name, least := range want {
		if math.Abs(parts[name]-least) > .03 {
			w.t.Errorf("from minute %v to %v: %s has %.3f of the quota, want %.3f", from, to, name, parts[name], least)
		}
	}
}

func hog(name string, t Terms) *client { return &client{name: name, terms: t, workers: 20, size: one} }

func late(c *client, from time.Duration) *client {
	c.from = from
	return c
}

func TestLatecomerHasItsShareInTheNextWindow(t *testing.T) {
	w := simulate(t, 60, 0, []*client{hog("first", Terms{}), late(&client{name: "late", workers: 3, pause: time.Second / 2, size: one}, 90*time.Second)}, 8*time.Minute)
	w.expect(0, 2, map[string]float64{"first": 1})
	for m := 2.0; m < 8; m++ {
		w.expect(m, m+1, map[string]float64{"first": .5, "late": .5})
	}
}

func TestReserveIsForNewcomersAtOnce(t *testing.T) {
	w := simulate(t, 100, 100_000, []*client{hog("first", Terms{}), late(&client{name: "late", workers: 20, size: one}, 210*time.Second)}, 8*time.Minute)
	w.expect(2, 3, map[string]float64{"first": .9})
	w.expect(3.5, 3.6, map[string]float64{"late": 1}) // ten calls, of a tenth of a minute
	w.expect(4, 8, map[string]float64{"first": .45, "late": .45})
}

func TestMinimumAndMaximum(t *testing.T) {
	w := simulate(t, 100, 0, []*client{hog("heavy", Terms{Weight: 9}), hog("least", Terms{Weight: 1, Min: 300000})}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"heavy": .7, "least": .3})

	w = simulate(t, 100, 0, []*client{hog("capped", Terms{Max: 200000}), hog("free", Terms{})}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"capped": .2, "free": .8})

	w = simulate(t, 100, 0, []*client{hog("capped", Terms{Max: 200000})}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"capped": .2}) // also alone
}

// A call that would exceed the maximum is denied, at once and for ever if it is larger than that.
func TestMaximumIsNotExceeded(t *testing.T) {
	now := int64(1_700_000_040e9)
	p := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0)
	ask := func(n, at int64) Denial {
		amounts := []Amount{{N: n, Count: 100}}
		d := p.Take(named("a"), Terms{Max: 290000}, at, amounts, false)
		if d.Denied && p.Lend(named("a"), at, amounts, []int64{0}) {
			t.Errorf("%d are lent", n)
		}
		return d
	}
	if d := ask(30, now); !d.Denied || !d.Never || d.Share != 29 {
		t.Errorf("30 of at most 29: %+v", d)
	}
	if d := ask(20, now); d.Denied {
		t.Errorf("20 of at most 29: %+v", d)
	}
	if d := ask(10, now); !d.Denied || d.Never || d.Until < now+int64(59*time.Second) {
		t.Errorf("10 more: %+v", d)
	}
	if d := ask(9, now); d.Denied {
		t.Errorf("9 more: %+v", d)
	}
	if d := ask(29, now+int64(61*time.Second)); d.Denied {
		t.Errorf("a minute later: %+v", d)
	}
}

func TestDedicatedMinimumIsKeptForOneThatNeverCalled(t *testing.T) {
	dedicated := &client{name: "dedicated", terms: Terms{Min: 250000}, dedicated: true, workers: 30, size: one, from: 210 * time.Second}
	w := simulate(t, 100, 0, []*client{hog("hog", Terms{}), dedicated}, 8*time.Minute)
	w.expect(0, 3, map[string]float64{"hog": .75})
	w.expect(3.5, 4, map[string]float64{"dedicated": .5}) // a quarter of the minute, in half of it
}

func TestRanks(t *testing.T) {
	w := simulate(t, 100, 0, []*client{hog("high", Terms{Rank: 1}), hog("low", Terms{Weight: 100}), hog("least", Terms{Min: 200000})}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"high": .8, "low": 0, "least": .2})

	half := &client{name: "high", terms: Terms{Rank: 1}, workers: 1, pause: 1200 * time.Millisecond, size: one}
	w = simulate(t, 100, 0, []*client{half, hog("low", Terms{})}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"high": .5, "low": .5}) // it has what the other leaves
}

// TestSharesAgainstBisection compares shares with those that a search for the common level finds.
func TestSharesAgainstBisection(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := NewPool([]limit.Limit{limit.New(int64(1+r.IntN(1000)), time.Minute)}, 0)
		members, floors := 1+r.IntN(8), int64(0)
		for k := range members {
			t := Terms{Weight: 1 + r.IntN(5), Rank: r.IntN(2)}
			if least := r.Int64N(400_000); r.IntN(3) == 0 && floors+least <= Whole {
				t.Min = least
				floors += least
			}
			m := p.member(named(string(rune('a'+k))), t, 0)
			m.waiting = r.IntN(2)
			m.setWanting()
			m.last, m.since = 0, math.MinInt64/2
			m.parts[0].asks.add(int64(1 + r.IntN(500)))
		}
		p.compute(0, int64(r.IntN(int(time.Minute))))
		checkShares(t, seed, p)
	}
}

// checkShares checks the shares of the outermost by a search for the level up to which each of a rank has what it wants.
func checkShares(t *testing.T, seed uint64, p *Pool) {
	t.Helper()
	count := float64(p.quotas[0].part(Whole))
	left, lower, sum := count, 0.0, 0.0
	for _, m := range p.top.below {
		lower += float64(m.parts[0].floor)
		sum += float64(m.parts[0].share)
	}
	for _, rank := range []int{1, 0} {
		at := func(level float64, m *node) float64 {
			return min(max(level*float64(m.own.weight()), float64(m.parts[0].floor)), float64(m.parts[0].want))
		}
		var same []*node
		for _, m := range p.top.below {
			if m.own.Rank == rank {
				same = append(same, m)
				lower -= float64(m.parts[0].floor)
			}
		}
		low, high := 0.0, 2*count
		for range 200 {
			level, all := (low+high)/2, 0.0
			for _, m := range same {
				all += at(level, m)
			}
			if all <= left-lower {
				low = level
			} else {
				high = level
			}
		}
		for _, m := range same {
			want := at(low, m)
			if got := float64(m.parts[0].share); got < want-float64(len(same)) {
				t.Fatalf("seed %d: %s has %v, want %v", seed, m.name, got, want)
			}
			left -= want
		}
	}
	if math.Abs(sum-count) > float64(2*len(p.top.below)) {
		t.Fatalf("seed %d: shares of %v in all, of a quota of %v", seed, sum, count)
	}
}
