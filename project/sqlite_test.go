package project_test

import (
	"maps"
	"path/filepath"
	"testing"

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
