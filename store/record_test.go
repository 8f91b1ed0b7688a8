package store_test

import (
	"errors"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// What is recorded counts whatever the limit says: beyond it as a debt, which denies even a take
// of nothing, and for as long as a take would count.
func TestRecord(t *testing.T) {
	for name, l := range map[string]limit.Limit{
		"log":             limit.PerMinute(5).Using(limit.SlidingLog),
		"fixed window":    limit.PerMinute(5).Using(limit.FixedWindow),
		"anchored window": limit.PerMinute(5).Anchored(),
		"sliding counter": limit.PerMinute(5).Using(limit.SlidingCounter),
		"bucket":          limit.PerMinute(5),
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now().Truncate(time.Minute).UnixNano()
			m := store.NewMemoryAt(func() int64 { return now })
			c := prepare(t, "key", 0, l)
			for _, step := range []struct {
				n, used int64
				allows  bool // a take of nothing
			}{{3, 3, true}, {2, 5, true}, {4, 9, false}, {0, 9, false}} {
				if err := m.Record(t.Context(), []store.Amount{{Of: &c, N: step.n}}); err != nil {
					t.Fatal(err)
				}
				d, allowed, err := m.PeekInto(t.Context(), []store.Amount{{Of: &c}}, nil)
				if err != nil || allowed != step.allows || d[0].Used != step.used {
					t.Errorf("after %d more: %+v, %v; want %d used", step.n, d, err, step.used)
				}
			}
			now += int64(2 * time.Minute)
			if used := usedOf(t, m, c); used != 0 {
				t.Errorf("after two minutes %d are used", used)
			}
		})
	}
	m := store.NewMemory()
	c := prepare(t, "key", 0, limit.PerMinute(5))
	if err := m.Record(t.Context(), []store.Amount{{Of: &c, N: -1}}); !errors.Is(err, store.ErrInvalid) || m.Len() != 0 {
		t.Errorf("-1 was recorded: %v", err)
	}
	m.Close()
	if err := m.Record(t.Context(), []store.Amount{{Of: &c, N: 1}}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("recorded in a store that is closed: %v", err)
	}
}
