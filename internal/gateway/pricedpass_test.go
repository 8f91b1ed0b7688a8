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
		if a := r.post(t, "/openai/v1/images/generations", "{}", "X-Project-ID", "acme"); a.status != answer.status {
			t.Errorf("%d: %d %s", answer.status, a.status, a.body)
		}
		if want += answer.costs; spentOf(t, r, "acme") != want {
			t.Errorf("%d: %v is spent, want %v", answer.status, spentOf(t, r, "acme"), want)
		}
	}
	dead := newRigBefore(t, strings.Replace(priced, "MOCK", `"http://127.0.0.1:1"`, 1)+"unpriced: {request: 0.002}\n", nil)
	if a := dead.post(t, "/openai/v1/images/generations", "{}", "X-Project-ID", "acme"); a.status/100 != 5 || spentOf(t, dead, "acme") != 0 {
		t.Errorf("not sent: %d %s, and %v is spent", a.status, a.body, spentOf(t, dead, "acme"))
	}
	if sum := r.usage(t, books.Query{Project: "acme"}); sum.Total[books.Requests] != 4 || sum.Total[books.Nanodollars] != int64(want) {
		t.Errorf("%v is booked, want 4 requests and %v", sum.Total, want)
	}
}

// The 403 for a path that has no price names the setting that gives it one. Once, it named prices as
// well, which have the prices of models alone.
func TestUnpricedPassSaysWhatHelps(t *testing.T) {
	const images = "/openai/v1/images/generations"
	dear := strings.Replace(priced, "prices:\n", "prices:\n  gpt-image-1: {request: 0.04}\n", 1)
	says := `the price of requests to this path is not known, and project \"acme\" has a limit in dollars: ` +
		`the configuration must say what each of them costs, as in unpriced: {request: 0.04}, or unpriced: free; prices of models do not change this`
	for unpriced, want := range map[string]int{"deny": 403, "{input: 1}": 403, "{request: 0.001}": 200, "free": 200} {
		r := newRigBefore(t, dear+"unpriced: "+unpriced+"\n", newSeen())
		if a := r.post(t, images, `{"model":"gpt-image-1"}`, "X-Project-ID", "acme"); a.status != want || want == 403 && !strings.Contains(a.body, says) {
			t.Errorf("unpriced: %s: %d %s", unpriced, a.status, a.body)
		}
	}
}
