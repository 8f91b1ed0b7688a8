package gateway

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/price"
)

// fitting is a gateway that fits calls, with prices of round numbers. BUDGET is that of project p.
const fitting = `
providers:
  openai: {base_url: MOCK}
  anthropic: {base_url: MOCK}
  gemini: {base_url: MOCK}
  local: {base_url: MOCK, kind: ollama}
prices:
  "*": {input: 1, output: 10, context: 200_000, max_output: 16_000}
defaults: {max_wait: 0s, fit: true}
projects:
  p: {dollars: BUDGET}
  acme: {dollars: BUDGET, fit_min: 1_000}
  stiff: {dollars: BUDGET, fit: false}
`

// endless answers with as many tokens as the request allows, and records that.
type endless struct {
	mu      sync.Mutex
	allowed []int
}

func (e *endless) config() mockprovider.Config {
	return mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.allowed = append(e.allowed, c.MaxOutput)
		return mockprovider.Reply{Output: 1 << 20}
	}}
}

func newFitting(t *testing.T, budget string) (*rig, *endless) {
	t.Helper()
	e := &endless{}
	return newRig(t, strings.ReplaceAll(fitting, "BUDGET", budget), e.config()), e
}

// Near the end of a budget, a call is fitted to what is left, in every API: the provider gets a lower bound, the header
// says it, and the answer ends with the provider's own word for that.
func TestFit(t *testing.T) {
	for name, c := range map[string]struct{ path, body, end string }{
		"chat":          {chat, `{"model":"gpt-4o","max_tokens":8192,"messages":[{"role":"user","content":"Hi"}]}`, `"finish_reason":"length"`},
		"a stream":      {chat, `{"model":"gpt-4o","stream":true,"max_completion_tokens":8192,"messages":[{"role":"user","content":"Hi"}]}`, `"finish_reason":"length"`},
		"no max_tokens": {chat, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}]}`, `"finish_reason":"length"`},
		"responses":     {"/openai/v1/responses", `{"model":"gpt-4o","max_output_tokens":8192,"input":"Hi"}`, `"max_output_tokens"`},
		"messages":      {"/anthropic/v1/messages", `{"model":"claude-x","max_tokens":8192,"messages":[{"role":"user","content":"Hi"}]}`, `"stop_reason":"max_tokens"`},
		"generate":      {"/gemini/v1beta/models/gemini-x:generateContent", `{"contents":[{"parts":[{"text":"Hi"}]}]}`, `"finishReason":"MAX_TOKENS"`},
		"ollama":        {"/local/api/chat", `{"model":"llama","stream":false,"messages":[{"role":"user","content":"Hi"}]}`, `"done_reason":"length"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, e := newFitting(t, "0.01") // 1,000 tokens of answers
			a := r.post(t, c.path, c.body, "X-Project-ID", "p")
			fit, _ := strconv.Atoi(a.header.Get("X-Ratelimit-Fit"))
			if a.status != 200 || fit < 256 || fit > 1000 || len(e.allowed) != 1 || e.allowed[0] != fit {
				t.Fatalf("%d, fitted to %d, and the provider got %v: %s", a.status, fit, e.allowed, a.body)
			}
			if !strings.Contains(strings.ReplaceAll(a.body, `": "`, `":"`), c.end) {
				t.Errorf("there is no %s in the answer: %.2000s", c.end, a.body)
			}
			if spent := spentOf(t, r, "p"); spent < price.Amount(fit)*10_000 || spent > price.Dollar/100 {
				t.Errorf("%v is spent with %d tokens of %v", spent, fit, price.Amount(price.Dollar/100))
			}
			r.settled(t)
			if rec := r.last(t); rec.Fit != fit {
				t.Errorf("%d is on record, not %d", rec.Fit, fit)
			}
		})
	}
}

// What an operator sets at run time wins over the configuration, for the users of a project, too.
func TestFitIsSwitched(t *testing.T) {
	r, _ := newFitting(t, "0.01")
	call := func(user string) answer {
		t.Helper()
		return r.post(t, chat, `{"model":"gpt-4o","max_tokens":8192,"messages":[{"role":"user","content":"Hi"}]}`, "X-Project-ID", "stiff"+user)
	}
	if a := call("/ann"); a.status != 400 {
		t.Fatalf("a project that does not fit: %d %s", a.status, a.body)
	}
	fit, least := true, 500
	if err := r.Controls().SetProject(t.Context(), "stiff", control.Project{Fit: &fit, FitMin: &least}); err != nil {
		t.Fatal(err)
	}
	if a := call("/ann"); a.status != 200 || a.header.Get("X-Ratelimit-Fit") == "" {
		t.Errorf("switched on: %d %v", a.status, a.header)
	}
	if a := call(""); a.status == 200 {
		t.Errorf("with less left than fit_min: %d", a.status)
	}
}

// A call with too little left for fit_min, one of a project that does not fit calls, and one that is not denied stay as
// they are.
func TestNotFitted(t *testing.T) {
	call := func(tokens int) string {
		return fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"Hi"}]}`, tokens)
	}
	for name, c := range map[string]struct {
		project string
		tokens  int
		status  int
	}{
		"enough is left":      {"p", 500, 200},
		"less than fit_min":   {"acme", 8192, 400},
		"fit is not set":      {"stiff", 8192, 400},
		"fit_min of a member": {"acme", 900, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r, e := newFitting(t, "0.01")
			a := r.post(t, chat, call(c.tokens), "X-Project-ID", c.project)
			if a.status != c.status || a.header.Get("X-Ratelimit-Fit") != "" {
				t.Errorf("%d %v: %s", a.status, a.header, a.body)
			}
			if c.status == 200 && e.allowed[0] != c.tokens {
				t.Errorf("the provider got %d", e.allowed[0])
			}
		})
	}
}

// However many calls are fitted at once, the budget is not exceeded, and is used to its end but for what no call
// could use.
func TestFitUsesABudgetToItsEnd(t *testing.T) {
	r, _ := newFitting(t, "0.2")
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			r.post(t, chat, `{"model":"gpt-4o","max_tokens":4096,"messages":[{"role":"user","content":"Hi"}]}`, "X-Project-ID", "p")
		})
	}
	all.Wait()
	if spent := spentOf(t, r, "p"); spent > price.Dollar/5 || spent < price.Dollar/5-256*10_000-1000*1000 {
		t.Errorf("%v is spent of $0.20", spent)
	}
}
