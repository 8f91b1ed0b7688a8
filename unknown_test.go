package ratelimit

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/database"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// limitersOf runs a test on a limiter in memory and on a file, each in a bubble. The model "m" has a quota.
func limitersOf(t *testing.T, test func(t *testing.T, rl *RateLimiter)) {
	cfg := Config{Quotas: map[string]ModelQuota{"m": {MaxRPM: 100000, MaxRPD: 100000}}}
	for name, open := range map[string]func(path string) (*RateLimiter, error){
		"memory": func(path string) (*RateLimiter, error) { return NewWithConfig(cfg) },
		"sqlite": func(path string) (*RateLimiter, error) { return NewWithSQLiteConfig(path, cfg) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rl, err := open(filepath.Join(t.TempDir(), "limits"))
				if err != nil {
					t.Fatal(err)
				}
				defer rl.Close()
				test(t, rl)
			})
		})
	}
}

// used returns how many of n invented names are counted.
func usedOf(rl *RateLimiter, names int) (n int) {
	for i := range names {
		if rl.Stats(fmt.Sprint("invented", i)).RPD > 0 {
			n++
		}
	}
	return n
}

// However many models clients invent, only a bounded number is counted in a day. A model with
// a quota is always counted, and so is one that was known before the others came.
func TestInventedModelsAreBounded(t *testing.T) {
	limitersOf(t, func(t *testing.T, rl *RateLimiter) {
		const many = mostUnknown + 100
		rl.RecordUsage("known", 1, 2)
		for i := range many {
			res, d := rl.TryAcquire(fmt.Sprint("invented", i), 5)
			if !d.Allowed {
				t.Fatalf("%+v", d)
			}
			res.Commit(2, 3)
			rl.RecordUsage("m", 1, 1)
		}
		rl.RecordUsage("known", 1, 2)
		if n := usedOf(rl, many); n != mostUnknown-1 {
			t.Errorf("%d invented models are counted; want %d", n, mostUnknown-1)
		}
		if m, known := rl.Stats("m"), rl.Stats("known"); m.RPD != many || known.RPD != 2 {
			t.Errorf("the model with a quota has %+v, the one that was known %+v", m, known)
		}
		if err := rl.SetQuota(fmt.Sprint("invented", many-1), ModelQuota{MaxRPM: 1}); err != nil {
			t.Fatal(err)
		}
		rl.RecordUsage(fmt.Sprint("invented", many-1), 1, 1)
		if s := rl.Stats(fmt.Sprint("invented", many-1)); s.RPM != 1 {
			t.Errorf("one that gets a quota has %+v", s)
		}
		time.Sleep(25 * time.Hour)
		rl.RecordUsage("another", 1, 2)
		if s := rl.Stats("another"); s.RPD != 1 {
			t.Errorf("the next day: %+v", s)
		}
	})
}

// A file that an older program has filled with invented models is cleaned when it is opened:
// once, 16,000 names left 32,000 rows. Models with a quota, and the most used of the others,
// keep their usage.
func TestInventedModelsOfAFileAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = mostUnknown + 500
		path := filepath.Join(t.TempDir(), "limits.db")
		used := map[string]state.Usage{}
		use := func(name string, n int) {
			now := time.Now()
			used[name] = state.Usage{
				Requests: slices.Repeat([]time.Time{now}, n), Tokens: []state.Entry{{Time: now, Count: 2 * n}}, DayStart: now, DayCount: n,
			}
		}
		use("m", 1)
		use("busy", 7)
		for i := range many {
			use(fmt.Sprint("invented", i), 1)
		}
		if err := database.Replace(path, nil, used); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Quotas: map[string]ModelQuota{"m": {MaxRPM: 10}}}
		rl, err := NewWithSQLiteConfig(path, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer rl.Close()
		keys, err := rl.engine.Store().Keys(t.Context(), "")
		if err != nil || len(keys) != 2*(mostUnknown+1) {
			t.Errorf("%d keys, %v; want %d", len(keys), err, 2*(mostUnknown+1))
		}
		if m, busy := rl.Stats("m"), rl.Stats("busy"); m.RPM != 1 || busy.RPD != 7 {
			t.Errorf("%+v, %+v", m, busy)
		}
		rl.RecordUsage("new", 1, 1)
		if s := rl.Stats("new"); s.RPD != 0 {
			t.Errorf("beyond those that stay: %+v", s)
		}
		time.Sleep(25 * time.Hour)
		if err := rl.Persist(); err != nil {
			t.Fatal(err)
		}
		if keys, err = rl.engine.Store().Keys(t.Context(), ""); err != nil || len(keys) != 0 {
			t.Errorf("a day later: %d keys, %v", len(keys), err)
		}
	})
}
