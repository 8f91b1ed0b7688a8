package storetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// neverAndLater: an amount larger than the limit can never pass, and the decision says so at once,
// whatever is in use. For any other amount it says when to come back.
func neverAndLater(b *bench, l limit.Limit) {
	for _, n := range []int64{l.Burst() + 1, 1 << 62, math.MaxInt64} {
		if retry := b.mustNotTake(charge("key", n, l)); retry != limit.Never {
			b.Errorf("take %d of %v: come back after %v", n, l, retry)
		}
	}
	b.wantLeft(l.Count(), "key", l, "after nothing was allowed")
	b.mustTake(charge("key", l.Count(), l))
	if retry := b.mustNotTake(charge("key", l.Count()+1, l)); retry != limit.Never {
		b.Errorf("take %d of %v: come back after %v", l.Count()+1, l, retry)
	}
	retry := b.mustNotTake(charge("key", 1, l))
	if retry <= 0 || retry == limit.Never {
		b.Fatalf("take 1 of %v: come back after %v", l, retry)
	}
	b.clock.add(retry)
	b.mustTake(charge("key", 1, l))
}

// nothing: a take of zero passes where there is no debt, and begins no window.
func nothing(b *bench, l limit.Limit) {
	full := b.peek(charge("key", 1, l))[0]
	b.settle(b.mustTake(charge("key", 0, l)), 0)
	b.clock.add(l.Period() / 2)
	b.mustTake(charge("key", 0, l))
	if d := b.peek(charge("key", 0, l))[0]; d.Remaining != full.Remaining || d.ResetAfter != 0 {
		b.Errorf("%v after nothing was taken: %+v", l, d)
	}
	fresh, begun := b.peek(charge("other", 0, l)), b.peek(charge("key", 0, l))
	b.mustTake(charge("key", 1, l), charge("other", 1, l))
	if fresh[0] != begun[0] {
		b.Errorf("%v after nothing was taken: %+v; of a key that was never asked for: %+v", l, begun[0], fresh[0])
	}
	if key, other := b.peek(charge("key", 0, l))[0], b.peek(charge("other", 0, l))[0]; key != other {
		b.Errorf("%v after nothing and 1 were taken: %+v; after 1 was: %+v", l, key, other)
	}
	b.mustTake(charge("key", l.Count()-1, l))
	b.mustTake(charge("key", 0, l))
}

// invalidCharges: invalid charges get an error, and charge nothing, not even the valid charges
// beside them.
func invalidCharges(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	l := limit.PerMinute(10)
	fine := charge("fine", 1, l)
	for _, test := range []struct {
		name    string
		charges []store.Charge
	}{
		{"a negative amount", []store.Charge{fine, charge("key", -1, l)}},
		{"the most negative amount", []store.Charge{charge("key", math.MinInt64, l), fine}},
		{"a negative amount of no limit", []store.Charge{fine, charge("key", -1)}},
		{"the zero limit", []store.Charge{fine, charge("key", 1, limit.Limit{})}},
		{"an invalid limit", []store.Charge{fine, charge("key", 1, l, limit.PerMinute(-5))}},
		{"an invalid limit, for nothing", []store.Charge{fine, charge("key", 0, limit.New(1, 0))}},
		{"far too many limits", []store.Charge{fine, charge("key", 1, slices.Repeat([]limit.Limit{l}, 10_000)...)}},
		{"a key twice", []store.Charge{fine, charge("key", 1, l), charge("fine", 1, l)}},
	} {
		r, d, err := b.store.Take(t.Context(), test.charges)
		if !errors.Is(err, store.ErrInvalid) || r != nil || d != nil {
			t.Errorf("take: %s: %v, %v, %v; want %v", test.name, r, d, err, store.ErrInvalid)
		}
		d, err = b.store.Peek(t.Context(), test.charges)
		if !errors.Is(err, store.ErrInvalid) || d != nil {
			t.Errorf("peek: %s: %v, %v; want %v", test.name, d, err, store.ErrInvalid)
		}
	}
	b.wantLeft(10, "fine", l, "after nothing was charged")
	b.wantLeft(10, "key", l, "after nothing was charged")
}

// noCharges: a take of no charge at all, or of one without limits, passes.
func noCharges(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	for _, charges := range [][]store.Charge{nil, {}, {charge("key", 5)}, {charge("key", math.MaxInt64), charge("other", 0)}} {
		r, d := b.take(charges...)
		if r == nil || len(d) != 0 {
			t.Errorf("take %s: %v, %+v", described(charges), r, d)
		}
		if d := b.peek(charges...); len(d) != 0 {
			t.Errorf("peek %s: %+v", described(charges), d)
		}
		b.settle(r, make([]int64, len(charges))...)
	}
	l := limit.PerMinute(3)
	b.wantLeft(3, "key", l, "after it was taken under no limit")
}

// oddKeys are all different, and some begin with others.
var oddKeys = []string{
	"", "a", "A", "ab", "a%", "a%b", "a_", "a_b", "axb", "a*", "a?", "a[b]", "a{b}", "{a}b", "{", "}", "a\x00", "a\x00b", "\x00", "a\n", "a\nb", "a\\",
	"a'b", `a"b`, "a;--", "a b", "a:b", "ä", "a\u0308", "日本語", "日本", "\xff", "\xff\xff", "a\xff", "a\xfeb", "\U0010ffff", "\u200d", "a/../b", "~", "$1", "?",
	strings.Repeat("k", 4096), strings.Repeat("k", 4095) + "\x00",
}

// odd: any bytes are a key, and each is a key of its own; a prefix is nothing but a prefix.
func odd(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	l := limit.PerMinute(1)
	for _, key := range oddKeys {
		b.mustTake(charge(key, 1, l))
	}
	for _, key := range oddKeys {
		b.mustNotTake(charge(key, 1, l))
	}
	for _, prefix := range append(oddKeys[1:], "zzz", "a%%", "k", "日", "\xe6", "*", "a.", "^a", oddKeys[len(oddKeys)-1]+"\x00", "") {
		b.reset(prefix)
		for _, key := range oddKeys {
			want := int64(0)
			if strings.HasPrefix(key, prefix) {
				want = 1
			}
			if got := b.left(key, l); got != want {
				t.Errorf("after a reset of %.20q, %d of %.20q are left; want %d", prefix, got, key, want)
			}
			if want == 1 {
				b.mustTake(charge(key, 1, l))
			}
		}
	}
}

// endedContext: a call whose context has ended does nothing.
func endedContext(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	l := limit.PerMinute(10)
	r := b.mustTake(charge("key", 4, l))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, late} {
		got, d, err := b.store.Take(ctx, []store.Charge{charge("key", 1, l)})
		if !errors.Is(err, ctx.Err()) || got != nil || d != nil {
			t.Errorf("take: %v, %v, %v; want %v", got, d, err, ctx.Err())
		}
		if d, err := b.store.Peek(ctx, []store.Charge{charge("key", 1, l)}); !errors.Is(err, ctx.Err()) || d != nil {
			t.Errorf("peek: %v, %v; want %v", d, err, ctx.Err())
		}
		if accounts, _, err := b.store.Read(ctx, "key"); !errors.Is(err, ctx.Err()) || accounts != nil {
			t.Errorf("read: %v, %v; want %v", accounts, err, ctx.Err())
		}
		if keys, err := b.store.Keys(ctx, ""); !errors.Is(err, ctx.Err()) || keys != nil {
			t.Errorf("keys: %v, %v; want %v", keys, err, ctx.Err())
		}
		if err := b.store.Reset(ctx, ""); !errors.Is(err, ctx.Err()) {
			t.Errorf("reset: %v; want %v", err, ctx.Err())
		}
		b.wantLeft(6, "key", l, "after 4 were taken")
	}
	if err := b.store.Settle(cancelled, r, []int64{1}); err != nil { // after an error it can be settled again
		if !errors.Is(err, context.Canceled) {
			t.Errorf("settle: %v", err)
		}
		b.wantLeft(6, "key", l, "after 4 were taken and not settled")
		b.settle(r, 1)
	}
	b.wantLeft(9, "key", l, "after 1 of 4 was used")
}

// closed: a store may be closed twice, and fails all calls then.
func closed(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	charges := []store.Charge{charge("key", 1, limit.PerMinute(10))}
	r := b.mustTake(charges...)
	for range 2 {
		if err := b.store.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	if r, d, err := b.store.Take(t.Context(), charges); !errors.Is(err, store.ErrClosed) || r != nil || d != nil {
		t.Errorf("take: %v, %v, %v; want %v", r, d, err, store.ErrClosed)
	}
	if d, err := b.store.Peek(t.Context(), charges); !errors.Is(err, store.ErrClosed) || d != nil {
		t.Errorf("peek: %v, %v; want %v", d, err, store.ErrClosed)
	}
	if err := b.store.Settle(t.Context(), r, []int64{0}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("settle: %v; want %v", err, store.ErrClosed)
	}
	if accounts, _, err := b.store.Read(t.Context(), "key"); !errors.Is(err, store.ErrClosed) || accounts != nil {
		t.Errorf("read: %v, %v; want %v", accounts, err, store.ErrClosed)
	}
	if keys, err := b.store.Keys(t.Context(), ""); !errors.Is(err, store.ErrClosed) || keys != nil {
		t.Errorf("keys: %v, %v; want %v", keys, err, store.ErrClosed)
	}
	if err := b.store.Reset(t.Context(), ""); !errors.Is(err, store.ErrClosed) {
		t.Errorf("reset: %v; want %v", err, store.ErrClosed)
	}
}
