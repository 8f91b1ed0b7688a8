package project_test

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
)

// What runs reserve must be one of the words, wherever their limit is set.
func TestBadReserveOfRuns(t *testing.T) {
	const want = `ratelimit: Reserve: "all": it must be most or expected, or empty for the default`
	bad := project.RunLimit{Dollars: 1, Reserve: "all"}
	l := newLimiter(t, project.Config{})
	_, made := project.NewWithConfig(project.Config{Runs: bad})
	for where, err := range map[string]error{"Validate": bad.Validate(), "SetRuns": l.SetRuns(bad), "Config.Runs": made} {
		if err == nil || !strings.HasSuffix(err.Error(), strings.TrimPrefix(want, "ratelimit: ")) {
			t.Errorf("%s: %v; want %s", where, err, want)
		}
	}
	for _, fine := range []project.Reserve{"", project.ReserveMost, project.ReserveExpected} {
		if err := l.SetRuns(project.RunLimit{Dollars: 1, Reserve: fine}); err != nil {
			t.Errorf("%q: %v", fine, err)
		}
	}
}
