package scenarios

import (
	"fmt"
	"strings"
	"testing"

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
		if c.got(402) != 90-c.got(200)-c.got(503) {
			t.Errorf("answers: %v", c.answers)
		}
		g.wantSpent(t, price.Amount(c.got(200))*cost, "acme")
		sum := price.Amount(0)
		for i := range 3 {
			d, err := g.Gateway.Projects().PeekCall(t.Context(), project.Call{Project: "acme", Run: fmt.Sprint("run-", i)})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range d.Windows() {
				if s.Window.Name == project.RunDollars {
					sum += price.Amount(s.Window.Count - s.Remaining)
				}
			}
		}
		if want := price.Amount(c.got(200)) * cost; sum != want {
			t.Errorf("the runs have used %v, want %v", sum, want)
		}
	})
}

// The first calls of users that nobody has heard of do not exceed what each user has, even if all
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
		const users = 20
		c := together(t, p, 10*users, 5*users, func(i int) call {
			of := paid.by("acme")
			of.user = fmt.Sprint("user-", i%users)
			return of
		}, &g.gatewayURLs)
		g.wantSpent(t, price.Amount(c.got(200))*cost, "acme")
		if c.got(503) == 0 {
			for i := range users {
				g.wantSpent(t, 5*cost, fmt.Sprint("acme/user-", i))
			}
		}
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
		g.wantSpent(t, 7*cost, "team")
		g.wantSpent(t, 4*cost, "team/alice")
		g.wantSpent(t, 3*cost, "team/bob")
	})
}
