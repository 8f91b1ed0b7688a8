package redisstore

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"pgregory.net/rapid"
)

func TestShares(t *testing.T) {
	for _, c := range []struct {
		whole int64
		want  []int64
	}{
		{10, []int64{10}},
		{10, []int64{5, 5}},
		{10, []int64{3, 3, 4}},
		{1, []int64{0, 0, 1}},
		{2, []int64{0, 1, 1}},
		{1 << 62, []int64{1 << 61, 1 << 61}},
	} {
		for rank, want := range c.want {
			if got := (share{rank, len(c.want)}).of(c.whole); got != want {
				t.Errorf("node %d of %d has %d of %d; want %d", rank, len(c.want), got, c.whole, want)
			}
		}
	}
}

// The shares of all nodes add up to the limit, and are as equal as can be.
func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.Int64Range(1, 1<<62).Draw(t, "count")
		n := rapid.IntRange(1, 1000).Draw(t, "nodes")
		sum := int64(0)
		for rank := range n {
			part := (share{rank, n}).of(c)
			if part < c/int64(n) || part > c/int64(n)+1 {
				t.Fatalf("node %d of %d has %d of %d", rank, n, part, c)
			}
			sum += part
		}
		if sum != c {
			t.Fatalf("the parts of %d nodes add up to %d of %d", n, sum, c)
		}
	})
}

// What all nodes count as used is no less than the used amount, and what is left to them is no more
// than what is left.
func TestUsesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limit.New(rapid.Int64Range(1, 1<<62).Draw(t, "count"), time.Minute)
		l = l.WithBurst(rapid.Int64Range(1, 1<<62).Draw(t, "burst"))
		used := rapid.Int64Range(0, l.Burst()).Draw(t, "used")
		n := rapid.IntRange(1, 100).Draw(t, "nodes")
		sum, left := int64(0), int64(0)
		for rank := range n {
			p := share{rank, n}
			sum += min(p.used(l, used), maxAmount-sum)
			left += max(p.of(l.Burst())-p.used(l, used), 0)
		}
		if sum < used || left > l.Burst()-used {
			t.Fatalf("%d of %d are used: %d nodes take %d to be, and %d to be left", used, l.Burst(), n, sum, left)
		}
	})
}

func TestShareOfLimit(t *testing.T) {
	day := limit.PerDay(9).ResetAt(0, nil)
	for name, c := range map[string]struct {
		of   limit.Limit
		at   share
		want limit.Limit // zero: none
	}{
		"count and burst":      {limit.PerMinute(9).WithBurst(5), share{1, 2}, limit.PerMinute(5).WithBurst(3)},
		"a window":             {limit.PerMinute(9).Using(limit.FixedWindow), share{0, 2}, limit.PerMinute(4).Using(limit.FixedWindow)},
		"a day":                {day, share{2, 3}, limit.PerDay(3).ResetAt(0, nil)},
		"the whole":            {day, whole, day},
		"fewer than nodes":     {limit.PerMinute(1), share{0, 2}, limit.Limit{}},
		"a burst of too few":   {limit.PerMinute(60).WithBurst(1), share{0, 2}, limit.Limit{}},
		"one has all of it":    {limit.PerMinute(60).WithBurst(1), share{1, 2}, limit.PerMinute(30).WithBurst(1)},
		"a log":                {limit.PerMinute(60).Using(limit.SlidingLog), share{1, 4}, limit.PerMinute(15).Using(limit.SlidingLog)},
		"a counter, unequally": {limit.PerMinute(5).Using(limit.SlidingCounter), share{1, 2}, limit.PerMinute(3).Using(limit.SlidingCounter)},
	} {
		got, some := c.at.limit(c.of)
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if some != (c.want != limit.Limit{}) || some && got != c.want {
			t.Errorf("%s: %v, %v; want %v", name, got, some, c.want)
		}
	}
}
