package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// screenOf returns a top with an overview, of a size.
func screenOf(width, height int, o admin.Overview) *top {
	t := &top{out: console.NewWriter(&strings.Builder{}), overview: o, order: rowOrders[0]}
	t.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return t
}

func (t *top) text() string { return shown(t.lines()) }

// pressed presses keys, by their names.
func (t *top) pressed(keys ...string) {
	named := map[string]tea.KeyPressMsg{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "backspace": {Code: tea.KeyBackspace}}
	for _, name := range keys {
		msg, ok := named[name]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		t.Update(msg)
	}
}

func row(name string, pressure float64, waiting int) admin.Row {
	return admin.Row{Name: name, Pressure: pressure, Closest: "max_rpm", Waiting: waiting, Spark: []int64{0, 5, 10},
		Dimensions: []admin.Dimension{{Name: "max_rpm", Unit: "requests", Limit: 100, Used: 100 * pressure}, {Name: "max_tpm", Unit: "tokens", Limit: 5000, Used: 10, Lent: 7}}}
}

func someRows(n int) (rows []admin.Row) {
	for i := range n {
		rows = append(rows, row(fmt.Sprintf("project-%03d", i), float64(i)/float64(n), i%3))
	}
	return rows
}

// Whatever the size of the terminal and the number of rows, the screen has as many lines and columns.
func TestTopFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}, {40, 10}, {20, 5}, {1, 1}, {300, 3}} {
		for _, n := range []int{0, 1, 5, 200} {
			o := admin.Overview{Version: "v1", Models: someRows(n), Projects: someRows(n), ProjectCount: n}
			s := screenOf(size[0], size[1], o)
			for _, keys := range [][]string{nil, {"tab", "down", "down"}, {"enter"}, {"esc", "p"}} {
				s.pressed(keys...)
				lines := s.lines()
				if len(lines) != max(size[1], 3) {
					t.Errorf("%v, %d rows, %v: %d lines", size, n, keys, len(lines))
				}
				for _, line := range lines {
					if console.Width(line) > max(size[0], 20) {
						t.Errorf("%v, %d rows, %v: %d columns: %s", size, n, keys, console.Width(line), line)
					}
				}
			}
		}
	}
}

// Those whose calls are harmed most come first; other orders and a filter show others.
func TestTopSortsAndFilters(t *testing.T) {
	s := screenOf(100, 24, admin.Overview{Models: []admin.Row{row("m", 0.5, 0)}, Projects: []admin.Row{row("calm", 0.1, 9), row("hot", 0.9, 0)}})
	order := func(first, second string) {
		t.Helper()
		if text := s.text(); strings.Index(text, first) > strings.Index(text, second) {
			t.Errorf("%s is not before %s:\n%s", first, second, text)
		}
	}
	order("\ncalm", "\nhot") // its calls wait
	s.pressed("s")
	order("\nhot", "\ncalm") // by pressure
	s.pressed("s")
	order("\ncalm", "\nhot") // by name
	s.pressed("s")
	if s.order != "waiting" {
		t.Errorf("sorted by %s", s.order)
	}
	s.pressed("/", "H", "o", "x", "backspace")
	if text := s.text(); strings.Contains(text, "calm") || !strings.Contains(text, "\nhot") || !strings.Contains(text, "filter: Ho▏") || !strings.Contains(text, "no models") {
		t.Error(text)
	}
	s.Update(foundMsg{[]admin.Row{row("hotel", 0.2, 0)}, "Ho", "waiting"})
	s.Update(foundMsg{[]admin.Row{row("stale", 0.2, 0)}, "H", "waiting"})
	if text := s.text(); !strings.Contains(text, "\nhotel") || strings.Contains(text, "stale") {
		t.Error(text)
	}
	s.pressed("enter", "esc")
	if text := s.text(); !strings.Contains(text, "calm") {
		t.Error(text)
	}
}

// Rows have one order, that of the gateway, however they come: by harm, by calls that were denied or refused, by calls that
// wait, by what is closest to its limit, by calls, and by name.
func TestTopHasOneOrder(t *testing.T) {
	harmed := func(name, harm string, denied, refused int64, pressure float64, spark ...int64) admin.Row {
		return admin.Row{Name: name, Harm: harm, Minute: admin.Minute{Denied: denied, Refused: refused}, Pressure: pressure, Spark: spark, SparkDenied: []int64{0}}
	}
	want := []admin.Row{
		harmed("blocked", "blocked", 1, 0, 0), harmed("more denied", "denied", 5, 4, 0), harmed("denied", "denied", 8, 0, 1),
		harmed("waits", "waiting", 0, 0, 0), harmed("near", "near", 0, 0, 0.95), harmed("half", "", 0, 0, 0.5, 9),
		harmed("busy", "", 0, 0, 0, 2, 3), harmed("a", "", 0, 0, 0, 4), harmed("b", "", 0, 0, 0, 4),
	}
	for range 20 {
		rows := slices.Clone(want)
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		testkit.Equal(t, "the rows", want, screenOf(80, 24, admin.Overview{Projects: rows}).rows(true))
	}
}

// A share is no limit of a project's own, and a row that is first because its calls are refused says so.
func TestRowsOfProjects(t *testing.T) {
	rows := []admin.Row{{Name: "refused", Harm: "blocked", Minute: admin.Minute{Refused: 7}}, {Name: "borrows", Dimensions: []admin.Dimension{{Name: "max_rpm_share", Model: "m", Unit: "requests", Used: 3}}}}
	got := shown(rowLines("project", rows, 2, 80))
	if !strings.Contains(got, "7 refused in the last minute") || strings.Contains(got, "share") {
		t.Error(got)
	}
}

// A delta changes rows, adds new ones and removes others; the chosen row stays.
func TestTopFollows(t *testing.T) {
	s := screenOf(100, 24, admin.Overview{Projects: []admin.Row{row("a", 0.1, 0), row("b", 0.2, 0), row("c", 0.3, 0)}})
	s.pressed("tab", "down")
	if s.chosen != "b" {
		t.Fatalf("chosen is %q", s.chosen)
	}
	s.Update(deltaMsg{Projects: []admin.Row{row("b", 0.99, 4), row("d", 0.4, 0)}, GoneProjects: []string{"c"}})
	text := s.text()
	if strings.Contains(text, "\nc ") || !strings.Contains(text, "\nd ") || !strings.Contains(text, "max_rpm 99 / 100") || s.chosen != "b" {
		t.Error(text)
	}
	s.pressed("enter")
	if text := s.text(); !strings.Contains(text, "max_tpm") || !strings.Contains(text, "lent 7") {
		t.Error(text)
	}
	s.Update(lostMsg{fmt.Errorf("ratelimit: connection refused")})
	if text := s.text(); !strings.Contains(text, "THE GATEWAY DOES NOT ANSWER: connection refused") {
		t.Error(text)
	}
	s.Update(snapshotMsg{})
	if text := s.text(); strings.Contains(text, "GONE") || !strings.Contains(text, "no projects") {
		t.Error(text)
	}
}

// The details of a project have a table of who shares its limits.
func TestTopShowsShares(t *testing.T) {
	s := screenOf(100, 24, admin.Overview{Projects: []admin.Row{row("acme", 0.1, 0), row("other", 0, 0)}})
	s.pressed("tab", "enter")
	if s.askProject() == nil {
		t.Error("nobody asks for the project")
	}
	s.Update(projectMsg{ID: "acme", Windows: []admin.Window{{Name: "requests_per_minute", Unit: "requests", Limit: 8}}, Shares: []admin.InnerShare{
		{ProjectShare: event.ProjectShare{Project: "acme/search", Limits: []event.LimitShare{{Name: "requests_per_minute", Share: 6, Used: 7, Borrowed: 1}}}, Weight: 3},
	}})
	const shares = "acme      requests_per_minute  acme/search       3     7      6  borrows 1"
	if text := s.text(); !strings.Contains(text, shares) {
		t.Error(text)
	}
	s.pressed("down")
	if text := s.text(); strings.Contains(text, shares) {
		t.Error(text)
	}
	s.pressed("esc")
	if s.askProject() != nil {
		t.Error("a project is asked for that nobody looks at")
	}
}

// A pause is asked for once, and anything but y changes nothing.
func TestTopAsks(t *testing.T) {
	s := screenOf(100, 24, admin.Overview{Models: []admin.Row{{Name: "m\x1b[2J"}}, Projects: []admin.Row{{Name: "p", Paused: true}, {Name: "q", Pause: &admin.RowPause{Remaining: 9}}}})
	s.pressed("p")
	if text := s.text(); !strings.Contains(text, `Pause model m\x1b[2J?`) {
		t.Error(text)
	}
	s.pressed("q")
	if text := s.text(); !strings.Contains(text, "nothing was changed") || s.asking != nil {
		t.Error(text)
	}
	s.pressed("down", "p")
	if text := s.text(); !strings.Contains(text, "Resume project p?") || !strings.Contains(text, "PAUSED") || !strings.Contains(text, "PROVIDER 9 s") {
		t.Error(text)
	}
	s.Update(pausedMsg{"", fmt.Errorf("ratelimit: not today")})
	s.pressed("n")
	s.Update(pausedMsg{"", fmt.Errorf("ratelimit: not today")})
	if text := s.text(); !strings.Contains(text, "\nnot today") {
		t.Error(text)
	}
}

// Where there is no terminal, top prints the overview once.
func TestTopPrints(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	t.Setenv("COLUMNS", "80")
	s := serveWith(t, "--state", "memory", "--config", withMock(t, "projects: {search: {requests_per_minute: 4}}"))
	s.ask(t, "search", "any")
	got := run(t, "top")
	for _, want := range []string{"1 passed", "max_rpm 1 / 100", "search", "requests_per_minute 1 / 4", "25%"} {
		if got.code != exitFine || !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in %+v", want, got)
		}
	}
	if got := run(t, "top", "--json"); !strings.Contains(got.stdout, `"pressure": 0.25`) {
		t.Errorf("%+v", got)
	}
}

// A row says how many of its calls have failed, since its calls include them.
func TestRowNotesFailures(t *testing.T) {
	r := row("gpt-6-luna", 0.1, 0)
	r.Minute = admin.Minute{Passed: 1_204, Failed: 1_003}
	testkit.Equal(t, "notes", []string{"1,003 of 1,204 calls failed in the last minute"}, rowNotes(r))
}

func TestSpark(t *testing.T) {
	for _, c := range []struct {
		numbers []int64
		want    string
	}{{nil, "-"}, {[]int64{0, 0}, "▁▁"}, {[]int64{0, 4, 7}, "▁▅█"}} {
		if got := spark(c.numbers); got != c.want {
			t.Errorf("%v: %s", c.numbers, got)
		}
	}
	if got := bar(0.5, 4) + bar(7, 2) + bar(0, 1); got != "██░░██░" {
		t.Error(got)
	}
}

// A gateway that does not answer is named on the narrowest of usual terminals, and where there is none.
func TestTopNamesSilentGateways(t *testing.T) {
	o := admin.Overview{Version: "v1", OfFleet: admin.OfFleet{Gateways: []string{"gw1", "gw2"}, Silent: []string{"gw3"}}}
	for _, text := range []string{screenOf(80, 24, o).text(), shown(overviewLines(o, 0))} {
		if !strings.Contains(text, "NO ANSWER from gw3") {
			t.Error(text)
		}
	}
}
