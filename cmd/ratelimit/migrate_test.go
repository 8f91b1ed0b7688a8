package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

func TestMigrate(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	from := filepath.Join(home, ".core", "ratelimits.yaml")
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: from, Quotas: map[string]ratelimit.ModelQuota{"m": {MaxRPM: 10, MaxTPM: 1000}}})
	if err != nil {
		t.Fatal(err)
	}
	rl.RecordUsage("m", 3, 4)
	if err := rl.Persist(); err != nil {
		t.Fatal(err)
	}
	rl.Close()
	other := filepath.Join(t.TempDir(), "other.db")
	for _, args := range [][]string{{}, {from}, {from, other}} {
		to := filepath.Join(home, ".core", "ratelimits.db")
		if len(args) == 2 {
			to = other
		}
		want := fmt.Sprintf("moved from %s to %s\n  models with a quota  1\n  requests of the last minute  1\n  tokens of the last minute  7\n", from, to)
		if got := run(t, append([]string{"migrate"}, args...)...); got.code != exitFine || got.stdout != want {
			t.Errorf("%v: %+v\nwant %s", args, got, want)
		}
	}
}

func TestMigrateOfNothing(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	got := run(t, "migrate")
	if got.code != exitFailed || !strings.Contains(got.stderr, "nothing to migrate") || strings.Contains(got.stderr, "Usage") {
		t.Errorf("%+v", got)
	}
}
