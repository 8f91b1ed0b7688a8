package scenarios

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
)

// A batch that was sent through one gateway is settled when its results are fetched through another.
func TestGatewaysShareBatches(t *testing.T) {
	const yaml = `
providers: {anthropic: {base_url: MOCK}}
prices:
  m: {input: 1, output: 2, batch: 50%}
projects: {acme: {dollars: 1}}
`
	ask := func(t *testing.T, g *inProcess, method, path, body string) string {
		request, err := http.NewRequestWithContext(t.Context(), method, g.url+"/anthropic/v1/messages/batches"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Project-ID", "acme")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, response.StatusCode, text)
		}
		return string(text)
	}
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		a, b := start(t, yaml, state, p), start(t, yaml, state, p)
		var batch struct{ ID string }
		said := ask(t, a, "POST", "", `{"requests":[{"custom_id":"c","params":{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}]}`)
		if err := json.Unmarshal([]byte(said), &batch); err != nil {
			t.Fatal(err)
		}
		if n := b.spent(t, "acme"); n < 100*1000 {
			t.Errorf("%v are reserved", n)
		}
		ask(t, b, "GET", "/"+batch.ID, "")
		used := p.Totals()["m"]
		want := price.Amount(used.Input*500 + used.Output*1000)
		testkit.Eventually(t, "the batch is settled", func() bool {
			ask(t, b, "GET", "/"+batch.ID+"/results", "") // again and again: b may not have heard of the batch yet
			return b.spent(t, "acme") == want
		})
	})
}
