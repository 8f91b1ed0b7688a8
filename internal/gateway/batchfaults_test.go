package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
)

// batchProvider has one file, submits every batch as "b", whose results are in the file "out", and
// answers as its fields say.
type batchProvider struct {
	status  int    // of the answer to a submission; 0: 200
	batch   string // the answer to a submission
	results string
	length  int // of the results, if they break off
}

func (p *batchProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/files/in/content":
		io.WriteString(w, chatLines(2, 100))
	case r.Method == "POST":
		if p.status != 0 {
			w.WriteHeader(p.status)
		}
		io.WriteString(w, p.batch)
	case r.URL.Path == "/v1/files/out/content":
		if p.length > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(p.length))
		}
		io.WriteString(w, p.results)
	default:
		io.WriteString(w, `{"object":"list","data":[{"id":"a","status":"completed","output_file_id":"x"},{"id":"b","status":"completed","output_file_id":"out"}]}`)
	}
}

const (
	submitted  = `{"id":"b","status":"validating"}`
	goodResult = `{"response":{"status_code":200,"body":{"object":"chat.completion","model":"gpt-4o-2024","usage":{"prompt_tokens":1000,"completion_tokens":1}}}}` + "\n"
	goodCost   = price.Amount(1000*500 + 1*1000)
)

// Only results that were all read lower what a batch is charged. An answer that does not say whether
// there is a batch leaves it charged.
func TestFaultsOfBatches(t *testing.T) {
	const most = 2 * 200 * 1000 // more than two short calls may cost
	for _, c := range []struct {
		name     string
		provider batchProvider
		open     bool
		want     func(charged price.Amount) bool
	}{
		{"good", batchProvider{batch: submitted, results: goodResult}, false, func(n price.Amount) bool { return n == goodCost }},
		{"no end of line", batchProvider{batch: submitted, results: goodResult + strings.TrimSpace(goodResult)}, false, func(n price.Amount) bool { return n == 2*goodCost }},
		{"all failed", batchProvider{batch: submitted, results: `{"response":{"status_code":429,"body":{}}}`}, false, func(n price.Amount) bool { return n == 0 }},
		{"a line is malformed", batchProvider{batch: submitted, results: "{\n"}, false, func(n price.Amount) bool { return n > 2*100*1000 && n < most }},
		{"a line is malformed, and another costs more", batchProvider{batch: submitted, results: "{\n" + goodResult}, false, func(n price.Amount) bool { return n == goodCost }},
		{"no usage", batchProvider{batch: submitted, results: `{"response":{"status_code":200,"body":{"object":"chat.completion","model":"gpt-4o"}}}`}, false, func(n price.Amount) bool { return n > 2*100*1000 && n < most }},
		{"broken off", batchProvider{batch: submitted, results: goodResult, length: 1000}, true, func(n price.Amount) bool { return n > 2*100*1000 && n < most }},
		{"the provider has refused it", batchProvider{status: 400, batch: `{"error":{}}`}, false, func(n price.Amount) bool { return n == 0 }},
		{"the provider has failed", batchProvider{status: 500, batch: `{"error":{}}`}, false, func(n price.Amount) bool { return n > 2*100*1000 && n < most }},
		{"no id", batchProvider{batch: `{}`}, false, func(n price.Amount) bool { return n > 2*100*1000 && n < most }},
	} {
		r := newRigBefore(t, batchRig, &c.provider)
		r.post(t, "/openai/v1/batches", submission("in"), "X-Project-ID", "acme")
		r.do(t, "GET", "/openai/v1/batches?limit=10", "", "X-Project-ID", "acme")
		request, _ := http.NewRequest("GET", r.url+"/openai/v1/files/out/content", nil)
		request.Header.Set("X-Project-ID", "acme")
		if response, err := http.DefaultClient.Do(request); err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		if charged := full - r.dollars(t, "acme"); !c.want(charged) || r.noBatches(t) == c.open {
			t.Errorf("%s: %v are charged, open: %v", c.name, charged, !r.noBatches(t))
		}
	}
}

// A batch that did not reach the provider costs nothing.
func TestBatchIsNotSent(t *testing.T) {
	var fetched atomic.Bool
	r := newRigBefore(t, batchRig, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched.Store(true)
		if r.Method == "GET" {
			panic(http.ErrAbortHandler)
		}
		t.Errorf("%s was sent", r.URL)
	}))
	if a := r.post(t, "/openai/v1/batches", submission("in"), "X-Project-ID", "acme"); a.status != 502 || !fetched.Load() || r.dollars(t, "acme") != full {
		t.Errorf("%d %s, %v are left", a.status, a.body, r.dollars(t, "acme"))
	}
}

// A line of the file that is longer than max_body is refused, as such a call is.
func TestHugeLineInBatch(t *testing.T) {
	r := newRig(t, batchRig+"\nserver: {max_body: 1MiB}\n", mockprovider.Config{})
	line := strings.Replace(chatLines(1, 10), "Hello", strings.Repeat("Hello ", 1<<18), 1)
	a := r.post(t, "/openai/v1/batches", submission(r.uploadFile(t, chatLines(1, 10)+line, "batch")), "X-Project-ID", "acme")
	if a.status != 400 || !strings.Contains(a.body, "line 2 is longer than 1048576 bytes") || r.dollars(t, "acme") != full {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A batch is charged to everything above its project, its run and its model's line of the books, and
// results of several models are each priced by their own.
func TestOwnersOfBatches(t *testing.T) {
	r := newRig(t, batchRig+`
  acme/search: {}
runs: {dollars: 0.02, calls: 1}
`, mockprovider.Config{})
	headers := []string{"X-Project-ID", "acme/search", "X-Run-ID", "r1"}
	body := `{"requests":[{"custom_id":"a","params":{"model":"claude-sonnet-4-5","max_tokens":50,"messages":[]}},{"custom_id":"b","params":{"model":"claude-opus-4-5","max_tokens":50,"messages":[]}}]}`
	id := field(t, r.post(t, "/anthropic/v1/messages/batches", body, headers...), "id")
	if a := r.post(t, "/anthropic/v1/messages/batches", body, headers...); a.status != 402 {
		t.Errorf("a second batch of the run: %d %s", a.status, a.body)
	}
	r.do(t, "GET", "/anthropic/v1/messages/batches/"+id, "", "X-Project-ID", "acme/search")
	r.do(t, "GET", "/anthropic/v1/messages/batches/"+id+"/results", "", "X-Project-ID", "acme/search")
	totals := r.provider.Totals()
	opus := totals["claude-opus-4-5"]
	want := used(totals["claude-sonnet-4-5"]) + price.Amount(opus.Input*2500+opus.Output*12500) // half of 5 and 25 dollars
	if got := full - r.dollars(t, "acme"); got != want {
		t.Errorf("%v were used, want %v", got, want)
	}
	r.settled(t)
	sum, err := r.Usage(t.Context(), books.Query{Project: "acme", By: []books.Dimension{books.ByProject, books.ByModel}})
	if err != nil {
		t.Fatal(err)
	}
	row := books.Row{Owner: books.Owner{Project: "acme/search", Model: "anthropic/" + books.Other}}
	row.Amounts[books.Requests], row.Amounts[books.Nanodollars] = 2, int64(want)
	row.Amounts[books.Input], row.Amounts[books.Output] = int64(2*opus.Input), int64(2*opus.Output)
	denied := books.Row{Owner: books.Owner{Project: "acme/search"}}
	denied.Amounts[books.Denied] = 1 // the second batch
	testkit.Equal(t, "the books", []books.Row{denied, row}, sum.Rows)
}

// A batch of Gemini's that has succeeded is charged what was reserved, unless its operation has the result of every call.
func TestResultsOfGeminiThatAreMissing(t *testing.T) {
	const yaml = "providers: {gemini: {base_url: MOCK}}\nprices: {gemini-t: {input: 1, output: 2, context: 10_000}}\nprojects: {acme: {dollars: 0.6}}\n"
	const one = `{"request":{"contents":[{"parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":100}}}`
	const result = `{"response":{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}}`
	const failed = `{"error":{"code":3,"message":"the call has failed"}}`
	for output, lowers := range map[string]bool{
		`{}`: false,
		`{"inlinedResponses":{"inlinedResponses":[]}}`:                              false,
		`{"inlinedResponses":{"inlinedResponses":[` + result + `]}}`:                false,
		`{"inlinedResponses":{"inlinedResponses":[` + result + `,{}]}}`:             false,
		`{"inlinedResponses":{"inlinedResponses":[` + result + `,` + failed + `]}}`: true,
	} {
		r := newRigBefore(t, yaml, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == "POST" {
				io.WriteString(w, `{"name":"batches/b","metadata":{"state":"BATCH_STATE_PENDING"}}`)
				return
			}
			io.WriteString(w, `{"name":"batches/b","metadata":{"state":"BATCH_STATE_SUCCEEDED"},"response":`+output+`}`)
		}))
		r.post(t, "/gemini/v1beta/models/gemini-t:batchGenerateContent", `{"batch":{"inputConfig":{"requests":{"requests":[`+one+`,`+one+`]}}}}`, "X-Project-ID", "acme")
		reserved := r.dollars(t, "acme")
		r.do(t, "GET", "/gemini/v1beta/batches/b", "", "X-Project-ID", "acme")
		if left := r.dollars(t, "acme"); (left > reserved) != lowers || !r.noBatches(t) {
			t.Errorf("%s: %v are left, and before %v", output, left, reserved)
		}
	}
}
