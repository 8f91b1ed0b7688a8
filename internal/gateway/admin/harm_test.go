package admin

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Rows are in the order of the harm that is done to calls: a project whose every call is denied is the first, however
// little of a limit others have left. Borrowing what nobody wants is no harm.
func TestRowsAreRankedByHarm(t *testing.T) {
	all := newStandings()
	minute := func(name string, passed, denied, refused int64, waiting int, used float64) {
		s := all.see(name, 1)
		s.recent.Minute = figures.Sum{Passed: passed, Denied: denied, Refused: refused}
		s.waiting, s.limits = waiting, []Dimension{{Name: "requests_per_minute", Limit: 100, Used: used}}
	}
	minute("quiet", 1, 0, 0, 0, 0)
	minute("full", 5, 0, 0, 0, 95)
	minute("waits", 5, 0, 0, 3, 10)
	minute("some denied", 90, 7, 0, 0, 100)
	minute("more denied", 90, 9, 0, 9, 100)
	minute("not allowed", 0, 0, 2, 0, 0)
	minute("blocked", 0, 4, 0, 0, 100)
	minute("hog", 0, 50, 0, 0, 0)
	all.byName["hog"].recent.PassedBy[figures.Window-2] = 15
	minute("busy", 1000, 0, 0, 0, 80)
	minute("borrows", 50, 0, 0, 0, 1)
	all.byName["borrows"].shares = []Dimension{{Name: "max_tpm_share", Model: "m", Limit: 10, Used: 90, Borrowed: 80}}
	all.sort()
	var got []string
	for _, s := range all.list {
		row := s.row()
		got = append(got, strings.TrimSuffix(row.Name+": "+row.Harm, ": "))
	}
	testkit.Equal(t, "the order", []string{
		"blocked: blocked", "not allowed: blocked", "hog: blocked", "more denied: denied", "some denied: denied", "waits: waiting", "full: near", "busy", "borrows", "quiet",
	}, got)
	if s := all.byName["borrows"]; s.pressure != 0.01 {
		t.Errorf("the pressure of a project that borrows is %v", s.pressure)
	}
}

// Calls that are refused count: those of models that a project may not call are in the totals, and in its row.
func TestRefusedCallsCount(t *testing.T) {
	r := newRig(t, strings.Replace(usual, "small: {", "small: {models: [nothing], ", 1))
	if status := r.call(t, "small", "gpt-4o"); status != 403 {
		t.Fatalf("the call: %d", status)
	}
	o := as[Overview](t, r.want(t, 200, "GET", "/v1/overview", ""))
	if first := as[State](t, r.get(t, "/v1/state")).Projects[0]; first.ID != "small" || first.Harm != "blocked" {
		t.Errorf("the first project of the state: %+v", first)
	}
	if small := o.Projects[0]; o.Totals.Refused != 1 || small.Name != "small" || small.Harm != "blocked" || small.Minute.Refused != 1 {
		t.Errorf("%+v, %+v", o.Totals, small)
	}
}
