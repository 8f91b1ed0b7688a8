package llmhttp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/project"
)

// With the provider's own limits as quotas, the provider refuses no call, whatever the
// calls use and however many clients there are.
func TestProviderRefusesNoCall(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit mockprovider.Limit
		quota ratelimit.ModelQuota
		url   string
		body  string // a format of the prompt and the maximum of tokens
	}{
		{"openai", mockprovider.Limit{Requests: 60, Tokens: 6000}, ratelimit.ModelQuota{MaxRPM: 60, MaxTPM: 6000},
			"https://api.openai.com/v1/responses", `{"model":"some-model","input":%q,"max_output_tokens":%d}`},
		{"openai-stream", mockprovider.Limit{Requests: 60, Tokens: 6000}, ratelimit.ModelQuota{MaxRPM: 60, MaxTPM: 6000},
			"https://api.openai.com/v1/completions", `{"model":"some-model","prompt":%q,"max_tokens":%d,"stream":true}`},
		{"anthropic", mockprovider.Limit{Requests: 60, InputTokens: 3000, OutputTokens: 4000}, ratelimit.ModelQuota{MaxRPM: 60, MaxInputTPM: 3000, MaxOutputTPM: 4000},
			"https://api.anthropic.com/v1/messages", `{"model":"some-model","messages":[{"content":%q}],"max_tokens":%d,"stream":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const calls = 150
				w := llmhttptest.New(t, mockprovider.Config{Limits: map[string]mockprovider.Limit{model: c.limit}}, c.quota,
					llmhttp.MaxWait(0), llmhttp.Tokenizer(func(_, text string) int { return mockprovider.Count(text) }))
				var all sync.WaitGroup
				for i := range calls {
					all.Go(func() {
						x := wire{"", c.url, fmt.Sprintf(c.body, strings.Repeat("word ", 1+i%40), 1+i*7%90)}
						if status, err := x.read(t.Context(), w.Client); status != 200 || err != nil {
							t.Errorf("call %d: %d, %v", i, status, err)
						}
					})
				}
				all.Wait()
				synctest.Wait()
				w.Settled()
				if sent := w.Server.Totals()[model]; sent.Refused != 0 || sent.Requests != calls {
					t.Errorf("%+v", sent)
				}
			})
		})
	}
}

// Where other programs use the same account, the limiter learns of that from the headers,
// before the provider has to refuse a call.
func TestOthersUseTheAccount(t *testing.T) {
	for _, x := range []wire{whole, streams[3]} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := llmhttptest.New(t, mockprovider.Config{Limits: map[string]mockprovider.Limit{model: {Requests: 60}}}, ratelimit.ModelQuota{MaxRPM: 60}, llmhttp.MaxWait(0))
				for range 50 {
					if status, err := x.read(t.Context(), &http.Client{Transport: w.Direct}); status != 200 || err != nil {
						t.Fatal(status, err)
					}
				}
				for i := range 40 {
					if status, err := x.read(t.Context(), w.Client); status != 200 || err != nil {
						t.Errorf("call %d: %d, %v", i, status, err)
					}
				}
				if sent := w.Server.Totals()[model]; sent.Refused != 0 || sent.Requests != 90 {
					t.Errorf("%+v", sent)
				}
			})
		})
	}
}

// The same holds for many calls that come at once, after one call has read the headers.
func TestOthersUseTheAccountAndManyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := mockprovider.Config{Limits: map[string]mockprovider.Limit{model: {Requests: 60}}, Delay: time.Second}
		w := llmhttptest.New(t, config, ratelimit.ModelQuota{MaxRPM: 60}, llmhttp.MaxWait(0))
		past := &http.Client{Transport: w.Direct}
		var all sync.WaitGroup
		send := func(n int, client *http.Client) {
			for range n {
				all.Go(func() {
					if status, err := whole.read(t.Context(), client); status != 200 || err != nil {
						t.Error(status, err)
					}
				})
			}
			all.Wait()
		}
		send(50, past)
		send(1, w.Client)
		send(40, w.Client)
		if sent := w.Server.Totals()[model]; sent.Refused != 0 || sent.Requests != 91 {
			t.Errorf("%+v", sent)
		}
	})
}

// The provider's headers replace the maxima of a quota that is Auto.
func TestAutoQuota(t *testing.T) {
	w := llmhttptest.New(t, mockprovider.Config{Limits: map[string]mockprovider.Limit{model: {Requests: 70, Tokens: 7000}}}, ratelimit.ModelQuota{MaxRPM: 5, Auto: true})
	if status, err := whole.read(t.Context(), w.Client); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	if s := w.Limiter.Stats(model); s.MaxRPM != 70 || s.MaxTPM != 7000 {
		t.Errorf("%+v", s)
	}
}

// A prompt has as many tokens as the tokenizer counts.
func TestTokenizer(t *testing.T) {
	w := llmhttptest.New(t, mockprovider.Config{}, ample, llmhttp.Tokenizer(func(name, text string) int {
		if name != model || text != "Hi" {
			t.Errorf("%q of %q", text, name)
		}
		return 12_345
	}))
	if status, err := whole.read(t.Context(), w.Client); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	for _, e := range w.Events.All() {
		if e.Kind == event.Admitted && (e.Estimated < 12_345 || e.Estimated > 20_000) {
			t.Errorf("%d tokens were reserved", e.Estimated)
		}
	}
	w.Settled()
}

// While the provider refuses calls, no transport that shares the limiter sends one.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     wire
		reply mockprovider.Reply
		least time.Duration
		cause llm.Cause
	}{
		{"429", whole, mockprovider.Reply{Status: 429, RetryAfter: 30 * time.Second}, 30 * time.Second, llm.RateLimited},
		{"503", whole, mockprovider.Reply{Status: 503, RetryAfter: 5 * time.Second}, 5 * time.Second, llm.Overloaded},
		{"529", streams[3], mockprovider.Reply{Status: 529}, time.Millisecond, llm.Overloaded},
		{"gemini", streams[4], mockprovider.Reply{Status: 429, RetryAfter: 22 * time.Second}, 22 * time.Second, llm.RateLimited},
		{"mid-stream", streams[3], mockprovider.Reply{Fault: mockprovider.FaultError, After: 5}, time.Millisecond, llm.Overloaded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var mu sync.Mutex
				var arrived []time.Duration
				w := llmhttptest.New(t, mockprovider.Config{Script: func(call mockprovider.Call) mockprovider.Reply {
					mu.Lock()
					defer mu.Unlock()
					arrived = append(arrived, time.Since(began))
					return llmhttptest.Once(c.reply)(call)
				}}, ample)
				c.x.read(t.Context(), w.Client)
				var all sync.WaitGroup
				for i := range 20 {
					client := w.Through() // another transport, with the same limiter
					all.Go(func() {
						if status, err := c.x.read(t.Context(), client); status != 200 || err != nil {
							t.Errorf("call %d: %d, %v", i, status, err)
						}
					})
				}
				all.Wait()
				if len(arrived) != 21 {
					t.Fatalf("%d calls have arrived", len(arrived))
				}
				for _, at := range arrived[1:] {
					if at < c.least || at > time.Minute {
						t.Errorf("a call has arrived after %v, want %v at least", at, c.least)
					}
				}
				for _, e := range w.Events.All() {
					if e.Kind == event.Paused && e.Cause != c.cause {
						t.Errorf("%+v", e)
					}
				}
				if n := w.Events.Count(event.Paused); n != 1 {
					t.Errorf("it was paused %d times", n)
				}
			})
		})
	}
}

// A call waits for its turn up to MaxWait, and is refused at once if that is too short.
func TestMaxWait(t *testing.T) {
	for _, c := range []struct {
		name   string
		most   time.Duration
		status int
		took   time.Duration
	}{
		{"default", -1, 200, time.Minute},
		{"enough", time.Minute + 1, 200, time.Minute},
		{"too-short", time.Second, 429, 0},
		{"any", 0, 200, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var options []llmhttp.Option
				if c.most >= 0 {
					options = append(options, llmhttp.MaxWait(c.most))
				}
				w := llmhttptest.New(t, mockprovider.Config{}, ratelimit.ModelQuota{MaxRPM: 1}, options...)
				whole.read(t.Context(), w.Client)
				began := time.Now()
				status, err := whole.read(t.Context(), w.Client)
				if took := time.Since(began); status != c.status || err != nil || took != c.took {
					t.Errorf("%d, %v after %v", status, err, took)
				}
			})
		})
	}
}

// A call is charged to the limits of its project too.
func TestProjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := llmhttptest.New(t, mockprovider.Config{}, ample)
		limiter, err := w.Limiter.NewProjects(project.Config{Default: &project.Limit{RequestsPerMinute: 2, TokensPerMinute: 100_000}})
		if err != nil {
			t.Fatal(err)
		}
		client := w.Through(llmhttp.Reject(), llmhttp.Projects(limiter, func(r *http.Request) string { return r.Header.Get("X-Project-Id") }))
		for i, c := range []struct {
			project string
			status  int
		}{{"a", 200}, {"a", 200}, {"a", 429}, {"b", 200}} {
			req, err := http.NewRequest("POST", whole.url, strings.NewReader(whole.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Project-Id", c.project)
			response, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != c.status {
				t.Errorf("call %d, of project %s: %d", i, c.project, response.StatusCode)
			}
		}
		if s := w.Limiter.Stats(model); s.RPM != 3 || s.Concurrent != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Models may share a quota.
func TestQuota(t *testing.T) {
	w := llmhttptest.New(t, mockprovider.Config{}, ample, llmhttp.Quota(func(_ llm.Provider, model string) string {
		return strings.TrimSuffix(model, "-2026")
	}))
	x := wire{"", whole.url, strings.Replace(whole.body, model, model+"-2026", 1)}
	if status, err := x.read(t.Context(), w.Client); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	if s := w.Limiter.Stats(model); s.RPM != 1 || s.TPM == 0 {
		t.Errorf("%+v", s)
	}
}

// A stream that is sent unchanged is charged what was reserved, or what was seen of it.
func TestLeaveStreams(t *testing.T) {
	asked := true
	w := llmhttptest.New(t, mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
		asked = c.UsageAsked
		return mockprovider.Reply{}
	}}, ample, llmhttp.LeaveStreams(), llmhttp.ChargeSeen())
	if status, err := streams[0].read(t.Context(), w.Client); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	if used := w.Ended(); asked || used.Output < 1 || used.Output > w.Server.Totals()[model].Output {
		t.Errorf("asked for usage: %v; %+v is settled", asked, used)
	}

	w = llmhttptest.New(t, mockprovider.Config{}, ample, llmhttp.LeaveStreams())
	if status, err := streams[0].read(t.Context(), w.Client); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	if s := w.Limiter.Stats(model); s.TPM < 256 {
		t.Errorf("%d tokens are charged for an answer of unknown length", s.TPM)
	}
}

// Invalid options panic when the program starts.
func TestMistakes(t *testing.T) {
	limiter := llmhttptest.NewLimiter(t, ample, nil)
	testkit.Panics(t, map[string]func(){
		"no limiter":    func() { llmhttp.New(nil, nil) },
		"negative wait": func() { llmhttp.MaxWait(-1) },
		"no project":    func() { llmhttp.Projects(nil, nil) },
		"no prices":     func() { llmhttp.Prices(nil, nil) },
		"no quota":      func() { llmhttp.Quota(nil) },
		"no tokenizer":  func() { llmhttp.Tokenizer(nil) },
		"another's limits": func() {
			llmhttp.New(nil, limiter, llmhttp.Projects(project.New(nil), func(*http.Request) string { return "" }))
		},
	})
}

// A program that does not use the transport gives the limiter what a response says.
func TestReadLimits(t *testing.T) {
	u, err := url.Parse("https://api.groq.com/openai/v1/chat/completions")
	if err != nil {
		t.Fatal(err)
	}
	resp := &http.Response{StatusCode: http.StatusTooManyRequests, Request: &http.Request{Method: http.MethodPost, URL: u}, Header: http.Header{
		"Retry-After": {"7"}, "X-Ratelimit-Limit-Requests": {"100"}, "X-Ratelimit-Remaining-Requests": {"0"},
	}}
	limits := llmhttp.ReadLimits(resp, nil)
	if limits.Pause != 7*time.Second || len(limits.Windows) != 1 || limits.Windows[0].Per != llm.Day { // Groq counts requests by the day
		t.Errorf("%+v", limits)
	}
	resp.Request.Method = http.MethodGet // such as that for the models
	if limits := llmhttp.ReadLimits(resp, nil); len(limits.Windows) != 1 || limits.Windows[0].Per != llm.Day {
		t.Errorf("of a request that is no call: %+v", limits)
	}
	resp.Request = nil
	if limits := llmhttp.ReadLimits(resp, nil); limits.Pause != 7*time.Second {
		t.Errorf("without a request: %+v", limits)
	}
}
