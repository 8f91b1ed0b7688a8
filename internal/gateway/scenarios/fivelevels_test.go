package scenarios

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/price"
)

// fiveLevels are budgets at every level of a path, the tightest of them in the middle.
const fiveLevels = priced + `
projects:
  org: {dollars_per_month: 1_000}
  org/team: {dollars_per_day: 40, tokens_per_day: 1_000_000_000}
  org/team/app: {dollars_per_day: 10}   # 333 calls of 3 cents, and a third of one
  "org/team/app/*": {dollars_per_week: 500}
  "org/team/app/alice/*": {dollars: 100, requests_per_hour: 5_000}
`

// A thousand calls at the same moment, through five levels and two gateways on one Redis, fill the
// tightest level to within one call. Every level is charged the same.
func TestFiveLevelsOfDollars(t *testing.T) {
	p := newProvider(t)
	file, state := written(t, fiveLevels, p), lasting["redis"](t)
	a, b := launch(t, file, state), launch(t, file, state)
	c := together(t, p, many, 333, func(int) call { return paid.by("org/team/app/alice/bot") }, &a.gatewayURLs, &b.gatewayURLs)
	if c.got(200)+c.got(429)+c.got(503) != many {
		t.Errorf("answers: %v", c.answers)
	}
	for _, g := range []*process{a, b} {
		g.awaitSettled(t)
		g.spent(t, "org") // a reading comes after the settlements of its gateway, of which the other may not know before
	}
	for _, g := range []*process{a, b} {
		spent := price.Amount(c.got(200)) * cost
		g.wantSpent(t, map[string]price.Amount{
			"org": spent, "org/team": spent, "org/team/app": spent, "org/team/app/alice": spent, "org/team/app/alice/bot": spent,
		})
	}
}
