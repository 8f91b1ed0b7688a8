package sqlitestore

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
)

const (
	quota      = 5000
	goroutines = 16 // goroutines of a process
	processes  = 4
)

var quotas = []limit.Limit{limit.PerDay(quota).Using(limit.FixedWindow).Anchored(), perDay(quota)}

// admit takes until it is denied, and prints a line for each take that is admitted.
func admit(s *Store, _ string) error {
	s.maxBatch = 8 // so that it takes longer
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for {
				r, _, err := s.Take(context.Background(), charge("key", 1, quotas...))
				if err != nil {
					failed.Store(&err)
				}
				if err != nil || r == nil {
					return
				}
				os.Stdout.WriteString("admitted\n")
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Processes that share a file admit exactly the limit.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	var admitted atomic.Int64
	var all []*process
	for range processes {
		all = append(all, start(t, "admit", path))
	}
	var wg sync.WaitGroup
	for _, p := range all {
		p.begin("")
		wg.Go(func() {
			admitted.Add(p.count(quota + 1))
			if err := p.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if admitted.Load() != quota {
		t.Errorf("%d were admitted; want %d", admitted.Load(), quota)
	}
	check(t, path)
}

// Processes are killed again and again, and others replace them. Takes that were admitted count,
// even if a process was killed before it could report them.
func TestKilledProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	var admitted, killed atomic.Int64
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			for {
				p := start(t, "admit", path)
				p.begin("")
				n := p.count(quota / 20)
				if n == quota/20 {
					p.Process.Kill()
					killed.Add(1)
					n += p.count(quota)
				}
				admitted.Add(n)
				if err := p.Wait(); err == nil { // it was denied
					return
				}
			}
		})
	}
	wg.Wait()
	if n := admitted.Load(); n > quota || n < quota-killed.Load()*goroutines {
		t.Errorf("%d were admitted while %d processes were killed; the limit is %d", n, killed.Load(), quota)
	}
	if killed.Load() == 0 {
		t.Error("no process was killed")
	}
	check(t, path)
}

// check compares a file with what was admitted.
func check(t *testing.T, path string) {
	t.Helper()
	s := openAt(t, path)
	for _, l := range quotas {
		wantUsed(t, s, "key", l, quota)
	}
	if got := query(t, s, "PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
}
