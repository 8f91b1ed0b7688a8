package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const (
	mostRequests = 10
	mostTokens   = 3000
	many         = 1000 // calls that come at the same moment
)

// small has limits that are far below many calls.
const small = `
providers:
  openai:
    base_url: MOCK
    models:
      requests: {max_rpm: 10, max_tpm: 3000}
      tokens: {max_rpm: 10, max_tpm: 3000}
defaults: {max_wait: 0s}
projects:
  requests: {requests_per_minute: 10, tokens_per_minute: 3000}
  tokens: {requests_per_minute: 10, tokens_per_minute: 3000}
`

// overshoots are calls on small limits, and how many of them pass. A call of which the
// estimator knows nothing reserves its prompt and an eighth more, 16 tokens, and its
// max_tokens.
var overshoots = []struct {
	name string
	call call
	want int
}{
	{"requests of a model", call{model: "requests", output: 100, text: "hello"}, mostRequests},
	{"tokens of a model", call{model: "tokens", output: 480, text: "hello"}, 5},
	{"requests of a project", call{model: "any", project: "requests", output: 100, text: "hello"}, mostRequests},
	{"tokens of a project", call{model: "other", project: "tokens", output: 480, text: "hello"}, 5},
}

// Of many calls at the same moment, exactly as many pass as the limits allow, with every
// store.
func TestOvershoot(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, small, state, p)
		for _, c := range overshoots {
			t.Run(c.name, func(t *testing.T) { overshoot(t, p, c.call, c.want, &g.gatewayURLs) })
		}
	})
}

// overshoot sends many calls at the same moment to gateways that share a limit, and expects
// how many pass.
func overshoot(t *testing.T, p *provider, of call, want int, at ...*gatewayURLs) {
	calls := testkit.Rounds(150, many)
	before, spent := len(p.arrivals("")), p.tokens(of.model)
	p.block()
	c := sendTogether(t, calls, func(int) call { return of }, at...)
	testkit.Eventually(t, "all are decided on", func() bool {
		now, _ := p.busy()
		return c.answered()+now == calls
	})
	p.release()
	c.wait(t)
	came, used := len(p.arrivals(""))-before, p.tokens(of.model)-spent
	late := c.got(503) // on a busy machine, Redis may not answer in time
	if came > want || came < want && late == 0 || c.got(200) != came || came+c.got(429)+late != calls {
		t.Errorf("%d of %d have come, want %d; answers: %v", came, calls, want, c.answers)
	}
	if used > mostTokens || used < came*of.output {
		t.Errorf("%d tokens were used, of at most %d", used, mostTokens)
	}
}

// All waiting calls get their turn, and no more at a time than the limit allows.
func TestWaiting(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, `
providers:
  openai: {base_url: MOCK, models: {m: {max_concurrent: 7}}}
defaults: {max_wait: 5m}
`, state, p)
		p.block()
		c := sendTogether(t, 40, func(i int) call { return call{model: "m", project: fmt.Sprint("p", i%5), stream: i%2 == 0} }, &g.gatewayURLs)
		testkit.Eventually(t, "all others wait", func() bool {
			now, _ := p.busy()
			return now == 7 && g.Gateway.Models().Waiting("m") == 33
		})
		p.release()
		c.wait(t)
		if _, peak := p.busy(); c.got(200) != 40 || peak != 7 {
			t.Errorf("answers: %v, %d at a time", c.answers, peak)
		}
		testkit.Eventually(t, "all slots are free", func() bool { return g.Gateway.Models().Stats("m").Concurrent == 0 })
	})
}

// Waiting calls are served by the weights of their projects, and those of one project in the
// order in which they came.
func TestFairness(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, `
providers:
  openai: {base_url: MOCK, models: {m: {max_concurrent: 1}}}
defaults: {max_wait: 5m}
projects:
  heavy: {weight: 3}
  light: {weight: 1}
`, state, p)
		const each = 12
		p.block()
		first := sendTogether(t, 1, func(int) call { return call{model: "m", text: "first"} }, &g.gatewayURLs)
		testkit.Eventually(t, "the first is there", func() bool { now, _ := p.busy(); return now == 1 })
		var crowds []*burst
		for i := range 2 * each {
			project := []string{"light", "heavy"}[i%2]
			crowds = append(crowds, sendTogether(t, 1, func(int) call {
				return call{model: "m", project: project, text: fmt.Sprintf("%s %02d", project, i)}
			}, &g.gatewayURLs))
			testkit.Eventually(t, "it waits", func() bool { return g.Gateway.Models().Waiting("m") == i+1 })
		}
		p.release()
		first.wait(t)
		for _, c := range crowds {
			c.wait(t)
		}
		inTurn(t, p.arrivals("m")[1:], 2*each)
	})
}

// inTurn expects that of every four calls, three are of the heavy project.
func inTurn(t *testing.T, came []arrival, want int) {
	t.Helper()
	last, served, order := map[string]string{}, map[string]int{}, []string{}
	for _, a := range came {
		project, _, _ := strings.Cut(a.text, " ")
		if a.text <= last[project] {
			t.Errorf("%q comes after %q", a.text, last[project])
		}
		last[project] = a.text
		served[project]++
		order = append(order, a.text)
		if n := len(order); n <= 16 { // calls of both projects wait
			if heavy := served["heavy"]; heavy*4 < (n-2)*3 || heavy*4 > (n+2)*3 {
				t.Errorf("of the first %d, %d are of the heavy project", n, heavy)
			}
		}
	}
	if len(order) != want || t.Failed() {
		t.Errorf("%d of %d have come: %q", len(order), want, order)
	}
}
