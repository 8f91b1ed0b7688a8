package ratelimit_test

import (
	"path/filepath"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit"
)

// A program for the limiter before it had reservations compiles and works, as docs/migration.md says, but
// for the two maps and the context of CountTokens.
func TestEarlierProgram(t *testing.T) {
	dir := t.TempDir()
	cfg := ratelimit.Config{
		FilePath: filepath.Join(dir, "limits.yaml"), Backend: "yaml", Providers: []ratelimit.Provider{ratelimit.ProviderOpenAI},
		Quotas: map[string]ratelimit.ModelQuota{"m": {MaxRPM: 2, MaxTPM: 1000, MaxRPD: 10}},
	}
	rl, err := ratelimit.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := rl.BackgroundPrune(30 * time.Second)
	defer stop()
	mustLoad(t, rl)
	rl.AddProvider(ratelimit.ProviderLocal)
	rl.SetQuota("n", ratelimit.ModelQuota{MaxRPM: 1})
	for rl.CanSend("m", 100) {
		rl.RecordUsage("m", 60, 40)
	}
	if d := rl.Decide("m", 100); d.Allowed || d.RetryAfter <= 0 || d.Stats.RPM != 2 {
		t.Errorf("a third call: %+v", d)
	}
	for model, stats := range rl.Iter() {
		if model == "m" && (stats.RPM != 2 || stats.TPM != 200 || stats.MaxRPD != 10 || stats != rl.AllStats()["m"] && rl.Stats("m").RPM != 2) {
			t.Errorf("m: %+v", stats)
		}
	}
	mustPersist(t, rl)
	db := filepath.Join(dir, "limits.db")
	if err := ratelimit.MigrateYAMLToSQLite(cfg.FilePath, db); err != nil {
		t.Fatal(err)
	}
	migrated, err := ratelimit.NewWithSQLite(db)
	if err != nil {
		t.Fatal(err)
	}
	defer migrated.Close()
	if migrated.Quotas()["m"] != cfg.Quotas["m"] || len(migrated.State()["m"].Requests) != 2 {
		t.Errorf("after the migration: %+v, %+v", migrated.Quotas()["m"], migrated.State()["m"])
	}
	migrated.Reset("m")
	if !migrated.CanSend("m", 100) {
		t.Error("a model that was reset denies a call")
	}
}
