package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
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
