package project_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A limit that is set in one process reaches the others on the file, there to stay.
func TestSQLiteSetLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	cfg := func() project.Config {
		return project.Config{Store: openSQLite(t, path), Limits: map[string]project.Limit{"own": {RequestsPerHour: 5}}}
	}
	a, b := newLimiter(t, cfg()), newLimiter(t, cfg())
	if err := a.SetLimits(map[string]project.Limit{"p": {RequestsPerHour: 2, Weight: 3}, "q": {TokensPerDay: 7}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other follows", func() bool { return len(b.Limits()) == 3 })
	if err := b.UnsetLimit("q"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first follows", func() bool { return len(a.Limits()) == 2 })
	want := map[string]project.Limit{"own": {RequestsPerHour: 5}, "p": {RequestsPerHour: 2, Weight: 3}}
	for _, l := range []*project.Limiter{a, b, newLimiter(t, cfg())} {
		if got := l.Limits(); !maps.Equal(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// In a file of models, quotas and limits of projects are each kept once, and are there
// again when it is opened.
func TestSQLiteKeepsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	open := func() (*ratelimit.RateLimiter, *project.Limiter) {
		rl, err := ratelimit.NewWithSQLite(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rl.Close() })
		return rl, newLimiter(t, project.Config{Models: rl})
	}
	rl, l := open()
	quota, limit := ratelimit.ModelQuota{MaxRPM: 7}, project.Limit{RequestsPerMinute: 3}
	if err := rl.SetQuota("m", quota); err != nil {
		t.Fatal(err)
	}
	setLimit(t, l, "p", limit)
	for _, err := range []error{rl.Persist(), l.Close(), rl.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rl, l = open()
	if rl.Quotas()["m"] != quota || l.Limit("p") != limit {
		t.Errorf("%+v, %+v", rl.Quotas()["m"], l.Limit("p"))
	}
	kept, err := openSQLite(t, path).Settings(t.Context())
	if err != nil || !slices.Equal(slices.Collect(maps.Keys(kept)), []string{"project/p"}) {
		t.Errorf("settings %v, %v", kept, err)
	}
}
