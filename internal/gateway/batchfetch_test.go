package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// outputFile returns the id of the latest file with results, as a client finds it that lists all files.
func (r *rig) outputFile(t *testing.T) string {
	t.Helper()
	var list struct {
		Data []struct{ ID, Purpose string }
	}
	a := r.do(t, "GET", "/openai/v1/files", "", "X-Project-ID", "acme")
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Data {
		if f.Purpose == "batch_output" {
			return f.ID
		}
	}
	t.Fatalf("no file has results: %s", a.body)
	return ""
}

// However the results of a batch are fetched, they settle it, and they are complete.
func TestResultsSettleHoweverTheyAreFetched(t *testing.T) {
	for _, c := range []struct {
		name, path string // in path, ID stands for the id of the file with the results
		ask        bool   // the client asks how the batch stands, before
		headers    []string
	}{
		{"a range", "/openai/v1/files/ID/content", true, []string{"Range", "bytes=0-"}},
		{"a part", "/openai/v1/files/ID/content", true, []string{"Range", "bytes=0-99", "If-Range", `"x"`}},
		{"another project", "/openai/v1/files/ID/content", true, []string{"X-Project-ID", "other"}},
		{"found in the list of files", "/openai/v1/files/ID/content", false, nil},
		{"found by another project", "/openai/v1/files/ID/content", false, []string{"X-Project-ID", "other"}},
		{"in another case", "/openai/v1/Files/ID/Content", true, nil},
		{"in another case, found", "/openai/v1/FILES//ID/CONTENT/", false, nil},
		{"escaped", "/openai/v1/files/ID/%63ontent", true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, batchRig, mockprovider.Config{})
			id := r.submitFile(t, 3)
			if c.ask {
				r.do(t, "GET", "/openai/v1/Batches/"+id, "", "X-Project-ID", "other")
			}
			headers := c.headers
			if len(headers) == 0 || headers[0] != "X-Project-ID" {
				headers = append(headers, "X-Project-ID", "acme")
			}
			a := r.do(t, "GET", strings.ReplaceAll(c.path, "ID", r.outputFile(t)), "", headers...)
			if a.status != 200 || strings.Count(a.body, "\n") != 3 {
				t.Errorf("the results: %d %s", a.status, a.body)
			}
			if got, want := full-r.dollars(t, "acme"), used(r.provider.Totals()["gpt-4o"]); got != want || !r.noBatches(t) {
				t.Errorf("%v are charged, want %v", got, want)
			}
		})
	}
}

// The results of a batch of Anthropic's settle it however they are fetched.
func TestInlineResultsSettleHoweverTheyAreFetched(t *testing.T) {
	for _, c := range []struct {
		path    string
		headers []string
	}{
		{"/results", []string{"Range", "bytes=0-9", "X-Project-ID", "acme"}},
		{"/Results", []string{"X-Project-ID", "acme"}},
		{"/results", []string{"X-Project-ID", "other"}},
	} {
		r := newRig(t, batchRig, mockprovider.Config{})
		body := `{"requests":[{"custom_id":"a","params":{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}]}`
		path := "/anthropic/v1/messages/batches/" + field(t, r.post(t, "/anthropic/v1/messages/batches", body, "X-Project-ID", "acme"), "id")
		r.do(t, "GET", path, "", "X-Project-ID", "acme")
		r.do(t, "GET", path+c.path, "", c.headers...)
		if got, want := full-r.dollars(t, "acme"), used(r.provider.Totals()["claude-sonnet-4-5"]); got != want {
			t.Errorf("%s %v: %v are charged, want %v", c.path, c.headers, got, want)
		}
	}
}

// A file of results is found although many other batches were submitted after its batch.
func TestResultsOfAnEarlierBatch(t *testing.T) {
	r := newRig(t, strings.Replace(batchRig, "acme: {dollars: 0.01", "acme: {dollars: 1", 1), mockprovider.Config{})
	id := r.submitFile(t, 1)
	file := r.outputFile(t)
	for range 120 {
		r.submitFile(t, 1)
	}
	r.do(t, "GET", "/openai/v1/files/"+file+"/content", "", "X-Project-ID", "acme")
	if open, err := r.batches.of(batchID{"openai", id}.name()); open != nil || err != nil {
		t.Errorf("the batch is not settled: %v", err)
	}
}

// A batch reserves the most that it can cost: as many tokens as its calls allow, or as its models can write.
func TestBatchReservesItsMost(t *testing.T) {
	const body = `{"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}}`
	r := newRig(t, batchRig, mockprovider.Config{})
	for _, c := range []struct {
		call string
		most int // tokens of its answer
	}{
		{body, 16_384},
		{strings.Replace(body, `"messages"`, `"max_tokens":3000,"messages"`, 1), 3000},
		{strings.Replace(body, `"messages"`, `"max_tokens":1000,"n":4,"messages"`, 1), 4000},
	} {
		before := r.dollars(t, "acme")
		a := r.post(t, "/openai/v1/batches", submission(r.uploadFile(t, c.call, "batch")), "X-Project-ID", "acme")
		if a.status != 200 && c.most < 10_000 {
			t.Errorf("%d %s", a.status, a.body)
		}
		reserved := int(before - r.dollars(t, "acme"))
		if most := c.most * 1000; a.status == 200 && (reserved < most || reserved > most+500*500) {
			t.Errorf("%s: %d are reserved, want %d and its prompt", c.call, reserved, most)
		}
		if c.most > 10_000 && (a.status != 400 || !strings.Contains(a.body, "set max_tokens")) {
			t.Errorf("a batch that may cost more than there is: %d %s", a.status, a.body)
		}
	}
}
