package gateway

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/price"
)

// A request that is no call of a model costs what unpriced says, and is in the books. It costs nothing
// if the provider refuses it or cannot be reached.
func TestPricedPass(t *testing.T) {
	var status atomic.Int64
	r := newRigBefore(t, priced+"unpriced: {request: 0.002}\n", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	want := price.Amount(0)
	for _, answer := range []struct {
		status int
		costs  price.Amount
	}{{200, 2_000_000}, {400, 0}, {429, 0}, {500, 2_000_000}} {
		status.Store(int64(answer.status))
		if a := r.post(t, "/openai/v1/whatever", "{}", "X-Project-ID", "acme"); a.status != answer.status {
			t.Errorf("%d: %d %s", answer.status, a.status, a.body)
		}
		if want += answer.costs; spentOf(t, r, "acme") != want {
			t.Errorf("%d: %v is spent, want %v", answer.status, spentOf(t, r, "acme"), want)
		}
	}
	dead := newRigBefore(t, strings.Replace(priced, "MOCK", `"http://127.0.0.1:1"`, 1)+"unpriced: {request: 0.002}\n", nil)
	if a := dead.post(t, "/openai/v1/whatever", "{}", "X-Project-ID", "acme"); a.status/100 != 5 || spentOf(t, dead, "acme") != 0 {
		t.Errorf("not sent: %d %s, and %v is spent", a.status, a.body, spentOf(t, dead, "acme"))
	}
	if sum := r.usage(t, books.Query{Project: "acme"}); sum.Total[books.Requests] != 4 || sum.Total[books.Nanodollars] != int64(want) {
		t.Errorf("%v is booked, want 4 requests and %v", sum.Total, want)
	}
}

// The 403 for a path that has no price names the settings that give it one. Once, it named prices as
// well, which have the prices of models alone.
func TestUnpricedPassSaysWhatHelps(t *testing.T) {
	const images = "/openai/v1/whatever"
	dear := strings.Replace(priced, "prices:\n", "prices:\n  gpt-image-1: {request: 0.04}\n", 1)
	says := `the gateway does not read POST /v1/whatever, and project \"acme\" has a limit in dollars, and nothing says what such a request costs: ` +
		`the configuration must have endpoint_prices: {\"POST /v1/whatever\": 0.02} for the provider \"openai\", with the price of a request in dollars, ` +
		`or unknown_endpoints: count (each costs what unpriced says of a request) or pass (each costs nothing)`
	for unpriced, want := range map[string]int{"deny": 403, "{input: 1}": 403, "{request: 0.001}": 200, "free": 200} {
		r := newRigBefore(t, dear+"unpriced: "+unpriced+"\n", newSeen())
		if a := r.post(t, images, `{"model":"gpt-image-1"}`, "X-Project-ID", "acme"); a.status != want || want == 403 && !strings.Contains(a.body, says) {
			t.Errorf("unpriced: %s: %d %s", unpriced, a.status, a.body)
		}
	}
}

// unknown_endpoints says what becomes of requests that the gateway does not read, and a price in endpoint_prices is
// enough to use one under any limit. What certainly costs nothing passes in any case.
func TestUnknownEndpoints(t *testing.T) {
	const whatever = "/openai/v1/whatever/7"
	budgets := "projects: {acme: {dollars: 10}, counted: {tokens_per_day: 1_000}, free: {requests_per_day: 9}}\n"
	for _, c := range []struct {
		settings           string
		acme, counted, one int          // the status for a project with dollars, with tokens, and without either
		spent              price.Amount // by acme
	}{
		{"", 403, 403, 200, 0},
		{", unknown_endpoints: pass", 200, 200, 200, 0},
		{", unknown_endpoints: count", 403, 200, 200, 0},
		{", unknown_endpoints: count}, unpriced: {request: 0.25", 200, 200, 200, price.Dollar / 4},
		{"}, unpriced: {request: 0.25", 200, 403, 200, price.Dollar / 4},
		{", unknown_endpoints: deny", 403, 403, 403, 0},
		{", unknown_endpoints: deny}, unpriced: {request: 0.25", 403, 403, 403, 0},
		{`, endpoint_prices: {"POST /v1/whatever/*": 0.02}`, 200, 200, 200, price.Dollar / 50},
		{`, unknown_endpoints: deny, endpoint_prices: {"PUT /v1/whatever/7": 1, "* /v1/whatever/*": 0}`, 200, 200, 200, 0},
		{`, endpoint_prices: {"PUT /v1/whatever/7": 1, "POST /v1/whatever": 1}`, 403, 403, 200, 0},
	} {
		settings, unpriced, _ := strings.Cut(c.settings, "}, ")
		if unpriced != "" {
			unpriced += "}\n"
		}
		upstream := newSeen()
		r := newRigBefore(t, budgets+"providers: {openai: {base_url: MOCK"+settings+"}}\n"+unpriced, upstream)
		for owner, want := range map[string]int{"acme": c.acme, "counted": c.counted, "free": c.one} {
			a := r.post(t, whatever, "{}", "X-Project-ID", owner)
			if a.status != want || want == 403 && !strings.Contains(a.body, `endpoint_prices: {\"POST /v1/whatever/7\": 0.02} for the provider \"openai\"`) {
				t.Errorf("%s: %s: %d %s; want %d", c.settings, owner, a.status, a.body, want)
			}
			for _, free := range []string{"POST /openai/v1/moderations", "GET /openai/v1/whatever/7", "POST /openai/v1/files"} {
				method, path, _ := strings.Cut(free, " ")
				if a := r.do(t, method, path, "", "X-Project-ID", owner); a.status != 200 {
					t.Errorf("%s: %s of %s: %d %s", c.settings, free, owner, a.status, a.body)
				}
			}
		}
		if spent := spentOf(t, r, "acme"); spent != c.spent {
			t.Errorf("%s: %v is spent, want %v", c.settings, spent, c.spent)
		}
	}
}
