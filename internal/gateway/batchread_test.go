package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/project"
)

// A batch of a project, a key or a run that has nothing left is denied before its file is fetched.
func TestNothingIsFetchedForADeniedBatch(t *testing.T) {
	const rules = `
providers: {openai: {base_url: MOCK}}
prices: {gpt-4o: {input: 1, output: 2}}
runs: {calls: 1}
projects:
  requests: {requests_per_day: 1}
  tokens: {tokens_per_day: 10}
  dollars: {dollars_per_day: 1}
  total: {dollars: 1}
  run: {}
`
	var fetched atomic.Int64
	r := newRigBefore(t, rules, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/content") {
			fetched.Add(1)
		}
		io.WriteString(w, chatLines(1, 10))
	}))
	for _, c := range []struct {
		name   string
		use    project.Call
		status int
		want   string
	}{
		{"requests", project.Call{}, 429, "0 of its 1 requests a day left"},
		{"tokens", project.Call{Estimated: 10}, 429, "0 of its 10 tokens a day left"},
		{"dollars", project.Call{Dollars: 1_000_000_000}, 429, "a day left"},
		{"total", project.Call{Dollars: 1_000_000_000}, 402, "left"},
		{"run", project.Call{Run: "r1"}, 402, "0 of its 1 requests in total left"},
	} {
		c.use.Project = c.name
		res, d, err := r.Projects().Take(t.Context(), c.use)
		if err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v", c.name, d, err)
		}
		res.Commit(-1, -1)
		a := r.post(t, "/openai/v1/batches", submission("in"), "X-Project-ID", c.name, "X-Run-ID", "r1")
		if a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if last := r.last(t); last.Outcome != Denied || last.Limit == "" {
			t.Errorf("%s: the record is %+v", c.name, last)
		}
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d files were fetched for batches that were denied", n)
	}
}

// A batch that may wait until something is left again is read while it waits.
func TestABatchThatMayWaitIsFetched(t *testing.T) {
	fetched := make(chan struct{}, 1)
	r := newRigBefore(t, `
providers: {openai: {base_url: MOCK}}
projects: {acme: {requests_per_minute: 1, max_wait: 5m}}
`, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched <- struct{}{}
		io.WriteString(w, chatLines(1, 10))
	}))
	if _, err := r.Projects().Allow(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	request, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/openai/v1/batches", strings.NewReader(submission("in")))
	request.Header.Set("X-Project-ID", "acme")
	var left sync.WaitGroup
	left.Go(func() { http.DefaultClient.Do(request) })
	<-fetched
	leave()
	left.Wait()
}

// A project has only few files read at once, and does not keep other projects from having theirs read.
func TestFewFilesAreReadAtOnce(t *testing.T) {
	fetched, answer := make(chan struct{}), make(chan struct{})
	provider := mockprovider.New(mockprovider.Config{})
	r := newRigBefore(t, batchRig, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/content") {
			fetched <- struct{}{}
			<-answer
		}
		provider.ServeHTTP(w, r)
	}))
	file := r.uploadFile(t, chatLines(1, 10), "batch")
	var submitted sync.WaitGroup
	submit := func(project string) {
		submitted.Go(func() {
			if a := r.post(t, "/openai/v1/batches", submission(file), "X-Project-ID", project); a.status != 200 {
				t.Errorf("%s: %d %s", project, a.status, a.body)
			}
		})
		<-fetched
	}
	for range maxReadOfOne {
		submit("acme")
	}
	if a := r.post(t, "/openai/v1/batches", submission(file), "X-Project-ID", "acme"); a.status != 503 || !strings.Contains(a.body, "files of other batches are being read") {
		t.Errorf("one too many: %d %s", a.status, a.body)
	}
	submit("other")
	close(answer)
	submitted.Wait()
	submit("acme")
	submitted.Wait()
}
