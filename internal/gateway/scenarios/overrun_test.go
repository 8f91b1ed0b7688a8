package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Calls of one run at the same moment do not exceed its budget. Other runs have their own.
// LiteLLM #34732: calls of a session that come together all pass, because what they cost is
// counted only after them.
func TestRunsStayInTheirBudgets(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, priced+"runs: {dollars: 0.31}\nprojects: {acme: {dollars_per_day: 100}}\n", state, p)
		c := together(t, p, 90, 30, func(i int) call {
			of := paid.by("acme")
			of.run = fmt.Sprint("run-", i%3)
			return of
		}, &g.gatewayURLs)
		if c.got(402)+c.got(429) != 90-c.got(200)-c.got(503) { // 429, while calls under way may give something back
			t.Errorf("answers: %v", c.answers)
		}
		g.wantSpent(t, map[string]price.Amount{"acme": price.Amount(c.got(200)) * cost})
		sum := price.Amount(0)
		for i := range 3 {
			sum += g.spentBy(t, project.Call{Project: "acme", Run: fmt.Sprint("run-", i)}, fmt.Sprint("run run-", i))
		}
		if want := price.Amount(c.got(200)) * cost; sum != want {
			t.Errorf("the runs have used %v, want %v", sum, want)
		}
	})
}

// spentBy returns what the owner of a limit in dollars has used, of those to which a call is charged.
func (g *inProcess) spentBy(t *testing.T, of project.Call, owner string) price.Amount {
	t.Helper()
	d, err := g.Gateway.Projects().PeekCall(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Windows() {
		if s.Owner == owner && s.Window.Unit == project.Dollars {
			return price.Amount(s.Window.Count - s.Remaining)
		}
	}
	t.Fatalf("%s has no limit in dollars", owner)
	return 0
}

// The first calls of unknown users do not exceed what each user has, even if all
// of them come at the same moment.
// LiteLLM #40095: such calls pass without a budget until the user is known.
func TestFirstCallsOfUnknownUsers(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, priced+`
projects:
  acme: {dollars_per_month: 100}
  "acme/*": {dollars_per_day: 0.16}   # five calls, and a third of one
`, state, p)
		const users = 10
		c := together(t, p, 10*users, 5*users, func(i int) call {
			of := paid.by("acme")
			of.user = fmt.Sprint("user-", i%users)
			return of
		}, &g.gatewayURLs)
		spent := map[string]price.Amount{"acme": price.Amount(c.got(200)) * cost}
		for i := range users {
			if c.got(503) == 0 {
				spent[fmt.Sprint("acme/user-", i)] = 5 * cost
			}
		}
		g.wantSpent(t, spent)
	})
}

// On a new gateway, the budgets of a user and of its team both hold, and a refusal says which of
// them is used up.
// LiteLLM #26672: calls pass although the key or its user has spent more than it may.
func TestUserAndTeamHaveBudgets(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, priced+`
projects:
  team: {dollars: 0.16}
  "team/*": {dollars: 0.10}
`, state, p)
		of := paid.by("team")
		refused := func(user string, after int, owner string) {
			t.Helper()
			of.user = user
			for range after {
				of.must(t, &g.gatewayURLs, 200)
			}
			if said := of.must(t, &g.gatewayURLs, 402); !strings.Contains(said.body, owner) || said.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s is refused with %s", user, said.body)
			}
		}
		refused("alice", 4, `project \"team/alice\" has`) // 8.4 cents, and no 3 more
		refused("bob", 3, `project \"team\" has`)         // the team has 14.7 cents
		g.wantSpent(t, map[string]price.Amount{"team": 7 * cost, "team/alice": 4 * cost, "team/bob": 3 * cost})
	})
}

// A new key does not exceed its budget either, however many calls there are at the same moment.
func TestKeysStayInTheirBudgets(t *testing.T) {
	upstream := secretFile(t, "sk-upstream")
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, replaced(priced, "{base_url: MOCK,", "{base_url: MOCK, key: {file: "+upstream+"},")+`
keys: required
projects: {team: {dollars: 100}}
`, state, p)
		key, err := (&admin.Client{Base: g.admin, HTTP: client}).CreateKey(t.Context(), admin.NewKey{Project: "team", Limit: project.Limit{DollarsPerDay: 16 * price.Dollar / 100}})
		if err != nil {
			t.Fatal(err)
		}
		c := together(t, p, 40, 5, func(i int) call {
			of := paid
			of.key, of.user = key.Secret, fmt.Sprint("user-", i%4) // the key's budget is for all of its users
			return of
		}, &g.gatewayURLs)
		spent := price.Amount(c.got(200)) * cost
		g.wantSpent(t, map[string]price.Amount{"team": spent})
		if got := g.spentBy(t, project.Call{Project: "team", Key: key.ID}, "key "+key.ID); got != spent {
			t.Errorf("the key has used %v, want %v", got, spent)
		}
	})
}
