package scenarios

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
)

// priced begins configurations with budgets: a call of m with a maximum of 100 tokens
// of output reserves 3 cents.
const priced = `
providers:
  openai: {base_url: MOCK, models: {m: {max_rpm: 1_000_000}}}
prices:
  m: {input: 0, output: 100, request: 0.02}
defaults: {max_wait: 0s}
users: {header: X-User-ID}
`

const (
	reserved = price.Dollar * 3 / 100
	cost     = price.Dollar * 21 / 1000 // of a call that has 10 tokens of output
)

// paid is a call that reserves 3 cents, and costs 2.1.
var paid = call{model: "m", output: 100, mock: "output=10"}

// by returns the call as one of a project.
func (c call) by(project string) call {
	c.project = project
	return c
}

// spent returns what a project has used of its first limit in dollars, by the admin API, once the store answers.
func (g *gatewayURLs) spent(t *testing.T, id string) price.Amount {
	t.Helper()
	var p admin.Project
	testkit.Eventually(t, "the store answers", func() bool {
		if err := json.Unmarshal([]byte(g.fetch(t, "/v1/projects/"+url.PathEscape(id)).body), &p); err != nil {
			t.Fatal(err)
		}
		return p.Windows != nil
	})
	for _, w := range p.Windows {
		if strings.HasPrefix(w.Name, "dollars") {
			return price.Amount(w.Limit - w.Remaining)
		}
	}
	t.Fatalf("%s has no limit in dollars: %+v", id, p)
	return 0
}

// awaitSettled waits until no call is under way.
func (g *gatewayURLs) awaitSettled(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "no call is under way", func() bool { return g.gauge(t, "ratelimit_gateway_active") == 0 })
}

// wantSpent waits until no call is under way, and expects what projects have used, once other gateways have settled
// theirs too.
func (g *gatewayURLs) wantSpent(t *testing.T, want map[string]price.Amount) {
	t.Helper()
	g.awaitSettled(t)
	for id, want := range want {
		testkit.Eventually(t, fmt.Sprintf("%s has used %v", id, want), func() bool { return g.spent(t, id) == want })
	}
}

// together sends n calls at the same moment, expects that so many pass as want says, and
// waits for their ends. None of them ends before all are decided on.
func together(t *testing.T, p *provider, n, want int, of func(i int) call, at ...*gatewayURLs) *burst {
	t.Helper()
	before := len(p.arrivals(""))
	p.block()
	c := sendTogether(t, n, of, at...)
	testkit.Eventually(t, "all are decided on", func() bool {
		now, _ := p.busy()
		return c.answered()+now == n
	})
	p.release()
	c.wait(t)
	came, late := len(p.arrivals(""))-before, c.got(503) // on a busy machine, Redis may not answer in time
	if came > want || came < want && late == 0 || c.got(200) != came {
		t.Errorf("%d of %d have come, want %d; answers: %v", came, n, want, c.answers)
	}
	return c
}
