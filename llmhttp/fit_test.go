package llmhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Near the end of a budget, Fit lowers max_tokens to what is left, in place of the denial that there is without it.
func TestFit(t *testing.T) {
	each, err := price.New(price.Terms{Rates: price.Rates{Input: price.Dollar, Output: 10 * price.Dollar}})
	if err != nil {
		t.Fatal(err)
	}
	table := price.Known().With(price.Override{Model: model, Price: each, Maxima: llm.Maxima{Context: 100_000, Output: 16_000}})
	for name, c := range map[string]struct {
		options []llmhttp.Option
		body    string
		signed  bool
		status  int
	}{
		"a chat":              {[]llmhttp.Option{llmhttp.Fit(0)}, `{"model":"some-model","max_tokens":8192,"messages":[]}`, false, 200},
		"a stream":            {[]llmhttp.Option{llmhttp.Fit(0)}, `{"model":"some-model","stream":true,"messages":[]}`, false, 200},
		"a stream left alone": {[]llmhttp.Option{llmhttp.Fit(0), llmhttp.LeaveStreams()}, `{"model":"some-model","stream":true,"messages":[]}`, false, 200},
		"more at least":       {[]llmhttp.Option{llmhttp.Fit(2000)}, `{"model":"some-model","max_tokens":8192,"messages":[]}`, false, 400},
		"without Fit":         {nil, `{"model":"some-model","max_tokens":8192,"messages":[]}`, false, 400},
		"a signed request":    {[]llmhttp.Option{llmhttp.Fit(0)}, `{"model":"some-model","max_tokens":8192,"messages":[]}`, true, 400},
	} {
		t.Run(name, func(t *testing.T) {
			allowed := 0
			w := llmhttptest.New(t, mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
				allowed = c.MaxOutput
				return mockprovider.Reply{Output: 1 << 20}
			}}, llmhttptest.Ample)
			projects, err := w.Limiter.NewProjects(project.Config{Default: &project.Limit{Dollars: price.Dollar / 100}}) // 1,000 tokens of answers
			if err != nil {
				t.Fatal(err)
			}
			client := w.Through(append(c.options, llmhttp.Prices(table, nil), llmhttp.Projects(projects, func(*http.Request) string { return "p" }))...)
			request, _ := http.NewRequest("POST", "https://api.openai.com/v1/chat/completions", strings.NewReader(c.body))
			if c.signed {
				request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x")
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			fit := response.Header.Get("X-Ratelimit-Fit")
			if response.StatusCode != c.status || (fit == "") != (c.status != 200) {
				t.Fatalf("%d, fitted to %q: %s", response.StatusCode, fit, text)
			}
			if c.status != 200 {
				return
			}
			d, err := projects.Peek(t.Context(), "p")
			if err != nil {
				t.Fatal(err)
			}
			if s := d.Windows()[0]; s.Used > s.Window.Count || s.Used < int64(allowed)*10_000 || allowed < 256 || !strings.Contains(string(text), `"length"`) {
				t.Errorf("%v is used with %d tokens, and the answer is %.300s", price.Amount(s.Used), allowed, text)
			}
		})
	}
}

func TestFitPanics(t *testing.T) {
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "Fit: least is -1") {
			t.Errorf("it panics with %q", said)
		}
	}()
	llmhttp.Fit(-1)
}
