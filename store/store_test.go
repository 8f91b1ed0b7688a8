package store_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

func charge(key string, n int64, limits ...limit.Limit) store.Charge {
	return store.Charge{Key: key, Limits: limits, N: n}
}

func TestValidate(t *testing.T) {
	minute, day := limit.PerMinute(10), limit.PerDay(100)
	for _, test := range []struct {
		name    string
		charges []store.Charge
		says    string // part of the error, or nothing
	}{
		{"nothing", nil, ""},
		{"one", []store.Charge{charge("a", 1, minute)}, ""},
		{"no limit", []store.Charge{charge("a", 1)}, ""},
		{"nothing of it", []store.Charge{charge("a", 0, minute)}, ""},
		{"more than the limit", []store.Charge{charge("a", math.MaxInt64, minute)}, ""},
		{"several", []store.Charge{charge("a", 1, minute, day), charge("b", 2, minute), charge("", 3, day)}, ""},
		{"a limit twice", []store.Charge{charge("a", 1, minute, minute)}, ""},
		{"64 limits", []store.Charge{charge("a", 1, slices.Repeat([]limit.Limit{minute}, 64)...)}, ""},

		{"a negative amount", []store.Charge{charge("a", 1, minute), charge("b", -3, minute)}, `-3 of "b"`},
		{"a negative amount of no limit", []store.Charge{charge("a", -1)}, `-1 of "a"`},
		{"a key twice", []store.Charge{charge("a", 1, minute), charge("b", 1), charge("a", 1, day)}, `"a" is charged twice`},
		{"the empty key twice", []store.Charge{charge("", 1, minute), charge("", 1, day)}, `"" is charged twice`},
		{"the zero limit", []store.Charge{charge("a", 1, minute, limit.Limit{})}, "the count must be from 1"},
		{"an invalid limit", []store.Charge{charge("a", 1, limit.New(5, -time.Second))}, "the period must be from 1ns"},
		{"65 limits", []store.Charge{charge("a", 1, slices.Repeat([]limit.Limit{minute}, 65)...)}, `"a" has 65 limits`},
	} {
		err := store.Validate(test.charges)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.says != "" && (!errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "ratelimit: ")):
			t.Errorf("%s: %v; want %v, and %q in it", test.name, err, store.ErrInvalid, test.says)
		}
	}
}

func TestAllowed(t *testing.T) {
	allow, deny := limit.Decision{Allowed: true}, limit.Decision{}
	for _, test := range []struct {
		decisions []limit.Decision
		want      bool
	}{
		{nil, true},
		{[]limit.Decision{}, true},
		{[]limit.Decision{allow}, true},
		{[]limit.Decision{allow, allow}, true},
		{[]limit.Decision{deny}, false},
		{[]limit.Decision{allow, deny}, false},
		{[]limit.Decision{deny, allow, allow}, false},
	} {
		if got := store.Allowed(test.decisions); got != test.want {
			t.Errorf("Allowed(%+v) = %v", test.decisions, got)
		}
	}
}

func TestDeciding(t *testing.T) {
	allow := func(left int64) limit.Decision { return limit.Decision{Allowed: true, Remaining: left} }
	deny := func(left int64, retry time.Duration) limit.Decision {
		return limit.Decision{Remaining: left, RetryAfter: retry}
	}
	for _, test := range []struct {
		name      string
		decisions []limit.Decision
		want      limit.Decision
	}{
		{"none", nil, limit.Decision{Allowed: true}},
		{"one that allows", []limit.Decision{allow(3)}, allow(3)},
		{"one that denies", []limit.Decision{deny(3, 1)}, deny(3, 1)},
		{"the least left", []limit.Decision{allow(3), allow(1), allow(2)}, allow(1)},
		{"a denial, whatever is left", []limit.Decision{allow(0), deny(9, 1), allow(0)}, deny(9, 1)},
		{"the longest denial", []limit.Decision{deny(0, time.Second), deny(5, time.Minute), deny(0, 2)}, deny(5, time.Minute)},
		{"never", []limit.Decision{deny(0, time.Hour), deny(7, limit.Never), allow(0)}, deny(7, limit.Never)},
		{"as long, and less left", []limit.Decision{deny(2, 1), deny(1, 1), deny(3, 1)}, deny(1, 1)},
		{"the first of equals", []limit.Decision{
			{Allowed: true, Limit: limit.PerMinute(1)}, {Allowed: true, Limit: limit.PerHour(1)},
		}, limit.Decision{Allowed: true, Limit: limit.PerMinute(1)}},
	} {
		before := slices.Clone(test.decisions)
		if got := store.Deciding(test.decisions); got != test.want {
			t.Errorf("%s: %+v; want %+v", test.name, got, test.want)
		}
		if !slices.Equal(before, test.decisions) {
			t.Errorf("%s: the decisions are %+v now", test.name, test.decisions)
		}
	}
}
