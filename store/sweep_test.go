package store_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// fill spends 1 of so many keys, whose names are 32 bytes long.
func fill(t testing.TB, m *store.Memory, keys int, limits []limit.Limit) {
	t.Helper()
	fillNamed(t, m, "a project's name of 32 b %07d", keys, limits)
}

func fillNamed(t testing.TB, m *store.Memory, format string, keys int, limits []limit.Limit) {
	t.Helper()
	c := prepare(t, "any", 1, limits...)
	var decisions []limit.Verdict
	var key []byte
	for i := range keys {
		key = fmt.Appendf(key[:0], format, i)
		var err error
		if decisions, _, err = m.Spend(t.Context(), key, c, decisions[:0]); err != nil {
			t.Fatal(err)
		}
	}
}

// Keys that are full go away while a few others are in use, wherever those are,
// and their memory with them; no call does much of it.
func TestIdleKeysCostNothing(t *testing.T) {
	t.Run("in all shards", func(t *testing.T) { idleKeysCostNothing(t, "a project's name of 32 b %07d") })
	t.Run("in one shard", func(t *testing.T) { idleKeysCostNothing(t, "project/acme%%2F%07d/requests") })
}

func idleKeysCostNothing(t *testing.T, format string) {
	keys := testkit.Rounds(50_000, 1_000_000)
	now := time.Now().UnixNano()
	before := heap()
	m := store.NewMemoryAt(func() int64 { return now })
	fillNamed(t, m, format, keys, windows(3, 1))
	full := heap()
	now += int64(25 * time.Hour)

	spend := func(calls int) {
		for i := range calls {
			mustSpend(t, m, fmt.Sprint("busy ", i%3), 1, limit.PerSecond(1<<40).Using(limit.SlidingLog))
			now += int64(100 * time.Millisecond)
		}
	}
	const some = 50 // calls, between which keys are counted
	calls, held := 0, m.Len()
	for ; held > 3 && calls < keys; calls += some {
		spend(some)
		left := m.Len()
		if held-left > 50*some {
			t.Fatalf("%d calls have forgotten %d keys", some, held-left)
		}
		held = left
	}
	if held != 3 {
		t.Fatalf("%d keys after %d calls; 3 are in use", held, calls)
	}
	spend(calls) // and what they were held in
	if after := heap(); after-before > (full-before)/50 {
		t.Errorf("%d bytes for %d keys, %d once they are gone", full-before, keys, after-before)
	}
	runtime.KeepAlive(m)
}

// Keys that are in use stay, however often they are looked at, and whatever the
// clock does.
func TestSweepKeepsWhatIsInUse(t *testing.T) {
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return now })
	const keys = 1000
	fill(t, m, keys, windows(3, 1))
	mustTake(t, m, "taken", 1, limit.PerDay(1))
	for i := range 20_000 {
		now += int64(time.Second)
		if i == 5000 {
			now -= int64(9 * time.Hour)
		}
		mustSpend(t, m, "busy", 1, limit.PerMinute(1<<40).Using(limit.SlidingLog))
		if i%1000 == 0 && m.Len() != keys+2 {
			t.Fatalf("%d keys after %d calls", m.Len(), i)
		}
	}
	if mustSpend(t, m, "taken", 1, limit.PerDay(1)) {
		t.Error("what was taken is forgotten")
	}
}

// A sweep goes on when the clock has gone back.
func TestSweepAfterTheClockWentBack(t *testing.T) {
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return now })
	minute := limit.PerMinute(1 << 40).Using(limit.SlidingLog)
	mustSpend(t, m, "ahead", 1, minute)
	now -= int64(1000 * time.Hour)
	fill(t, m, 1000, []limit.Limit{minute})
	for range 2000 {
		now += int64(time.Second)
		mustSpend(t, m, "busy", 1, minute)
	}
	if m.Len() != 2 { // what is ahead of the clock is in use
		t.Errorf("%d keys are held", m.Len())
	}
}

// BenchmarkSpendAmongIdle measures a key in use among a million that are not, which
// are looked at meanwhile.
func BenchmarkSpendAmongIdle(b *testing.B) {
	for _, bench := range []struct {
		name string
		keys int
		age  time.Duration
	}{{"none", 0, 0}, {"all in use", 1_000_000, 0}, {"all full", 1_000_000, 25 * time.Hour}} {
		b.Run(bench.name, func(b *testing.B) {
			limits := windows(3, 1<<40)
			start, at := time.Now(), time.Now().UnixNano()
			m := store.NewMemoryAt(func() int64 { return at + int64(time.Since(start)) })
			fill(b, m, bench.keys, limits)
			at += int64(bench.age)
			heap()
			key, c, ctx := []byte("busy"), prepare(b, "any", 1, limits...), b.Context()
			var decisions []limit.Verdict
			for b.Loop() {
				decisions, _, _ = m.Spend(ctx, key, c, decisions[:0])
			}
			b.ReportMetric(float64(m.Len()), "keys")
		})
	}
}
