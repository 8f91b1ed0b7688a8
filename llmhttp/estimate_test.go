package llmhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/project"
)

// prompted are calls of each provider, with a model and a prompt, that allow the longest
// answer.
var prompted = []struct {
	provider  llm.Provider
	url, body string
	free      bool // the provider does not count cached input
}{
	{dialect.OpenAI, "https://api.openai.com/v1/chat/completions", `{"model":%q,"messages":[{"role":"user","content":%q}]}`, false},
	{dialect.Azure, "https://here.openai.azure.com/openai/v1/responses", `{"model":%q,"input":%q}`, false},
	{dialect.Anthropic, "https://api.anthropic.com/v1/messages", `{"model":%q,"max_tokens":100000,"messages":[{"role":"user","content":%q}]}`, true},
	{dialect.Gemini, "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", `{"model":%q,"messages":[{"role":"user","content":%q}]}`, false},
	{dialect.Vertex, "https://us-central1-aiplatform.googleapis.com/v1/projects/p/endpoints/openapi/chat/completions", `{"model":%q,"messages":[{"role":"user","content":%q}]}`, false},
	{dialect.Groq, "https://api.groq.com/openai/v1/chat/completions", `{"model":%q,"messages":[{"role":"user","content":%q}]}`, true},
	{dialect.Mistral, "https://api.mistral.ai/v1/chat/completions", `{"model":%q,"messages":[{"role":"user","content":%q}]}`, false},
	{dialect.OpenRouter, "https://openrouter.ai/api/v1/completions", `{"model":%q,"prompt":%q}`, false},
	{dialect.Ollama, "http://localhost:11434/api/chat", `{"model":%q,"messages":[{"role":"user","content":%q}]}`, false},
	{dialect.Compatible, "http://localhost:8000/v1/embeddings", `{"model":%q,"input":%q}`, false},
}

// ceilings are limits on tokens, each alone. A limit on input denies a call whose prompt is
// larger; a limit on output denies none, since nobody knows how long an answer will be.
var ceilings = []struct {
	name    string
	input   bool
	project bool
	set     func(*ratelimit.ModelQuota, *project.Limit, int)
}{
	{"MaxTPM", true, false, func(q *ratelimit.ModelQuota, _ *project.Limit, n int) { q.MaxTPM = n }},
	{"MaxTPD", true, false, func(q *ratelimit.ModelQuota, _ *project.Limit, n int) { q.MaxTPD = n }},
	{"MaxInputTPM", true, false, func(q *ratelimit.ModelQuota, _ *project.Limit, n int) { q.MaxInputTPM = n }},
	{"MaxOutputTPM", false, false, func(q *ratelimit.ModelQuota, _ *project.Limit, n int) { q.MaxOutputTPM = n }},
	{"TokensPerMinute", true, true, func(_ *ratelimit.ModelQuota, p *project.Limit, n int) { p.TokensPerMinute = n }},
	{"TokensPerHour", true, true, func(_ *ratelimit.ModelQuota, p *project.Limit, n int) { p.TokensPerHour = n }},
	{"TokensPerDay", true, true, func(_ *ratelimit.ModelQuota, p *project.Limit, n int) { p.TokensPerDay = n }},
	{"TokensPerMonth", true, true, func(_ *ratelimit.ModelQuota, p *project.Limit, n int) { p.TokensPerMonth = n }},
	{"all quotas", true, false, func(q *ratelimit.ModelQuota, _ *project.Limit, n int) {
		*q = ratelimit.ModelQuota{MaxTPM: n, MaxTPD: n, MaxInputTPM: n, MaxOutputTPM: n}
	}},
	{"all windows", true, true, func(_ *ratelimit.ModelQuota, p *project.Limit, n int) {
		*p = project.Limit{TokensPerMinute: n, TokensPerHour: n, TokensPerDay: n, TokensPerMonth: n}
	}},
}

// A single answer, or prompt, that was larger than a limit makes no later call impossible.
func TestEnormousAnswer(t *testing.T) {
	const most, enormous = 10_000, 60_000
	x := wire{"", whole.url, `{"model":"some-model","input":"Hi"}`}
	for _, c := range ceilings {
		for _, used := range []llm.Tokens{{Input: 10, Output: enormous}, {Input: enormous, Output: 10}} {
			t.Run(fmt.Sprintf("%s/%d", c.name, used.Output), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					quota, limit := ratelimit.ModelQuota{MaxRPM: 1000}, project.Limit{}
					c.set(&quota, &limit, most)
					limiter := llmhttptest.NewLimiter(t, quota, nil)
					projects, err := limiter.NewProjects(project.Config{Default: &limit})
					if err != nil {
						t.Fatal(err)
					}
					next := used
					base := tripper(func(r *http.Request) (*http.Response, error) {
						text := fmt.Sprintf(`{"usage":{"input_tokens":%d,"output_tokens":%d}}`, next.Input, next.Output)
						next = llm.Tokens{Input: 10, Output: 10}
						return answering(200, nil, text)(r)
					})
					client := &http.Client{Transport: llmhttp.New(base, limiter, llmhttp.MaxWait(0),
						llmhttp.Projects(projects, func(*http.Request) string { return "p" }))}
					for i := range 6 {
						if status, err := x.read(t.Context(), client); status != 200 || err != nil {
							t.Fatalf("call %d: %d, %v", i, status, err)
						}
						time.Sleep(24 * time.Hour)
					}
				})
			})
		}
	}
}

// After many equal calls, a call reserves about what such calls use. Each project learns
// from its own calls.
func TestEstimatesAreLearned(t *testing.T) {
	for _, u := range prompted {
		if strings.HasSuffix(u.url, "/embeddings") { // generate no output
			continue
		}
		t.Run(string(u.provider), func(t *testing.T) {
			says := map[string]int{"chatty": 120, "terse": 20}
			w := llmhttptest.New(t, mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
				return mockprovider.Reply{Output: says[c.Header.Get("X-Project-Id")]}
			}}, ample)
			projects, err := w.Limiter.NewProjects(project.Config{Default: &project.Limit{}})
			if err != nil {
				t.Fatal(err)
			}
			client := w.Through(llmhttp.Projects(projects, func(r *http.Request) string { return r.Header.Get("X-Project-Id") }))
			for _, name := range []string{"chatty", "terse"} {
				for range 20 {
					req := wire{"", u.url, fmt.Sprintf(u.body, model, "Hi")}.request(t.Context(), t)
					req.Header.Set("X-Project-Id", name)
					response, err := client.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
				var last, used int
				for _, e := range w.Events.All() {
					switch {
					case e.Project != name:
					case e.Kind == event.Settled:
						used = e.Used.Input + e.Used.Output - e.Used.FreeInput - e.Used.FreeOutput
					case e.Kind == event.Admitted:
						last = int(e.Estimated)
					}
				}
				if used == 0 || last < used || last > used*3/2 {
					t.Errorf("%s: the last call reserved %d tokens, and used %d", name, last, used)
				}
			}
			w.Settled()
		})
	}
}

// The estimator learns from a call once, however often the body is read to its end and
// closed.
func TestEstimatesAreLearnedOnce(t *testing.T) {
	estimated := func(times int) (last int64) {
		events := &llmhttptest.Recorder{}
		transport := llmhttp.New(answering(200, nil, wholeAnswer), llmhttptest.NewLimiter(t, ample, events))
		for range 3 {
			response, err := transport.RoundTrip(wire{"", whole.url, `{"model":"some-model","input":"Hi"}`}.request(t.Context(), t))
			if err != nil {
				t.Fatal(err)
			}
			for range times {
				io.Copy(io.Discard, response.Body)
			}
			for range times {
				response.Body.Close()
			}
		}
		for _, e := range events.All() {
			if e.Kind == event.Admitted {
				last = e.Estimated
			}
		}
		events.Used(t, 3, 3*7, 3*5)
		return last
	}
	if once, often := estimated(1), estimated(10); once != often {
		t.Errorf("%d tokens are reserved after bodies that were closed once, %d after others", once, often)
	}
}
