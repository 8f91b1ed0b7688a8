package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestStatusLines(t *testing.T) {
	for name, c := range map[string]struct {
		state admin.State
		want  string
	}{
		"who waits": {
			admin.State{Ready: true, Active: 4, Waiting: 3, Models: []admin.Model{
				{Name: "busy", Quota: admin.Quota{ModelQuota: ratelimit.ModelQuota{MaxConcurrent: 1}}, Usage: &admin.Usage{Used: map[string]int{"max_concurrent": 1}}, Waiting: 2},
				{Name: "full", Quota: admin.Quota{ModelQuota: ratelimit.ModelQuota{MaxConcurrent: 2}}, Usage: &admin.Usage{}, Waiting: 1, Paused: 9},
				{Name: "idle", Usage: &admin.Usage{}},
			}},
			`
gateway v1 at here, up 0s, state in redis, keys off, 4 requests active, 3 of them wait

model  waiting  max_concurrent
busy         2           1 / 1
full         1           0 / 2  paused by the provider for 9 s
(1 unused model hidden)`,
		},
		"what is not limited": {
			admin.State{Ready: true, Models: []admin.Model{
				{Name: "a", Quota: admin.Quota{ModelQuota: ratelimit.ModelQuota{MaxTPM: 5000}}, Usage: &admin.Usage{Used: map[string]int{"max_rpm": 3, "max_tpm": 1200}}},
				{Name: "b", Quota: admin.Quota{ModelQuota: ratelimit.ModelQuota{MaxRPM: 9}}, Usage: &admin.Usage{Used: map[string]int{"max_rpm": 1}}},
			}},
			`
gateway v1 at here, up 0s, state in redis, keys off, 0 requests active

model  max_rpm        max_tpm
a        3 / -  1,200 / 5,000
b        1 / 9              -`,
		},
		"shares": {
			admin.State{Ready: true, Models: []admin.Model{
				{Name: "m", Quota: admin.Quota{ModelQuota: ratelimit.ModelQuota{MaxRPM: 100, MaxTPM: 20_000}}, Usage: &admin.Usage{Used: map[string]int{"max_rpm": 70, "max_tpm": 9_500}}, Shares: []event.ProjectShare{
					{Limits: []event.LimitShare{{Name: "max_rpm", Share: 10}, {Name: "max_tpm", Share: 2_000}}},
					{Project: "batch", Waiting: 7, Limits: []event.LimitShare{{Name: "max_rpm", Share: 60, Used: 58, Borrowed: 33}, {Name: "max_tpm", Share: 15_000, Used: 9_000, Borrowed: 4_000}}},
					{Project: "search", Limits: []event.LimitShare{{Name: "max_rpm", Share: 30, Used: 12, Lent: 45}, {Name: "max_tpm", Share: 3_000, Used: 500}}},
				}},
				{Name: "alone", Usage: &admin.Usage{Used: map[string]int{"max_rpm": 1}}, Shares: []event.ProjectShare{{Project: "batch", Limits: []event.LimitShare{{Name: "max_rpd", Share: 10}}}}},
			}},
			`
gateway v1 at here, up 0s, state in redis, keys off, 0 requests active

model   max_rpm         max_tpm
m      70 / 100  9,500 / 20,000
alone     1 / -               -

share of  project  waiting  max_rpm         max_tpm
m         (none)         -   0 / 10       0 / 2,000
m         batch          7  58 / 60  9,000 / 15,000  borrows 33 of max_rpm, borrows 4,000 of max_tpm
m         search         -  12 / 30     500 / 3,000  lends 45 of max_rpm`,
		},
		"projects": {
			admin.State{Ready: true, Projects: []admin.Project{
				{ID: "held", Windows: []admin.Window{{Name: "requests_per_minute", Limit: 60, Remaining: 48}}, Limit: project.Limit{RequestsPerMinute: 60, MaxConcurrent: 5}},
				{ID: "free", Windows: []admin.Window{}},
				{ID: "slow", Windows: []admin.Window{}, Limit: project.Limit{MaxConcurrent: 1, Weight: 3, MinShare: 20, Dedicated: true, MaxShare: 50}},
			}},
			`
gateway v1 at here, up 0s, state in redis, keys off, 0 requests active

project  closest limit                used  also
held     requests_per_minute 12 / 60   20%  max_concurrent 5
free     no limits                       -
slow     max_concurrent 1                -  weight 3, min_share 20%, dedicated, max_share 50%`,
		},
		"calls get 503": {
			admin.State{
				Reason: "cannot reach Redis: no answer", StoreLost: "cannot reach Redis: no answer", OnStoreLoss: "deny",
				Models:   []admin.Model{{Name: "m", Quota: admin.Quota{ModelQuota: ratelimit.ModelQuota{MaxRPM: 6}}}},
				Projects: []admin.Project{{ID: "held", Limit: project.Limit{RequestsPerMinute: 6}}},
			},
			`
gateway v1 at here, up 0s, state in redis, keys off, 0 requests active
NOT READY: cannot reach Redis: no answer
REDIS IS LOST: calls that have a limit get 503 (on_store_loss: deny); cannot reach Redis: no answer

model
m      the store does not answer

project  closest limit
held     ? (the store does not answer)`,
		},
		"everything passes": {
			admin.State{Ready: true, StoreLost: "cannot reach Redis: no answer", OnStoreLoss: "allow"},
			`
gateway v1 at here, up 0s, state in redis, keys off, 0 requests active
REDIS IS LOST: everything passes, without limits (on_store_loss: allow); cannot reach Redis: no answer`,
		},
		"a part passes": {
			admin.State{Ready: true, StoreLost: "cannot reach Redis: no answer", OnStoreLoss: "share"},
			`
gateway v1 at here, up 0s, state in redis, keys off, 0 requests active
REDIS IS LOST: each gateway lets its part of every limit pass (on_store_loss: share); cannot reach Redis: no answer`,
		},
	} {
		c.state.Version, c.state.Listen, c.state.Store, c.state.Keys = "v1", "here", "redis", "off"
		if got := shown(statusLines(c.state, 0)); got != c.want {
			t.Errorf("%s:%s\nwant:%s", name, got, c.want)
		}
	}
}

// Of thousands of projects, the status shows those that come first, with their shares alone, and says how to see the others.
func TestStatusOfManyProjects(t *testing.T) {
	state := admin.State{Ready: true, Models: []admin.Model{{Name: "m", Usage: &admin.Usage{Used: map[string]int{"max_rpm": 1}}}}}
	for i := range 1000 {
		id := fmt.Sprintf("team-%03d", 999-i)
		state.Projects = append(state.Projects, admin.Project{ID: id, Windows: []admin.Window{}})
		state.Models[0].Shares = append(state.Models[0].Shares, event.ProjectShare{Project: id, Limits: []event.LimitShare{{Name: "max_rpm", Share: 1}}})
	}
	state.Projects[0].Harm = "blocked"
	text := shown(statusLines(state, 0))
	if n := strings.Count(text, "team-"); n != 2*mostProjects || strings.Contains(text, "team-979") {
		t.Errorf("%d names of projects: %s", n, text)
	}
	for _, want := range []string{"team-999  no limits      all calls are denied\nteam-998", "m         and more", "the 20 projects that most need attention. `ratelimit project list` lists all"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// shown returns lines as they are printed where there is no terminal, behind an end of line.
func shown(lines []string) string {
	var text strings.Builder
	console.NewWriter(&text).Lines(lines)
	return "\n" + strings.TrimSuffix(text.String(), "\n")
}

// A subtree is shown as a tree, with dollars, in 80 columns.
func TestSubtreeLines(t *testing.T) {
	dollars := func(name string, used, of float64, reset float64) admin.Window {
		return admin.Window{Name: name, Unit: "nanodollars", Limit: int64(of * 1e9), Remaining: int64((of - used) * 1e9), ResetAfter: reset}
	}
	got := shown(subtreeLines([]admin.Project{
		{ID: "acme", Limit: project.Limit{Weight: 2, MaxShare: 25}, Windows: []admin.Window{dollars("dollars_per_month", 1234.5625, 5000, 14*86400+17*3600+59), {Name: "tokens_per_minute", Unit: "tokens", Limit: 2_000_000, Remaining: 2_000_000 - 1234, ResetAfter: 42}}},
		{ID: "acme/chat"},
		{ID: "acme/search", Windows: []admin.Window{dollars("dollars_per_day", 0, 150, 0), dollars("dollars", 150, 150, 99)}},
		{ID: "acme/search/a-user-with-a-longer-name", Windows: []admin.Window{}},
		{ID: "acme/search-b", Windows: []admin.Window{}},
		{ID: "acme/search/alice", Windows: []admin.Window{{Name: "requests_per_day", Unit: "requests", Limit: 10, Remaining: 7, ResetAfter: 3*3600 + 25*60 + 7}}},
	}, 80))
	want := `
project                       limit                   used         of  resets in
acme                          dollars_per_month  $1,234.56  $5,000.00     14d17h
    weight 2, max_share 25%
                              tokens_per_minute      1,234  2,000,000        42s
  chat                        (no answer)
  search                      dollars_per_day        $0.00    $150.00          -
                              dollars              $150.00    $150.00      never
    a-user-with-a-longer-na…  no limits
    alice                     requests_per_day           3         10      3h25m
  search-b                    no limits`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	shares := shown(innerShareLines([]admin.Project{{
		ID: "acme", Windows: []admin.Window{dollars("dollars_per_day", 6, 20, 99), {Name: "tokens_per_minute", Unit: "tokens", Limit: 6000, Remaining: 400}}, More: true,
		Shares: []admin.InnerShare{
			{ProjectShare: event.ProjectShare{Project: "acme/chat", Waiting: 2, Limits: []event.LimitShare{{Name: "dollars_per_day", Share: 5e9, Used: 2e9, Lent: 1e9}, {Name: "tokens_per_minute", Share: 1500, Used: 1600, Borrowed: 100}}}, Weight: 1},
			{ProjectShare: event.ProjectShare{Project: "acme/search", Limits: []event.LimitShare{{Name: "tokens_per_minute", Share: 4500, Used: 4000}}}, Weight: 3, Priority: 2},
			{ProjectShare: event.ProjectShare{Project: "acme/search", Limits: []event.LimitShare{{Name: "tokens_per_minute", Share: 500, Used: 7}}}, Weight: 1, Own: true},
		},
	}, {ID: "beta", Windows: []admin.Window{dollars("dollars_per_day", 1, 20, 99)}}}, 90))
	wantShares := `
share of  limit              project      weight  waiting   used  share
acme      dollars_per_day    acme/chat         1        2  $2.00  $5.00  lends $1.00
acme      dollars_per_day    and more          -        -      -      -
acme      tokens_per_minute  acme/chat         1        2  1,600  1,500  borrows 100
acme      tokens_per_minute  acme/search       3        -  4,000  4,500  priority 2
acme      tokens_per_minute  acme/search       1        -      7    500  its own calls
acme      tokens_per_minute  and more          -        -      -      -`
	if shares != wantShares {
		t.Errorf("%s\nwant %s", shares, wantShares)
	}
	widest := subtreeLines([]admin.Project{{ID: strings.Repeat("x", 128), Windows: []admin.Window{dollars("dollars_per_month", 9_007_199, 9_007_199, 30*86400+23*3600)}}}, 80)
	if n := console.Width(widest[1]); n > 80 {
		t.Errorf("%d columns: %s", n, widest[1])
	}
}

// Without a gateway, a state says what was used, also while a gateway counts in it.
func TestStatusOfAState(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	state := filepath.Join(t.TempDir(), "state.db")
	s := serveWith(t, "--state", state, "--config", withMock(t, "projects: {acme: {requests_per_minute: 4}, acme/search: {weight: 2}, \"acme/*\": {requests_per_minute: 2}}"))
	if status := s.ask(t, "acme", "any"); status != 200 {
		t.Fatalf("a call: %d", status)
	}
	for i, wanted := range [][]string{{"acme"}, {"1 / 100", "acme"}} { // a gateway saves the quotas of models when it ends
		got := run(t, "status", "--state", state)
		for _, want := range append(wanted, "what is counted in "+state, "requests_per_minute 1 / 4", "25%") {
			if got.code != exitFine || !strings.Contains(got.stdout, want) {
				t.Errorf("%d: there is no %q in %+v", i, want, got)
			}
		}
		if got := run(t, "status", "acme", "--state", state, "--json"); got.code != exitFine || strings.Count(got.stdout, `"project":`) != 2 {
			t.Errorf("%+v", got)
		}
		s.end()
		<-s.code
	}
	if got := run(t, "status", "--state", state+".none"); got.code != exitFailed || !strings.Contains(got.stderr, "there is no state at") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "key", "list", "--state", state); got.stdout != "there are no keys\n" {
		t.Errorf("%+v", got)
	}
}

// A row of the status shows what calls under way have only reserved of a limit beside what is used.
func TestProjectRowTellsWhatIsReserved(t *testing.T) {
	row := projectRow(admin.Project{ID: "p", Windows: []admin.Window{
		{Name: "dollars_per_day", Unit: "nanodollars", Limit: 1e9, Remaining: 4e8, Reserved: 5e8}, {Name: "tokens_per_minute", Unit: "tokens", Limit: 6000, Remaining: 5000},
	}})
	if want := []string{"p", "dollars_per_day $0.60 / $1.00 ($0.50 only reserved)", "60%", "tokens_per_minute 1,000 / 6,000"}; !slices.Equal(row, want) {
		t.Errorf("%q; want %q", row, want)
	}
}
