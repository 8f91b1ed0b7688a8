package scenarios

import (
	"encoding/json"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

const siblings = `
providers:
  openai: {base_url: MOCK, models: {m: {max_rpm: 1_000_000}}}
prices:
  m: {input: 0, output: 0, request: 0.001}
users: {header: X-User-ID}
defaults: {max_wait: 0s}
projects:
  acme:          {dollars_per_month: 5_000, tokens_per_minute: 200_000}
  acme/search:   {dollars_per_month: 2_000, dollars_per_day: 150, weight: 3}
  acme/search/*: {dollars_per_day: 20}    # each user of it
  acme/chat:     {}
`

// Projects below another share its tokens a minute by weight, and a denial says whose limit it is.
func TestSiblingsShareTheLimitAboveThem(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		g := start(t, siblings, state, newProvider(t))
		search := call{model: "m", project: "acme/search", user: "alice", output: 10_000}
		chat := call{model: "m", project: "acme/chat", output: 10_000}
		for range 5 { // which is a quarter of the minute
			search.must(t, &g.gatewayURLs, 200)
			chat.must(t, &g.gatewayURLs, 200)
		}
		search.must(t, &g.gatewayURLs, 200)
		denied := chat.must(t, &g.gatewayURLs, 429)
		for _, want := range []string{`project \"acme/chat\" has a share of 50,000 of the 200,000 tokens a minute of project \"acme\" while 2 projects share them, and has used 50,`, "try again in ", `"type":"tokens"`} {
			if !strings.Contains(denied.body, want) {
				t.Errorf("%s\nwant %s", denied.body, want)
			}
		}
		search.user = "bob" // who has half of what search has
		for range 7 {
			search.must(t, &g.gatewayURLs, 200)
		}

		var why admin.Explanation
		said := g.fetch(t, "/v1/decisions/"+denied.header.Get("X-Gateway-Request-Id"))
		if err := json.Unmarshal([]byte(said.body), &why); err != nil {
			t.Fatal(err)
		}
		if d := why.Decision; d.Limit != "tokens_per_minute_share" || d.Owner != "acme" {
			t.Errorf("the limit %q of %q has denied it", d.Limit, d.Owner)
		}
	})
}
