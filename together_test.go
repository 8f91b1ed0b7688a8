package ratelimit_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// opened returns a limiter on a file.
func opened(t *testing.T, path string, quota ratelimit.ModelQuota) *ratelimit.RateLimiter {
	t.Helper()
	return openFile(t, path, quotas{"m": quota})
}

// pass returns how many of 10 calls pass.
func pass(rl *ratelimit.RateLimiter) (n int) {
	for range 10 {
		if res, _ := rl.TryAcquire("m", 1); res != nil {
			n++
		}
	}
	return n
}

// All limiters on a file share a day, whatever each of them knows of its end.
func TestADayIsShared(t *testing.T) {
	anchored := ratelimit.ModelQuota{MaxRPD: 5}
	noon := ratelimit.ModelQuota{MaxRPD: 5, DayResetsAt: "12:00 UTC"}
	for name, change := range map[string]func(t *testing.T, path string, a, b *ratelimit.RateLimiter) *ratelimit.RateLimiter{
		"both set it": func(t *testing.T, _ string, a, b *ratelimit.RateLimiter) *ratelimit.RateLimiter {
			if err := errors.Join(a.SetQuota("m", noon), b.SetQuota("m", noon)); err != nil {
				t.Fatal(err)
			}
			return b
		},
		"one does not know": func(t *testing.T, _ string, a, b *ratelimit.RateLimiter) *ratelimit.RateLimiter {
			mustSetQuota(t, a, "m", noon)
			return b
		},
		"one has loaded it": func(t *testing.T, _ string, a, b *ratelimit.RateLimiter) *ratelimit.RateLimiter {
			if err := errors.Join(a.SetQuota("m", noon), b.Load()); err != nil {
				t.Fatal(err)
			}
			return b
		},
		"one was configured so": func(t *testing.T, path string, _, _ *ratelimit.RateLimiter) *ratelimit.RateLimiter {
			return opened(t, path, noon)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // it is 1:00
				path := filepath.Join(t.TempDir(), "limits.db")
				a, b := opened(t, path, anchored), opened(t, path, anchored)
				if n := pass(a); n != 5 {
					t.Fatalf("%d pass; want 5", n)
				}
				other := change(t, path, a, b)
				if n := pass(other) + pass(a); n != 0 {
					t.Errorf("%d more pass; want none", n)
				}
				time.Sleep(25 * time.Hour)
				if n := pass(a) + pass(other); n != 5 {
					t.Errorf("the next day %d pass; want 5", n)
				}
			})
		})
	}
}

// A correction that could not be made is made when it can be. Until then, Stats shows the
// usage without it.
func TestSettleWhenTheFileCanBeWrittenAgain(t *testing.T) {
	t.Parallel() // waits for five seconds
	path := filepath.Join(t.TempDir(), "limits.db")
	rl := opened(t, path, ratelimit.ModelQuota{MaxTPM: 1000, MaxConcurrent: 1})
	res, d := rl.TryAcquire("m", 100)
	if res == nil {
		t.Fatalf("%+v", d)
	}
	other, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	res.Commit(300, 100)
	start := time.Now()
	if res, d := rl.TryAcquire("m", 1); res != nil || d.Code != ratelimit.DecisionStoreLost {
		t.Errorf("%+v; want the store lost", d)
	}
	one := time.Since(start)

	// New calls wait for the file together, and not one after another for the correction.
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if res, d := rl.TryAcquire("m", 1); res != nil || d.Code != ratelimit.DecisionStoreLost {
				t.Errorf("%+v; want the store lost", d)
			}
		})
	}
	start = time.Now()
	group.Wait()
	if all := time.Since(start); all > 4*one {
		t.Errorf("eight took %v, where one took %v", all, one)
	}
	if s := rl.Stats("m"); s.TPM != 100 || s.Concurrent != 1 {
		t.Errorf("%+v; want it not corrected yet", s)
	}
	if _, err := other.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if res, d := rl.TryAcquire("m", 600); res == nil || d.Stats.TPM != 1000 || d.Stats.Concurrent != 1 {
		t.Errorf("%+v; want 400 and 600 tokens, and the slot free", d)
	}
	if err := rl.Persist(); err == nil {
		t.Error("Persist does not say what went wrong")
	}
	if err := rl.Close(); err != nil {
		t.Errorf("and Close says it again: %v", err)
	}
	if s := rl.Stats("m"); s.MaxTPM != 1000 || s.MaxConcurrent != 1 {
		t.Errorf("%+v; want the quota, though the file is closed", s)
	}
}
