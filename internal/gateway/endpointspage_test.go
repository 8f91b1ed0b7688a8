package gateway

import (
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/price"
)

var updateEndpoints = flag.Bool("update", false, "write docs/reference/endpoints.md")

// storagePrices is an example of prices for training and storage, which TestStoragePrices tries.
const storagePrices = `providers:
  openai:
    endpoint_prices:
      "POST /v1/fine_tuning/jobs": 200              # two hours of reinforcement at $100
      "POST /v1/vector_stores/*/search": 0.01       # 1 GB × 1 day × $0.10, if ten searches a day keep a store alive
      "POST /v1/vector_stores*": 3                  # 1 GB × 30 days × $0.10: a store without an end
`

// The example in the documents lets training and storage pass under a budget, at its prices, and no more than the budget
// has room for.
func TestStoragePrices(t *testing.T) {
	r := newRigBefore(t, strings.Replace(storagePrices, "openai:\n", "openai:\n    base_url: MOCK\n", 1)+"projects: {acme: {dollars: 250}}\n", newSeen())
	want := price.Amount(0)
	for _, c := range []struct {
		path  string
		costs price.Amount
	}{
		{"/v1/fine_tuning/jobs", 200 * price.Dollar},
		{"/v1/vector_stores", 3 * price.Dollar},
		{"/v1/vector_stores/vs_1", 3 * price.Dollar},
		{"/v1/vector_stores/vs_1/files", 3 * price.Dollar},
		{"/v1/vector_stores/vs_1/file_batches", 3 * price.Dollar},
		{"/v1/vector_stores/vs_1/search", price.Dollar / 100},
	} {
		a := r.post(t, "/openai"+c.path, `{"file_ids":["file-1"],"expires_after":null}`, "X-Project-ID", "acme")
		if want += c.costs; a.status != http.StatusOK || spentOf(t, r, "acme") != want {
			t.Errorf("%s: %d %s, and %v is spent, want %v", c.path, a.status, a.body, spentOf(t, r, "acme"), want)
		}
	}
	if a := r.post(t, "/openai/v1/fine_tuning/jobs", "{}", "X-Project-ID", "acme"); a.status != http.StatusPaymentRequired || spentOf(t, r, "acme") != want {
		t.Errorf("a second job: %d %s, and %v is spent", a.status, a.body, spentOf(t, r, "acme"))
	}
}

// whyPriced says why endpoints need a price in the configuration.
const whyPriced = `
## Why some need a price

- **Reinforcement fine-tuning** is billed by the hour, and nothing in a request bounds the hours: OpenAI chooses what it
  leaves out, and a number of epochs or a ` + "`compute_multiplier`" + ` says nothing of the time that an epoch takes. The
  tokens of models that grade come on top. Other jobs need a price for the trained tokens of their model
  (` + "`trained_tokens`" + `), which the built-in table has for a few alone.
- **Vector stores without an end**: what is kept in them is billed by the gigabyte and the day, and nothing says when
  somebody will delete it. Those that were made with ` + "`expires_after`" + ` pass. A request that changes when a store ends
  needs a price, too.
- **Edits and extensions of a video in the form itself**: nobody says how long that is. Those of a stored video pass.
- **Batches of embeddings** and **Vertex's batches** have their calls in files, some of them in a bucket or a database.
- The others have no format that the gateway reads.

Anthropic limits ` + "`count_tokens`" + ` apart from messages, by a number of requests a minute. No header of it is known. It
counts as a request of the project, and not towards the quota of the model.

## What to set for training and storage

A price holds for each request, whatever its file is, so set what the largest one may cost. It replaces what the gateway
finds out by itself: with a price of ` + "`POST /v1/fine_tuning/jobs`" + `, no job is settled by its trained tokens, and with one
of ` + "`POST /v1/vector_stores*`" + `, no store by its bytes. For a store, multiply the gigabytes that a request may add by the
days until it is deleted. The gateway checks neither the size nor the days. What was charged stays charged.

` + "```yaml\n" + storagePrices + "```" + `

The first line that matches counts. The amounts are examples; OpenAI's price list has the prices of today.
`

// checkEndpointsPage compares the table in the documents with what was found.
func checkEndpointsPage(t *testing.T, table string) {
	t.Helper()
	const page = "../../docs/reference/endpoints.md"
	text := `# Endpoints under a budget

Written by a test of ` + "`internal/gateway`" + ` that calls each of them with a budget in dollars, and compares what is booked
with what the provider bills; do not edit. The same endpoints of other servers with OpenAI's API are read in the same
way. [prices.md](../prices.md) says what the units cost, and [gateway.md](../gateway.md#batches) how batches of these
endpoints are charged.

| provider | endpoint | model | counted in | passes, and is billed exactly |
|---|---|---|---|---|
` + table + whyPriced
	if *updateEndpoints {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("%s is not what was found: run the test with -update (%v)", page, err)
	}
}
