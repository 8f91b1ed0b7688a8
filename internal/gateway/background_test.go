package gateway

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// backgroundRig has a model whose input costs a dollar for a million tokens, and whose output costs ten.
const backgroundRig = `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 100, max_tpm: 1000000, max_concurrent: 50}}}
  azure: {base_url: MOCK, kind: azure}
  gemini: {base_url: MOCK}
prices: {gpt-4o: {input: 1, output: 10}}
projects:
  acme: {dollars: 0.01, tokens_per_day: 1_000_000, max_concurrent: 40}
  other: {dollars: 0.01}
`

const inBackground = `{"model":"gpt-4o","background":true,"max_output_tokens":500,"input":"Hello"}`

// usedAlone is what the calls of the mock have cost.
func usedAlone(totals mockprovider.Totals) price.Amount {
	return price.Amount(totals.Input*1000 + totals.Output*10_000)
}

// However the response of a call in the background is fetched, its call is charged the most that it can cost before,
// and what it has cost after.
func TestBackground(t *testing.T) {
	const path = "/openai/v1/responses"
	for _, c := range []struct {
		name    string
		create  string
		fetch   []string // paths of requests for the response with an ID, one after another
		headers []string
	}{
		{"polled", path, []string{path + "/ID", path + "/ID", path + "/ID", path + "/ID"}, nil},
		{"streamed", path, []string{path + "/ID?stream=true"}, nil},
		{"streamed from an event on", path, []string{path + "/ID?stream=true&starting_after=4"}, nil},
		{"by another project", path, []string{path + "/ID", path + "/ID"}, []string{"X-Project-ID", "other"}},
		{"a part", path, []string{path + "/ID", path + "/ID"}, []string{"Range", "bytes=0-20", "Accept-Encoding", "gzip", "X-Project-ID", "acme"}},
		{"in another case", path, []string{"/openai/v1/Responses/ID", "/openai/V1//RESPONSES/ID/"}, nil},
		{"cancelled too late", path, []string{path + "/ID", path + "/ID", path + "/ID/cancel"}, nil},
		{"an interaction of Gemini's", "/gemini/v1beta/interactions", []string{"/gemini/v1beta/interactions/ID", "/gemini/v1beta/Interactions/ID"}, nil},
		{"Azure", "/azure/openai/v1/responses", []string{"/azure/openai/v1/responses/ID?api-version=preview", "/azure/openai/v1/responses/ID"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, backgroundRig, mockprovider.Config{})
			body := inBackground
			if strings.Contains(c.create, "interactions") {
				body = strings.Replace(body, `"max_output_tokens":500`, `"generation_config":{"max_output_tokens":500}`, 1)
			}
			id := field(t, r.post(t, c.create, body, "X-Project-ID", "acme"), "id")
			reserved := full - r.dollars(t, "acme")
			if most := price.Amount(500 * 10_000); reserved < most || reserved > most+500*1000 {
				t.Errorf("%v are reserved, want %v and the prompt", reserved, most)
			}
			headers := c.headers
			if headers == nil {
				headers = []string{"X-Project-ID", "acme"}
			}
			for i, path := range c.fetch {
				method := "GET"
				if strings.HasSuffix(path, "/cancel") {
					method = "POST"
				}
				a := r.do(t, method, strings.Replace(path, "ID", id, 1), "", headers...)
				if a.status != 200 {
					t.Fatalf("%d %s", a.status, a.body)
				}
				if i == 0 && len(c.fetch) > 1 && full-r.dollars(t, "acme") != reserved {
					t.Errorf("a response in progress has settled the call: %s", a.body)
				}
			}
			want := usedAlone(r.provider.Totals()["gpt-4o"])
			if got := full - r.dollars(t, "acme"); got != want || got == 0 || !r.noBatches(t) {
				t.Errorf("%v are charged, want %v", got, want)
			}
			sum, err := r.Usage(t.Context(), books.Query{Project: "acme"})
			if err != nil || sum.Total[books.Requests] != 1 || sum.Total[books.Nanodollars] != int64(want) {
				t.Errorf("the books have %+v, %v", sum, err)
			}
		})
	}
}

// A call in the background whose response nobody fetches, or that was cancelled before it reported usage, stays charged
// the most that it can cost.
func TestBackgroundWithoutResponse(t *testing.T) {
	r := newRig(t, backgroundRig, mockprovider.Config{})
	id := field(t, r.post(t, "/openai/v1/responses", inBackground, "X-Project-ID", "acme"), "id")
	reserved := full - r.dollars(t, "acme")
	if a := r.post(t, "/openai/v1/responses/"+id+"/cancel", "", "X-Project-ID", "acme"); a.status != 200 || !strings.Contains(a.body, `"status":"cancelled"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := full - r.dollars(t, "acme"); got != reserved {
		t.Errorf("cancelled: %v are charged; %v were reserved", got, reserved)
	}
	if err := r.batches.closeThese(t.Context(), time.Now().Add(time.Hour), 10); err != nil || !r.noBatches(t) {
		t.Fatalf("the call is open, or %v", err)
	}
	sum, err := r.Usage(t.Context(), books.Query{Project: "acme"})
	if got := full - r.dollars(t, "acme"); got != reserved || err != nil || sum.Total[books.Nanodollars] != int64(reserved) {
		t.Errorf("closed: %v are charged; %v were reserved; the books have %+v, %v", got, reserved, sum, err)
	}
}

// Calls in the background never cost more than the budget, however long their answers are.
func TestBackgroundWithinTheBudget(t *testing.T) {
	script := func(mockprovider.Call) mockprovider.Reply { return mockprovider.Reply{Output: 16_384} }
	r := newRig(t, strings.Replace(backgroundRig, "dollars: 0.01, tokens", "dollars_per_day: 1, tokens", 1), mockprovider.Config{Script: script})
	var ids []string
	for range 30 {
		a := r.post(t, "/openai/v1/responses", `{"model":"gpt-4o","background":true,"input":"Hello"}`, "X-Project-ID", "acme")
		if a.status == 200 {
			ids = append(ids, field(t, a, "id"))
		}
	}
	for i, id := range ids {
		query := ""
		if i == 0 || !testing.Short() {
			query = "?stream=true" // of as many events as there are tokens
		}
		r.do(t, "GET", "/openai/v1/responses/"+id+query, "", "X-Project-ID", "other")
	}
	if got := usedAlone(r.provider.Totals()["gpt-4o"]); got > price.Dollar || len(ids) != 6 {
		t.Errorf("%d of 30 calls pass, and cost %v of $1", len(ids), got)
	}
	a := r.post(t, "/openai/v1/responses", `{"model":"gpt-4o","background":true,"input":"Hello"}`, "X-Project-ID", "other")
	if a.status != 400 || !strings.Contains(a.body, "it would pass with max_output_tokens of at most ") {
		t.Errorf("a call that may cost more than there is: %d %s", a.status, a.body)
	}
}

// A stream in the background that its client reads to the end is settled by it. One that its client leaves goes on, and
// is settled when it is fetched.
func TestBackgroundStream(t *testing.T) {
	body := strings.Replace(inBackground, "{", `{"stream":true,`, 1)
	r := newRig(t, backgroundRig, mockprovider.Config{})
	r.post(t, "/openai/v1/responses", body, "X-Project-ID", "acme")
	if got, want := full-r.dollars(t, "acme"), usedAlone(r.provider.Totals()["gpt-4o"]); got != want || !r.noBatches(t) {
		t.Errorf("%v are charged, want %v", got, want)
	}

	script := func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Fault: mockprovider.FaultStall, After: 5}
	}
	r = newRig(t, backgroundRig+"server: {read_on: 10ms}\n", mockprovider.Config{Script: script})
	ctx, leave := context.WithCancel(t.Context())
	request, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/openai/v1/responses", strings.NewReader(body))
	request.Header.Set("X-Project-ID", "acme")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAtLeast(response.Body, make([]byte, 4096), 300); err != nil {
		t.Fatal(err)
	}
	leave()
	r.settled(t)
	if got := full - r.dollars(t, "acme"); got < 500*10_000 || r.noBatches(t) {
		t.Errorf("%v are charged after the client has left", got)
	}
	a := r.do(t, "GET", "/openai/v1/responses/resp_mock1?stream=true", "", "X-Project-ID", "other")
	if got := full - r.dollars(t, "acme"); got >= 500*10_000 || got == 0 || !r.noBatches(t) {
		t.Errorf("%v are charged after the response was fetched: %s", got, a.body)
	}
}

// What the tools of a call in the background have cost is settled as that of any other call: by the provider's word,
// and one container however often code has run in it, whether the tools are in the body or in a stored prompt. Limits
// in these units get back what was not used.
func TestBackgroundTools(t *testing.T) {
	yaml := strings.NewReplacer("output: 10}", "output: 10, web_searches: 10, containers: 0.03}", "acme: {dollars: 0.01", "acme: {dollars: 1, web_searches_per_day: 100").Replace(backgroundRig)
	for _, asks := range []string{`"tools":[{"type":"web_search"},{"type":"code_interpreter","container":{"type":"auto"}}]`, `"prompt":{"id":"pmpt_1"}`} {
		r := newRig(t, yaml, mockprovider.Config{})
		body := strings.Replace(inBackground, "{", "{"+asks+",", 1)
		id := field(t, r.post(t, "/openai/v1/responses", body, "X-Project-ID", "acme", "X-Mock", "web-searches=2 code-runs=3"), "id")
		for range 2 {
			r.do(t, "GET", "/openai/v1/responses/"+id, "", "X-Project-ID", "acme")
		}
		want := usedAlone(r.provider.Totals()["gpt-4o"]) + 2*price.Dollar/100 + 3*price.Dollar/100
		if got := price.Dollar - r.dollars(t, "acme"); got != want || !r.noBatches(t) {
			t.Errorf("%s: %v are charged, want %v", asks, got, want)
		}
		d, err := r.Projects().Peek(t.Context(), "acme")
		if err != nil || window(t, d, "web_searches_per_day").Remaining != 98 {
			t.Errorf("%s: %+v, %v", asks, d.Windows(), err)
		}
		sum := r.usage(t, books.Query{Project: "acme"}).Total
		if sum[books.Nanodollars] != int64(want) || sum[books.Beside+llm.WebSearches] != 2 || sum[books.Beside+llm.Containers] != 1 {
			t.Errorf("%s: the books have %+v", asks, sum)
		}
	}
}

// The response of a call in the background that no client fetches is fetched by the gateway, with its own account: by
// the next gateway on the same state, if the first has ended. It is asked for less and less often, and not any more once
// it has ended. A call that was made with a client's account is left alone.
func TestBackgroundThatNobodyFetches(t *testing.T) {
	t.Setenv("KEY", "sk-own")
	yaml := "state: " + filepath.Join(t.TempDir(), "state.db") + "\n" + strings.Replace(backgroundRig, "openai: {base_url: MOCK,", "openai: {base_url: MOCK, key: {env: KEY},", 1)
	provider := mockprovider.New(mockprovider.Config{})
	var mu sync.Mutex // guards asked and status
	var asked []string
	status := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet {
			provider.ServeHTTP(w, r)
			return
		}
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Authorization"))
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		provider.ServeHTTP(w, r)
	})
	id := ""
	t.Run("a gateway that ends", func(t *testing.T) {
		r := newRigBefore(t, yaml, handler)
		id = field(t, r.post(t, "/openai/v1/responses?api-version=preview&key=k", inBackground, "X-Project-ID", "acme"), "id")
		r.post(t, "/azure/openai/v1/responses", inBackground, "X-Project-ID", "other", "Api-Key", "sk-client")
	})
	r := newRigBefore(t, yaml, handler)
	reserved := full - r.dollars(t, "acme")
	begun := time.Now()
	for _, step := range []struct {
		minutes, status, asked int // asked is how often the response was asked for until then
		charged                price.Amount
	}{
		{0, 0, 0, reserved},   // too early
		{2, 0, 1, reserved},   // in progress
		{2, 0, 1, reserved},   // it waits a minute
		{3, 503, 2, reserved}, // the provider does not answer
		{4, 0, 2, reserved},   // it waits two minutes
		{5, 0, 3, -1},         // it has ended
		{500, 0, 3, -1},
	} {
		mu.Lock()
		status = step.status
		mu.Unlock()
		r.batches.poll(t.Context(), begun.Add(time.Duration(step.minutes)*time.Minute))
		mu.Lock()
		want := step.charged
		if want < 0 {
			// The other call is still open, and has no output yet.
			want = price.Amount(provider.Totals()["gpt-4o"].Input/2*1000 + provider.Totals()["gpt-4o"].Output*10_000)
		}
		if got := full - r.dollars(t, "acme"); got != want || len(asked) != step.asked {
			t.Errorf("after %d minutes %v are charged, want %v; asked: %q, want %d", step.minutes, got, want, asked, step.asked)
		}
		mu.Unlock()
	}
	for _, a := range asked {
		if want := "/v1/responses/" + id + "?api-version=preview Bearer sk-own"; a != want {
			t.Errorf("asked for %q, want %q", a, want)
		}
	}
	if sum := r.usage(t, books.Query{Project: "acme"}); sum.Total[books.Requests] != 1 || r.noBatches(t) {
		t.Errorf("the books have %+v, or the client's own call is not open", sum)
	}
}

// Calls whose responses the gateway cannot fetch do not keep it from fetching those of others, however many there are.
func TestBackgroundBesideCallsOfClients(t *testing.T) {
	t.Setenv("KEY", "sk-own")
	r := newRig(t, strings.Replace(backgroundRig, "openai: {base_url: MOCK,", "openai: {base_url: MOCK, key: {env: KEY},", 1), mockprovider.Config{})
	id := field(t, r.post(t, "/azure/openai/v1/responses", inBackground, "X-Project-ID", "other", "Api-Key", "sk-client"), "id")
	_, note, err := r.batches.vault.FindDeposit(t.Context(), responseName("azure", id))
	if err != nil || note == nil {
		t.Fatal("the client's own call is not open:", err)
	}
	for i := range maxPolled {
		if err := r.batches.vault.Deposit(t.Context(), responseName("azure", strconv.Itoa(i)), nil, note); err != nil {
			t.Fatal(err)
		}
	}
	id = field(t, r.post(t, "/openai/v1/responses", inBackground, "X-Project-ID", "acme"), "id")
	begun := time.Now()
	for minutes := range 10 {
		r.batches.poll(t.Context(), begun.Add(time.Duration(minutes)*time.Minute))
	}
	if open := r.batches.find(responseName("openai", id)); open != nil {
		t.Error("the response was not fetched")
	}
}
