package ratelimit_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"pgregory.net/rapid"
)

func mustPersist(t testing.TB, rl *ratelimit.RateLimiter) {
	t.Helper()
	if err := rl.Persist(); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t testing.TB, rl *ratelimit.RateLimiter) {
	t.Helper()
	if err := rl.Load(); err != nil {
		t.Fatal(err)
	}
}

func mustSetQuota(t testing.TB, rl *ratelimit.RateLimiter, model string, quota ratelimit.ModelQuota) {
	t.Helper()
	if err := rl.SetQuota(model, quota); err != nil {
		t.Fatal(err)
	}
}

// difference returns where copies of a limiter decide otherwise than the limiter, now and in
// the next two days.
func difference(rl *ratelimit.RateLimiter, copies map[string]*ratelimit.RateLimiter) string {
	start := time.Now()
	for _, wait := range []time.Duration{0, 1, 20 * time.Second, 20 * time.Second, 20 * time.Second, 5 * time.Hour, 18*time.Hour + 59*time.Minute, day} {
		time.Sleep(wait)
		for name, other := range copies {
			where := fmt.Sprintf("%s, after %v", name, time.Since(start))
			if x, y := rl.Quotas(), other.Quotas(); !maps.Equal(x, y) {
				return fmt.Sprintf("%s: quotas were\n  %+v\nand are\n  %+v", where, x, y)
			}
			if x, y := rl.State(), other.State(); !reflect.DeepEqual(x, y) {
				return fmt.Sprintf("%s: the state was\n  %+v\nand is\n  %+v", where, x, y)
			}
			for model := range rl.Models() {
				for _, tokens := range []int{1, 8} {
					if x, y := rl.Decide(model, tokens), other.Decide(model, tokens); x != y {
						return fmt.Sprintf("%s: %d tokens of %s were\n  %+v\nand are\n  %+v", where, tokens, model, x, y)
					}
				}
			}
		}
	}
	return ""
}

// After any history, the state that was persisted is the state that is loaded, and the one
// that is migrated.
func TestPersistAtRandom(t *testing.T) {
	dir, files := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		q, steps := histories(rt)
		if rapid.IntRange(0, 3).Draw(rt, "a file takes its time") != 0 {
			return
		}
		for model, quota := range q { // slots are not written
			quota.MaxConcurrent = 0
			q[model] = quota
		}
		files++
		path := filepath.Join(dir, fmt.Sprint(files))
		var found string
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(30 * day)
			rl := newYAML(t, path, q)
			p := &play{T: t, rl: rl, start: time.Now()}
			var reserved []*ratelimit.Reservation
			for _, s := range steps {
				s.Quota.MaxConcurrent = 0
				p.take(s, &reserved)
			}
			mustPersist(t, rl)
			loaded := newYAML(t, path, quotas{"m": {MaxRPM: 1}})
			loaded.RecordUsage("m", 1, 1)
			loaded.RecordUsage("lost", 1, 1)
			mustLoad(t, loaded)
			if err := ratelimit.MigrateYAMLToSQLite(path, path+".db"); err != nil {
				t.Fatal(err)
			}
			migrated := openFile(t, path+".db", quotas{"m": {MaxRPM: 1}})
			found = difference(rl, map[string]*ratelimit.RateLimiter{"loaded": loaded, "migrated": migrated})
		})
		if found != "" {
			rt.Fatal(found)
		}
	})
}

// A day may begin later than requests of its first minute.
func TestPersistAsADayBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.yaml")
		rl := newYAML(t, path, quotas{"m": {MaxRPM: 9, MaxTPM: 90, MaxRPD: 5, MaxTPD: 100}})
		mustTake(t, rl, 1)
		time.Sleep(day - 20*time.Second)
		mustTake(t, rl, 10)
		time.Sleep(20 * time.Second)
		mustTake(t, rl, 20)
		time.Sleep(20*time.Second + 1)
		mustTake(t, rl, 3)
		s := rl.Stats("m")
		if s.RPM != 3 || s.TPM != 33 || s.RPD != 2 || s.TPD != 23 {
			t.Fatalf("%+v", s)
		}
		mustPersist(t, rl)
		loaded := newYAML(t, path, quotas{"m": {}})
		mustLoad(t, loaded)
		wantStats(t, loaded, "m", s)
		if err := ratelimit.MigrateYAMLToSQLite(path, path+".db"); err != nil {
			t.Fatal(err)
		}
		migrated := openFile(t, path+".db", nil)
		wantStats(t, migrated, "m", s)
		closeFile(t, migrated)
		if found := difference(rl, map[string]*ratelimit.RateLimiter{"loaded": loaded}); found != "" {
			t.Error(found)
		}
	})
}

// yamlFile writes a file in which %s stands for a time: now, and so long from now.
func yamlFile(t testing.TB, text string, from ...time.Duration) (path string) {
	t.Helper()
	var times []any
	for _, d := range from {
		times = append(times, time.Now().Add(d).UTC().Format(time.RFC3339Nano))
	}
	path = filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, text, times...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * day)
		now := time.Now().UTC()
		path := yamlFile(t, `quotas:
  m:
    max_rpm: 5
    max_tpm: 100
    max_rpd: 10
state:
  m:
    requests:
      - %s
      - %s
      - %s
      - %s
    tokens:
      - time: %s
        count: 40
      - time: %s
        count: 50
    day_start: %s
    day_count: 6
  ahead:
    requests:
      - %s
    tokens:
      - time: 9999-12-31T23:59:59Z
        count: 7
    day_start: %s
    day_count: 3
  gone:
    requests:
      - 0001-01-01T00:00:00Z
    tokens: []
    day_start: %s
    day_count: 9
`, -70*time.Second, -time.Minute, -10*time.Second, -time.Minute+1,
			-30*time.Second, -61*time.Second,
			-23*time.Hour,
			time.Hour, 90*time.Minute, -day)
		rl := newYAML(t, path, quotas{"m": {MaxRPM: 1}, "mine": {MaxRPM: 2}, "ahead": {MaxRPD: 3}})
		fill(rl, "m", 1)
		fill(rl, "mine", 1)
		reserved, _ := rl.TryAcquire("ahead", 1)
		mustLoad(t, rl)
		if want := (quotas{"m": {MaxRPM: 5, MaxTPM: 100, MaxRPD: 10}, "mine": {MaxRPM: 2}, "ahead": {MaxRPD: 3}}); !maps.Equal(rl.Quotas(), want) {
			t.Errorf("quotas are %+v; want %+v", rl.Quotas(), want)
		}
		wantStats(t, rl, "m", ratelimit.ModelStats{RPM: 2, MaxRPM: 5, TPM: 40, MaxTPM: 100, RPD: 6, MaxRPD: 10, DayStart: now.Add(-23 * time.Hour)})
		wantStats(t, rl, "mine", ratelimit.ModelStats{MaxRPM: 2})
		wantStats(t, rl, "gone", ratelimit.ModelStats{})
		want := ratelimit.ModelStats{RPM: 1, TPM: 7, RPD: 3, MaxRPD: 3, DayStart: now}
		wantStats(t, rl, "ahead", want)
		reserved.Cancel() // its usage was replaced, so there is nothing to refund
		wantStats(t, rl, "ahead", want)
		if d := rl.Decide("ahead", 1); d.Code != overRPD || d.RetryAfter != day {
			t.Errorf("%+v", d)
		}
		if n, d := fill(rl, "m", 1); n != 3 || d.RetryAfter != 1 {
			t.Errorf("%d pass, and then %+v", n, d)
		}
		mustLoad(t, rl)
		if s := rl.Stats("m"); s.RPM != 2 {
			t.Errorf("loaded again: %+v", s)
		}
		time.Sleep(time.Hour)
		mustLoad(t, rl)
		wantStats(t, rl, "m", ratelimit.ModelStats{MaxRPM: 5, MaxTPM: 100, MaxRPD: 10})
	})
}

func TestLoadOfNothing(t *testing.T) {
	for name, path := range map[string]string{
		"missing":     filepath.Join(t.TempDir(), "no", "such", "file"),
		"empty":       yamlFile(t, ""),
		"a comment":   yamlFile(t, "# nothing\n"),
		"a directory": t.TempDir(),
		"broken":      yamlFile(t, "quotas:\n  m:\n    max_rpm: 7\n  n: ["),
		"a bad quota": yamlFile(t, "quotas:\n  a:\n    max_rpm: 7\n  m:\n    max_rpm: -7\n"),
		"a bad name":  yamlFile(t, "state:\n  \"\\x00\":\n    requests: []\n    tokens: []\n    day_start: 0001-01-01T00:00:00Z\n    day_count: 0\n"),
		"no name":     yamlFile(t, "quotas:\n  m:\n    max_rpm: 7\nstate:\n  \"\":\n    requests: []\n    tokens: []\n    day_start: 0001-01-01T00:00:00Z\n    day_count: 0\n"),
		"a bad state": yamlFile(t, "quotas:\n  m:\n    max_rpm: 7\nstate:\n  m:\n    requests: [yesterday]\n"),
	} {
		t.Run(name, func(t *testing.T) {
			rl := newYAML(t, path, quotas{"m": {MaxRPM: 5}})
			mustTake(t, rl, 3)
			reserved := mustTake(t, rl, 3)
			before, state := rl.Quotas(), rl.State()
			err := rl.Load()
			if harmless := slices.Contains([]string{"missing", "empty", "a comment"}, name); harmless && err != nil {
				t.Error(err)
			} else if !harmless && (err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), path)) {
				t.Errorf("%v: it must name %s", err, path)
			}
			if !maps.Equal(before, rl.Quotas()) || !reflect.DeepEqual(state, rl.State()) {
				t.Errorf("it has left\n  %+v\n  %+v", rl.Quotas(), rl.State())
			}
			reserved.Cancel()
			if s := rl.Stats("m"); s.RPM != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Waiting calls go on if the loaded usage has room for them.
func TestLoadWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.yaml")
		rl := newYAML(t, path, quotas{"m": {MaxRPM: 1}})
		mustPersist(t, rl)
		mustTake(t, rl, 1)
		go func() {
			time.Sleep(5 * time.Second)
			if err := rl.Load(); err != nil {
				t.Error(err)
			}
		}()
		if waited := acquired(t, rl, 1); waited != 5*time.Second {
			t.Errorf("waited for %v", waited)
		}
		if n, _ := fill(rl, "m", 1); n != 0 {
			t.Errorf("%d more pass", n)
		}
	})
}

func TestDefaultYAMLPath(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	rl, err := ratelimit.New()
	if err != nil {
		t.Fatal(err)
	}
	mustLoad(t, rl)
	mustPersist(t, rl)
	mustLoad(t, rl)
	if _, err := os.Stat(filepath.Join(home, ".core", "ratelimits.yaml")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := rl.Close(); err != nil {
			t.Error(err)
		}
	}
	if !rl.CanSend("gemini-2.5-pro", 1) {
		t.Error("Close has closed something")
	}
}

// A Persist that fails returns the error, loses nothing and locks nothing.
func TestPersistFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "file", "limits.yaml")} {
		rl := newYAML(t, path, quotas{"m": {MaxRPM: 5}})
		mustTake(t, rl, 1)
		if err := rl.Persist(); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", path, err)
		}
		if s := rl.Stats("m"); s.RPM != 1 {
			t.Errorf("%+v", s)
		}
	}
	mustPersist(t, newYAML(t, path, quotas{"m": {MaxRPM: 5}}))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}

// Persist and Load are called while calls are made: each Load finds a complete file, and the
// last Persist has all usage.
func TestPersistInTraffic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	const calls = 400
	rl := newYAML(t, path, quotas{"m": {MaxRPM: 4 * calls, MaxTPM: 100 * calls, MaxTPD: 100 * calls}, "n": {}})
	mustPersist(t, rl)
	done := make(chan struct{})
	var others sync.WaitGroup
	for _, call := range []func() error{
		rl.Persist,
		rl.Persist,
		func() error { return newYAML(t, path, quotas{"m": {}}).Load() },
		func() error { return rl.SetQuota("n", ratelimit.ModelQuota{MaxRPM: 1}) },
	} {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := call(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range calls {
				res, d := rl.TryAcquire("m", 10)
				if !d.Allowed {
					t.Errorf("%+v", d)
				}
				res.Commit(2, 3)
			}
		})
	}
	wg.Wait()
	close(done)
	others.Wait()
	mustPersist(t, rl)
	loaded := newYAML(t, path, quotas{"m": {}})
	mustLoad(t, loaded)
	if s := loaded.Stats("m"); s.RPM != 4*calls || s.TPM != 4*calls*5 || s.RPD != 4*calls || s.TPD != 4*calls*5 {
		t.Errorf("%+v", s)
	}
}

// When Persist returns, the file has all usage from before the call, however many are called
// at a time.
func TestPersistAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	rl := newYAML(t, path, quotas{"m": {}})
	for round := range 30 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				rl.RecordUsage("m", 1, 1)
				if err := rl.Persist(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		loaded := newYAML(t, path, quotas{"m": {}})
		mustLoad(t, loaded)
		if s := loaded.Stats("m"); s.RPD != 4*(round+1) {
			t.Fatalf("%d were used, and the file has %d", 4*(round+1), s.RPD)
		}
	}
}

// Load while calls are in flight: settlements of earlier calls do not change the loaded usage,
// and later calls count.
func TestLoadInTraffic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	rl := newYAML(t, path, quotas{"m": {MaxRPM: 50, MaxTPM: 1000}})
	for range 10 {
		rl.RecordUsage("m", 10, 10)
	}
	mustPersist(t, rl)
	done := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := rl.Load(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 300 {
				res, d := rl.TryAcquire("m", 20)
				if d.Stats.RPM > 50 || d.Stats.TPM > 1000 || d.Stats.RPM < 10 || d.Stats.TPM < 200 {
					t.Errorf("%+v", d)
					return
				}
				if i%2 == 0 {
					res.Cancel()
				} else {
					res.Commit(0, 0)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	others.Wait()
	mustLoad(t, rl)
	if s := rl.Stats("m"); s.RPM != 10 || s.TPM != 200 {
		t.Errorf("%+v", s)
	}
}

// Persist of a large state takes a while. No call waits for it.
func TestPersistHoldsNobodyUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	q := quotas{"m": {MaxRPM: 1 << 40}}
	for i := range 20 {
		q[fmt.Sprint("m", i)] = ratelimit.ModelQuota{MaxRPM: 1 << 40}
	}
	rl := newYAML(t, path, q)
	for model := range q {
		for range 2000 {
			rl.RecordUsage(model, 1, 1)
		}
	}
	var persisting atomic.Bool
	persisting.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer persisting.Store(false)
		if err := rl.Persist(); err != nil {
			t.Error(err)
		}
	})
	passed := 0
	for persisting.Load() {
		_, d := rl.TryAcquire("m", 1)
		if !d.Allowed {
			t.Errorf("%+v", d)
		}
		rl.SetQuota("another", ratelimit.ModelQuota{MaxRPM: 1})
		passed++
	}
	wg.Wait()
	if passed < 10 { // the first would wait for all of it
		t.Errorf("during Persist %d passed", passed)
	}
}
