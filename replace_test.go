package ratelimit_test

import (
	"path/filepath"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A quota is replaced only if it is still the one that was read; other limiters on the store follow.
func TestReplaceQuota(t *testing.T) {
	pollOften(t)
	for name, cfg := range map[string]ratelimit.Config{
		"memory": {},
		"SQLite": {Backend: ratelimit.BackendSQLite, FilePath: filepath.Join(t.TempDir(), "limits.db")},
		"Redis":  {Backend: ratelimit.BackendRedis, FilePath: redistest.New(t).URL()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.NoDefaults, cfg.Quotas = true, quotas{"m": {MaxRPM: 7}}
			open := func() *ratelimit.RateLimiter {
				rl, err := ratelimit.NewWithConfig(cfg.Patient())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { rl.Close() })
				return rl
			}
			one, two := open(), open()
			replace := func(rl *ratelimit.RateLimiter, was, quota ratelimit.ModelQuota, want bool) {
				t.Helper()
				if replaced, err := rl.ReplaceQuota(t.Context(), "m", was, quota); replaced != want || err != nil {
					t.Errorf("%v, %v; want %v", replaced, err, want)
				}
			}
			replace(one, ratelimit.ModelQuota{MaxRPM: 6}, ratelimit.ModelQuota{MaxRPM: 8}, false)
			replace(one, ratelimit.ModelQuota{MaxRPM: 7}, ratelimit.ModelQuota{MaxRPM: 8}, true)
			if _, err := one.ReplaceQuota(t.Context(), "m", ratelimit.ModelQuota{MaxRPM: 8}, ratelimit.ModelQuota{MaxRPM: -1}); err == nil {
				t.Error("a quota of -1 was set")
			}
			if name == "memory" {
				return // the limiters share nothing
			}
			replace(two, ratelimit.ModelQuota{MaxRPM: 7}, ratelimit.ModelQuota{MaxTPM: 9}, false) // it may not know the change yet
			testkit.Eventually(t, "the other follows", func() bool { q, _ := two.Quota("m"); return q == ratelimit.ModelQuota{MaxRPM: 8} })
			replace(two, ratelimit.ModelQuota{MaxRPM: 8}, ratelimit.ModelQuota{MaxRPM: 8, MaxTPM: 9}, true)
			testkit.Eventually(t, "the first follows", func() bool { q, _ := one.Quota("m"); return q == ratelimit.ModelQuota{MaxRPM: 8, MaxTPM: 9} })
		})
	}
}
