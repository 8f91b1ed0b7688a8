package project_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/project"
)

// Windows are the same ones as long as the limit stays, so that who has made something
// of them may keep it.
func TestWindowsStay(t *testing.T) {
	url := redistest.New(t).URL()
	for name, cfg := range map[string]project.Config{
		"memory": {}, "SQLite": {Store: openSQLite(t, t.TempDir()+"/limits.db")}, "Redis": {Store: openRedis(t, url)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Limits = map[string]project.Limit{"p": {RequestsPerMinute: 9, TokensPerHour: 9}}
			l := newLimiter(t, cfg)
			setLimit(t, l, "p", project.Limit{RequestsPerHour: 9, TokensPerHour: 9})
			of := func(id string) (all []*project.Window) {
				_, d, err := l.Take(t.Context(), project.Call{Project: id, Estimated: 1})
				if err != nil {
					t.Fatal(err)
				}
				spent := spend(t, l, project.Call{Project: id, Estimated: 1})
				for i, s := range d.Windows() {
					if spent.Windows()[i].Window != s.Window {
						t.Errorf("%q has two windows %q", id, s.Window.Name)
					}
					all = append(all, s.Window)
				}
				return all
			}
			mine, usual := of("p"), of("q")
			if len(mine) != 2 || len(usual) != 3 || mine[0].Name != "hour" || mine[1].Name != "tokens-hour" || usual[2].Name != "day" {
				t.Fatalf("%v, %v", mine, usual)
			}
			other := cfg
			if cfg.Store != nil {
				other.Limits = nil
				b := newLimiter(t, other)
				setLimit(t, b, "other", project.Limit{RequestsPerDay: 1})
			}
			setLimit(t, l, "another", project.Limit{RequestsPerDay: 1})
			if name == "Redis" { // wait until it has heard
				eventually(t, "it follows", func() bool { return len(l.Limits()) == 3 })
			}
			if again := of("p"); again[0] != mine[0] || again[1] != mine[1] || of("r")[0] != usual[0] {
				t.Errorf("windows have changed with the limit of another project")
			}
			setLimit(t, l, "p", project.Limit{RequestsPerHour: 8, TokensPerHour: 9})
			if again := of("p"); again[0] == mine[0] || mine[0].Count != 9 || again[0].Count != 8 {
				t.Errorf("%v was changed to %v", mine[0], again[0])
			}
		})
	}
}
