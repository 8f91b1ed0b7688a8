package scenarios

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Clients that leave in the middle of a stream free their connections to the provider and
// their concurrency slots at once. They are charged what was reserved. Other clients are not
// affected.
func TestHalfLeave(t *testing.T) {
	t.Run("memory", func(t *testing.T) { halfLeave(t, config.Memory) })
	t.Run("sqlite", func(t *testing.T) { halfLeave(t, lasting["sqlite"](t)) })
}

func halfLeave(t *testing.T, state string) {
	const n = 200
	c, p := newStreamer(t)
	g := start(t, `
providers:
  openai: {base_url: MOCK, models: {m: {max_concurrent: 200, max_tpd: 1_000_000}}}
defaults: {max_wait: 0s}
server: {read_on: 1s}
`, state, p)
	of := call{model: "m", stream: true, output: 800}
	all := listen(t, &g.gatewayURLs, n, of)
	c.watch()
	full := g.Gateway.Models().Stats("m")
	if full.Concurrent != n || full.TPD < n*of.output || g.Gateway.Active() != n {
		t.Fatalf("while all are open: %+v", full)
	}
	call{model: "m"}.must(t, &g.gatewayURLs, 429)
	for i := range n / 2 {
		all[2*i].Close()
	}
	testkit.Eventually(t, "half of them have ended", func() bool { return g.Gateway.Active() == n/2 && c.gone.Load() == n/2 })
	if half := g.Gateway.Models().Stats("m"); half.Concurrent != n/2 || half.TPD < n*of.output {
		t.Errorf("after half have left: %+v", half)
	}
	more := listen(t, &g.gatewayURLs, n/2, of)
	c.finish()
	for i := range n / 2 {
		all[2*i+1].whole(t)
		more[i].whole(t)
	}
	testkit.Eventually(t, "all have ended", func() bool { return g.Gateway.Active() == 0 })
	if end := g.Gateway.Models().Stats("m"); end.Concurrent != 0 || end.TPD < n/2*of.output || end.TPD > n/2*(of.output+200) {
		t.Errorf("at the end: %+v", end)
	}
}
