package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// batchRig has a budget in dollars, and models with prices that are easy to add up: of a million
// tokens in a batch, input is half a dollar, and output a dollar.
const batchRig = `
providers:
  openai: {base_url: MOCK}
  anthropic: {base_url: MOCK}
prices:
  gpt-4o: {input: 1, output: 2, batch: {input: 0.50, output: 1}}
  claude-sonnet-4-5: {input: 1, output: 2, batch: {input: 0.50, output: 1}}
projects:
  acme: {dollars: 0.01, tokens_per_minute: 5, tokens_per_day: 1_000_000}
  other: {dollars: 0.01}
`

// uploadFile uploads a file through the gateway, and returns its id.
func (r *rig) uploadFile(t testing.TB, content, purpose string) string {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("purpose", purpose)
	part, _ := form.CreateFormFile("file", "calls.jsonl")
	part.Write([]byte(content))
	form.Close()
	a := r.post(t, "/openai/v1/files", body.String(), "Content-Type", form.FormDataContentType(), "X-Project-ID", "acme")
	return field(t, a, "id")
}

// field returns a field of an answer that is a success.
func field(t testing.TB, a answer, name string) string {
	t.Helper()
	var said map[string]any
	if err := json.Unmarshal([]byte(a.body), &said); err != nil || a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	text, _ := said[name].(string)
	return text
}

// dollars returns what is left of a project's dollars.
func (r *rig) dollars(t *testing.T, id string) price.Amount {
	t.Helper()
	r.settled(t)
	d, err := r.Projects().Peek(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return price.Amount(window(t, d, "dollars").Remaining)
}

func window(t *testing.T, d project.Decision, name string) project.Standing {
	t.Helper()
	for _, s := range d.Windows() {
		if s.Window.Name == name {
			return s
		}
	}
	t.Fatalf("no window %s", name)
	return project.Standing{}
}

// chatLines returns a file of n calls.
func chatLines(n, maxTokens int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"Hello"}]}}`+"\n", i, maxTokens)
	}
	return lines.String()
}

func submission(file string) string {
	return fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file)
}

// noBatches reports whether no batch is open.
func (r *rig) noBatches(t *testing.T) bool {
	t.Helper()
	names, err := r.batches.vault.DueDeposits(t.Context(), time.Now().Add(time.Hour).UnixNano(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(names) == 0
}

const full price.Amount = price.Dollar / 100

// used is what n calls of the mock have cost in a batch, to the nanodollar.
func used(totals mockprovider.Totals) price.Amount {
	return price.Amount(totals.Input*500 + totals.Output*1000)
}

// A batch in a file is charged when it is submitted, and settled when the results are fetched, once.
func TestBatchInFile(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	file := r.uploadFile(t, chatLines(3, 100), "batch")
	batch := field(t, r.post(t, "/openai/v1/batches", submission(file), "X-Project-ID", "acme"), "id")
	reserved := full - r.dollars(t, "acme")
	if reserved < 3*100*1000 {
		t.Errorf("%v are reserved: three answers of 100 tokens may cost more", reserved)
	}
	output := field(t, r.do(t, "GET", "/openai/v1/batches/"+batch, "", "X-Project-ID", "other"), "output_file_id")
	results := "/openai/v1/files/" + output + "/content"
	for range 2 {
		a := r.do(t, "GET", results, "", "X-Project-ID", "acme", "Accept-Encoding", "gzip")
		if a.status != 200 || strings.Count(a.body, "\n") != 3 {
			t.Fatalf("the results: %d %s", a.status, a.body)
		}
		totals := r.provider.Totals()["gpt-4o"]
		if got := full - r.dollars(t, "acme"); got != used(totals) || got == 0 || got >= reserved {
			t.Errorf("%v were used, want %v of %+v", got, used(totals), totals)
		}
	}
}

// A batch of Anthropic's has its calls in the body.
func TestBatchInline(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	var calls []string
	for i := range 2 {
		calls = append(calls, fmt.Sprintf(`{"custom_id":"c%d","params":{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}`, i))
	}
	a := r.post(t, "/anthropic/v1/messages/batches", `{"requests":[`+strings.Join(calls, ",")+`]}`, "X-Project-ID", "acme")
	batch := field(t, a, "id")
	reserved := full - r.dollars(t, "acme")
	if reserved < 2*100*1000 {
		t.Errorf("%v are reserved", reserved)
	}
	path := "/anthropic/v1/messages/batches/" + batch
	if a := r.do(t, "GET", path+"/results", "", "X-Project-ID", "acme"); a.status != 404 || full-r.dollars(t, "acme") != reserved {
		t.Errorf("results that are not there yet: %d, %v are left", a.status, r.dollars(t, "acme"))
	}
	if got, want := field(t, r.do(t, "GET", path, "", "X-Project-ID", "other", "Accept-Encoding", "gzip"), "results_url"), "/v1/messages/batches/"+batch+"/results"; got != want {
		t.Errorf("the results are at %q, want %q: SDKs would go there past the gateway", got, want)
	}
	r.do(t, "GET", path+"/results", "", "X-Project-ID", "acme")
	if got, want := full-r.dollars(t, "acme"), used(r.provider.Totals()["claude-sonnet-4-5"]); got != want || got >= reserved {
		t.Errorf("%v were used, want %v", got, want)
	}
}

// A batch that does not fit into a budget is denied with a clear message, is not sent, and is charged
// nothing. So is one that cannot be read or that the provider refuses.
func TestBatchesThatDoNotPass(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	call := strings.TrimSpace(chatLines(1, 10))
	for _, c := range []struct {
		name, content, purpose string
		status                 int
		want                   string
	}{
		{"too dear", chatLines(200, 100), "batch", 400, "this batch may cost up to $"},
		{"malformed", call + "\n{\n", "batch", 400, "line 2: it must be a JSON object"},
		{"truncated", call + "\n" + call[:len(call)-5], "batch", 400, "line 2: it must be a JSON object"},
		{"no calls", "\n\n", "batch", 400, "the batch has no calls"},
		{"wrong purpose", call, "fine-tune", 400, "purpose"},
		{"no price", strings.Replace(call, "gpt-4o", "nobody-knows-it", 1), "batch", 403, `the price of model \"nobody-knows-it\" is not known`},
		{"no format", strings.Replace(call, "chat/completions", "whatever", 1), "batch", 403, "is not known"},
		{"a long name", strings.Replace(call, "gpt-4o", strings.Repeat("x", 257), 1), "batch", 400, "a model's name of 257 bytes: it may have 256"},
		{"two models", strings.Replace(call, `"model"`, `"model":"a","model"`, 1), "batch", 400, "model"},
		{"two bodies", strings.Replace(call, `"body"`, `"body":{},"body"`, 1), "batch", 400, `has the field \"body\" twice`},
		{"no method", strings.Replace(call, "POST", "GET", 1), "batch", 400, "must be"},
	} {
		a := r.post(t, "/openai/v1/batches", submission(r.uploadFile(t, c.content, c.purpose)), "X-Project-ID", "acme")
		if a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if left := r.dollars(t, "acme"); left != full {
			t.Errorf("%s: %v are left", c.name, left)
		}
	}
	for body, want := range map[string]string{
		`{"input_file_id":"file-none"}`:             "404",
		`{"input_file_id":"../models"}`:             "must be the id of a file",
		`{"input_file_id":"a","Input_File_Id":"b"}`: "it must be",
		`{"input_file_id":"a","input_file_id":"b"}`: "twice",
		`{}`: "must be the id of a file", `[]`: "object", ``: "object",
	} {
		if a := r.post(t, "/openai/v1/Batches/", body, "X-Project-ID", "acme"); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	for body, want := range map[string]string{
		`{"requests":[{"custom_id":"a"}]}`: "requests[0]: it has no", `{"requests":[]}`: "no calls", `{"requests":7}`: "must be a list", `{}`: "must be a list",
	} {
		if a := r.post(t, "/anthropic/v1/messages//batches", body, "X-Project-ID", "acme"); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if left := r.dollars(t, "acme"); left != full || !r.noBatches(t) {
		t.Errorf("%v are left", left)
	}
}

// A batch that was cancelled before it has used anything costs nothing, once its project has seen that.
func TestCancelledBatch(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	batch := field(t, r.post(t, "/openai/v1/batches", submission(r.uploadFile(t, chatLines(2, 50), "batch")), "X-Project-ID", "acme"), "id")
	if r.dollars(t, "acme") == full {
		t.Error("nothing is reserved")
	}
	r.post(t, "/openai/v1/batches/"+batch+"/cancel", "", "X-Project-ID", "acme")
	if left := r.dollars(t, "acme"); left != full || !r.noBatches(t) {
		t.Errorf("%v are left", left)
	}
}

// A batch of Gemini's has its calls in its body, and its results in the operation that clients ask for.
func TestBatchOfGemini(t *testing.T) {
	const rig = "providers: {gemini: {base_url: MOCK, endpoint_prices: {\"POST /v1beta/models/priced:batchGenerateContent\": 0.002}}}\n" +
		"prices: {gemini-t: {input: 1, output: 2, web_searches: 10, batch: 50%, context: 10_000}}\nprojects: {acme: {dollars: 0.6}, other: {dollars: 0.6}}\n"
	r := newRig(t, rig, mockprovider.Config{})
	const path, all = "/gemini/v1beta/models/gemini-t:batchGenerateContent", price.Dollar * 6 / 10
	one := `{"request":{"contents":[{"parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":100},"tools":[{"googleSearch":{}}]}}`
	send := func(requests string) answer {
		return r.post(t, path, `{"batch":{"displayName":"a","inputConfig":{`+requests+`}}}`, "X-Project-ID", "acme")
	}
	name := field(t, send(`"requests":{"requests":[`+one+`,`+one+`]}`), "name")
	if reserved := all - r.dollars(t, "acme"); reserved < 2*(100*1000+10*10_000_000) {
		t.Errorf("%v are reserved", reserved)
	}
	for range 2 { // any project may ask, and the batch is settled once
		r.do(t, "GET", "/gemini/v1beta/"+name, "", "X-Project-ID", "other", "X-Mock", "web-searches=3")
	}
	totals := r.provider.Totals()["gemini-t"]
	want := price.Amount(totals.Input*500+totals.Output*1000) + price.Amount(totals.Units[llm.WebSearches]*10_000_000)
	if got := all - r.dollars(t, "acme"); got != want || totals.Units[llm.WebSearches] != 6 || !r.noBatches(t) {
		t.Errorf("%v were used, want %v of %+v", got, want, totals)
	}
	for requests, words := range map[string]string{
		`"fileName":"files/a"`: "endpoint_prices", `"requests":{"requests":[]}`: "no calls", ``: "one of the fields", `"requests":{"requests":[{}]}`: "requests[0]",
		`"requests":{"requests":[` + one + `]},"fileName":"files/a"`:                                                 "one of the fields",
		`"requests":{"requests":[` + strings.Replace(one, `{"contents"`, `{"model":"models/x","contents"`, 1) + `]}`: "that of the path",
	} {
		if a := send(requests); a.status/100 != 4 || !strings.Contains(a.body, words) {
			t.Errorf("%s: %d %s, want %s", requests, a.status, a.body, words)
		}
	}
	a := r.post(t, "/gemini/v1beta/models/priced:batchGenerateContent", `{"batch":{"input_config":{"file_name":"files/a"}}}`, "X-Project-ID", "acme")
	if got := all - want - r.dollars(t, "acme"); a.status != 200 || got != price.Dollar/500 {
		t.Errorf("with a price for its endpoint: %d %s, %v", a.status, a.body, got)
	}
}

// Images, embeddings and moderations of a batch are settled by what their answers report, and tools by their uses.
func TestMediaInBatches(t *testing.T) {
	for _, c := range []struct {
		path, body, model, mock string
		bill                    func(mockprovider.Totals) int64
	}{
		{"/v1/images/generations", `{"model":"gpt-image-2","prompt":"a cat","n":2}`, "gpt-image-2", "output=50", perToken(2_500, 15_000)},
		{"/v1/embeddings", `{"model":"text-embedding-3-small","input":["one","two"]}`, "text-embedding-3-small", "", perToken(10, 0)},
		{"/v1/responses", `{"model":"gpt-5.4","input":"news?","max_output_tokens":50,"tools":[{"type":"web_search"},{"type":"code_interpreter","container":{"type":"auto"}}]}`, "gpt-5.4", "web-searches=2 code-runs=3", func(t mockprovider.Totals) int64 {
			return int64(t.Input)*1_250 + int64(t.Output)*7_500 + t.Units[llm.WebSearches]*10_000_000 + t.Units[llm.Containers]*30_000_000
		}},
		{"/v1/responses", `{"model":"gpt-5.4","input":"compute","max_output_tokens":50,"tools":[{"type":"shell","environment":{"type":"container_auto","memory_limit":"4g"}}]}`, "gpt-5.4", "code-runs=3", func(t mockprovider.Totals) int64 {
			return int64(t.Input)*1_250 + int64(t.Output)*7_500 + t.Units[llm.Containers]*30_000_000
		}},
		{"/v1/responses", `{"model":"gpt-5.4","input":"a cat","max_output_tokens":50,"prompt":{"id":"pmpt_1"}}`, "gpt-5.4", "images=2 code-runs=1", func(t mockprovider.Totals) int64 { // by gpt-image-2
			return int64(t.Input)*1_250 + int64(t.Output)*7_500 + t.Units[llm.Images]*(20*5_000+500*30_000) + t.Units[llm.Containers]*30_000_000
		}},
		{"/v1/moderations", `{"model":"omni-moderation-latest","input":"a"}`, "", "", func(mockprovider.Totals) int64 { return 0 }},
	} {
		r := newRig(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1000}}\n", mockprovider.Config{})
		lines := ""
		for i := range 2 {
			lines += fmt.Sprintf(`{"custom_id":"c%d","method":"POST","url":%q,"body":%s}`+"\n", i, c.path, c.body)
		}
		id := field(t, r.post(t, "/openai/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"24h"}`, r.uploadFile(t, lines, "batch"), c.path), "X-Project-ID", "acme"), "id")
		if reserved := spentOf(t, r, "acme"); (reserved == 0) != (c.model == "") {
			t.Errorf("%s: %v are reserved", c.path, reserved)
		}
		output := field(t, r.do(t, "GET", "/openai/v1/batches/"+id, "", "X-Project-ID", "acme", "X-Mock", c.mock), "output_file_id")
		results := r.do(t, "GET", "/openai/v1/files/"+output+"/content", "", "X-Project-ID", "acme")
		total := r.provider.Totals()[c.model]
		got := r.usage(t, books.Query{Project: "acme"}).Total
		if want := c.bill(total); int64(spentOf(t, r, "acme")) != want || got[books.Nanodollars] != want || got[books.Beside+llm.WebSearches] != total.Units[llm.WebSearches] || !r.noBatches(t) {
			t.Errorf("%s: %v is spent and %v booked, want %d of %+v; %s", c.path, spentOf(t, r, "acme"), got, want, total, results.body)
		}
	}
}

// Code that a batch of Anthropic's runs costs a container for each call, unless the call has a tool that includes it.
func TestContainersInBatches(t *testing.T) {
	const code, web = `{"type":"code_execution_20250825","name":"code_execution"}`, `{"type":"web_search_20260209","name":"web_search"}`
	for tools, want := range map[[2]string]int64{{code, code}: 2, {code + "," + web, code + "," + web}: 0, {code, code + "," + web}: 1, {code + "," + web, code}: 1} {
		r := newRig(t, "providers: {anthropic: {base_url: MOCK}}\nprojects: {acme: {dollars: 1000}}\n", mockprovider.Config{})
		call := `{"custom_id":"c","params":{"model":"claude-opus-4-5","max_tokens":50,"messages":[{"role":"user","content":"compute"}],"tools":[`
		path := "/anthropic/v1/messages/batches"
		path += "/" + field(t, r.post(t, path, `{"requests":[`+call+tools[0]+`]}},`+strings.Replace(call, `"c"`, `"d"`, 1)+tools[1]+`]}}]}`, "X-Project-ID", "acme"), "id")
		r.do(t, "GET", path, "", "X-Project-ID", "acme", "X-Mock", "code-runs=3")
		r.do(t, "GET", path+"/results", "", "X-Project-ID", "acme")
		total, got := r.provider.Totals()["claude-opus-4-5"], r.usage(t, books.Query{Project: "acme"}).Total
		bill := int64(total.Input)*2_500 + int64(total.Output)*12_500 + want*50_000_000
		if got[books.Beside+llm.Containers] != want || got[books.Nanodollars] != bill || !r.noBatches(t) {
			t.Errorf("%s: %v is booked, want %d containers and %d", tools, got, want, bill)
		}
	}
}
