package ratelimit_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Limiters that have a SQLite file open follow the quotas that others write into it: with AddProvider, with
// Persist, and when a YAML file is migrated.
func TestLimitersFollowEveryQuotaOfTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.db")
		a := openFile(t, path, quotas{"a": {MaxRPM: 1}})
		b := openFile(t, path, quotas{"b": {MaxRPM: 2}, "yaml": {MaxRPM: 3}})
		synctest.Wait() // they have loaded what the file has
		follows := func(what string, rl *ratelimit.RateLimiter, want quotas) {
			t.Helper()
			time.Sleep(settings.PollInterval + time.Second)
			synctest.Wait()
			for model, q := range want {
				if got := rl.Quotas()[model]; got != q {
					t.Errorf("%s: the quota of %s is %+v; want %+v", what, model, got, q)
				}
			}
		}
		if err := a.AddProvider(ratelimit.ProviderOpenAI); err != nil {
			t.Fatal(err)
		}
		follows("AddProvider", b, ratelimit.DefaultProfiles()[ratelimit.ProviderOpenAI].Models)
		mustPersist(t, a)
		follows("Persist", b, quotas{"a": {MaxRPM: 1}})
		yaml := filepath.Join(t.TempDir(), "limits.yaml")
		mustPersist(t, newYAML(t, yaml, quotas{"yaml": {MaxRPM: 70}}))
		if err := ratelimit.MigrateYAMLToSQLite(yaml, path); err != nil {
			t.Fatal(err)
		}
		follows("a migration", a, quotas{"yaml": {MaxRPM: 70}})
		follows("a migration", b, quotas{"yaml": {MaxRPM: 70}})
		closeFile(t, a)
		closeFile(t, b)
	})
}

// The quotas of a file win over those that the program sets, and one line of the log says so, once for each
// model. Quotas that are equal, and those that the program leaves to defaults, are not logged.
func TestQuotasOfTheFileWin(t *testing.T) {
	for _, backend := range []string{ratelimit.BackendYAML, ratelimit.BackendSQLite} {
		t.Run(backend, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "limits")
			log := new(testkit.Log)
			open := func(cfg ratelimit.Config) *ratelimit.RateLimiter {
				t.Helper()
				cfg.Backend, cfg.FilePath, cfg.Log = backend, path, slog.New(slog.NewTextHandler(log, nil))
				rl, err := ratelimit.NewWithConfig(cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { rl.Close() })
				for range 2 {
					mustLoad(t, rl)
				}
				return rl
			}
			gemini := ratelimit.DefaultProfiles()[ratelimit.ProviderGemini].Models
			for model := range gemini {
				first := open(ratelimit.Config{Quotas: quotas{"same": {MaxRPM: 1}, "m": {MaxRPM: 2}, model: {MaxRPM: 12345}}})
				mustPersist(t, first)
				break
			}
			if text := log.String(); text != "" {
				t.Errorf("nothing differs: %s", text)
			}
			open(ratelimit.Config{})
			if text := log.String(); text != "" {
				t.Errorf("the program sets no quota: %s", text)
			}
			rl := open(ratelimit.Config{Quotas: quotas{"same": {MaxRPM: 1}, "m": {MaxRPM: 3}, "new": {MaxRPM: 4}}})
			if got := rl.Quotas()["m"].MaxRPM; got != 2 {
				t.Errorf("the quota of m is %d, and the file's is 2", got)
			}
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "models=[m]") || !strings.Contains(text, "SetQuota") {
				t.Errorf("logged: %s", text)
			}
			if backend == ratelimit.BackendYAML {
				return
			}
			for range 2 {
				if err := rl.AddProvider(ratelimit.ProviderGemini); err != nil {
					t.Fatal(err)
				}
			}
			if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "models=[gemini") {
				t.Errorf("logged: %s", text)
			}
		})
	}
}
