package mockprovider

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const chatURL, chatBody = "https://api.openai.com/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`

// A refusal has the headers and the body of its provider.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		as      llm.Provider
		mock    string
		headers map[string]string // "" is one that must not be there
		body    string
	}{
		{dialect.OpenAI, "status=429 retry-after=2500ms", map[string]string{
			"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "2.5s",
			"X-Ratelimit-Remaining-Tokens": "100000", "X-Ratelimit-Reset-Tokens": "0s", "Retry-After": "3",
		}, `{"error":{"code":"rate_limit_exceeded","message":"the mock was told to answer with 429","param":null,"type":"requests"}}`},
		{dialect.OpenAI, "status=429 code=insufficient_quota", map[string]string{"Retry-After": ""},
			`{"error":{"code":"insufficient_quota","message":"the mock was told to answer with 429","param":null,"type":"insufficient_quota"}}`},
		{dialect.OpenAI, "status=503", map[string]string{"X-Ratelimit-Limit-Requests": ""},
			`{"error":{"code":"server_is_overloaded","message":"the mock was told to answer with 503","param":null,"type":"server_error"}}`},
		{dialect.Groq, "status=429 retry-after=2m59560ms", map[string]string{"X-Ratelimit-Reset-Requests": "2m59.56s", "Retry-After": "180"}, ""},
		{dialect.Azure, "status=429 retry-after=1500ms", map[string]string{"X-Ratelimit-Reset-Requests": "2", "Retry-After": "2", "Retry-After-Ms": "1500"},
			`{"error":{"code":"429","message":"the mock was told to answer with 429"}}`},
		{dialect.Mistral, "status=429", map[string]string{"X-Ratelimit-Limit-Req-Minute": "60", "X-Ratelimit-Remaining-Tokens-Minute": "100000"}, ""},
		{dialect.OpenRouter, "status=429 retry-after=1s", map[string]string{"X-Ratelimit-Limit": "60", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1772366401000"},
			`{"error":{"code":429,"message":"the mock was told to answer with 429","metadata":{"provider_name":"mock","raw":"the mock was told to answer with 429"}},"user_id":"user_mock"}`},
		{dialect.Anthropic, "status=429 retry-after=7s", map[string]string{
			"Anthropic-Ratelimit-Requests-Limit": "60", "Anthropic-Ratelimit-Requests-Remaining": "0",
			"Anthropic-Ratelimit-Requests-Reset": "2026-03-01T12:00:07Z", "Retry-After": "7",
		}, `{"error":{"message":"the mock was told to answer with 429","type":"rate_limit_error"},"request_id":"req_mock","type":"error"}`},
		{dialect.Anthropic, "status=529", map[string]string{"Retry-After": ""},
			`{"error":{"message":"the mock was told to answer with 529","type":"overloaded_error"},"request_id":"req_mock","type":"error"}`},
		{dialect.Gemini, "status=429 retry-after=22s code=GenerateRequestsPerDayPerProjectPerModel-FreeTier", map[string]string{"Retry-After": "", "X-Ratelimit-Limit-Requests": ""},
			`{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaDimensions":{"location":"global","model":"m"},"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaValue":"60"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}],"message":"the mock was told to answer with 429","status":"RESOURCE_EXHAUSTED"}}`},
		{dialect.Ollama, "status=500", nil, `{"error":"the mock was told to answer with 500"}`},
	} {
		t.Run(string(c.as)+"/"+c.mock, func(t *testing.T) {
			client := start(t, Config{Now: func() time.Time { return t0 }})
			response, text := client.call(chatURL, c.mock+" as="+string(c.as), chatBody)
			for name, want := range c.headers {
				if got := response.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if c.body != "" && string(text) != c.body {
				t.Error(gocmp.Diff(string(text), c.body))
			}
			if got := client.Totals()["m"]; got != (Totals{Refused: 1}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Bad requests are answered with what is wrong, and use nothing.
func TestBadRequests(t *testing.T) {
	for _, c := range []struct {
		method, url, mock, body string
		status                  int
		says                    string
	}{
		{"POST", "https://api.openai.com/v1/nothing", "", `{}`, 404, "/v1/nothing"},
		{"GET", chatURL, "", "", 405, "POST"},
		{"POST", chatURL, "", `{"model":`, 400, "JSON"},
		{"POST", chatURL, "", `[]`, 400, "JSON"},
		{"POST", chatURL, "", `{"messages":[]}`, 400, "model"},
		{"POST", chatURL, "", `{"model":"m"}`, 400, "messages"},
		{"POST", "https://api.anthropic.com/v1/messages", "", `{"model":"m","messages":[]}`, 400, "max_tokens"},
		{"POST", "https://api.anthropic.com/v1/messages", "", `{"model":"m","max_tokens":5}`, 400, "messages"},
		{"POST", "https://api.openai.com/v1/responses", "", `{"model":"m"}`, 400, "input"},
		{"POST", "https://api.openai.com/v1/embeddings", "", `{"model":"m"}`, 400, "input"},
		{"POST", "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent", "", `{}`, 400, "contents"},
		{"POST", "https://api.anthropic.com/v1/messages/count_tokens", "", `nothing`, 400, "invalid"},
		{"POST", chatURL, "otput=5", chatBody, 400, "otput"},
		{"POST", chatURL, "output=-1", chatBody, 400, "from 0 to"},
		{"POST", chatURL, "fault=fire", chatBody, 400, "reset"},
		{"POST", chatURL, "as=nobody", chatBody, 400, "anthropic"},
		{"POST", chatURL, "delay=soon", chatBody, 400, "delay"},
	} {
		client := start(t, Config{})
		req, err := http.NewRequest(c.method, c.url, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Mock", c.mock)
		response, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s %s %s: %d, %s", c.url, c.mock, c.body, response.StatusCode, text)
		}
		if got := client.Totals()["m"]; got.Requests != 0 || got.Input != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// A stream that breaks off in the middle has sent what the totals count.
func TestFaults(t *testing.T) {
	for _, a := range apis {
		url, body := a.request(true, 0)
		t.Run(a.name+"/error", func(t *testing.T) {
			c := start(t, Config{})
			response, text := c.call(url, "fault=error after=8 output=50", body)
			events := eventsOf(t, response, text)
			last := events[len(events)-1]
			for _, wrapper := range []string{"response", "delta"} {
				if r, ok := last[wrapper].(map[string]any); ok {
					last = r
				}
			}
			if len(events) != 9 || last["error"] == nil {
				t.Errorf("%d events, the last %v", len(events), last)
			}
			if strings.Contains(string(text), "[DONE]") {
				t.Error("it ends as if nothing had been wrong")
			}
			sentSome(t, c)
		})
		t.Run(a.name+"/reset", func(t *testing.T) {
			c := start(t, Config{})
			response, err := c.post(t.Context(), url, "fault=reset after=8 output=50", body)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if text, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v after %s", err, text)
			}
			sentSome(t, c)
		})
		t.Run(a.name+"/end", func(t *testing.T) {
			c := start(t, Config{})
			if _, text := c.call(url, "fault=end after=8 output=50", body); strings.Contains(string(text), "[DONE]") {
				t.Errorf("%s", text)
			}
			sentSome(t, c)
		})
		t.Run(a.name+"/stall", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, Config{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				response, err := c.post(ctx, url, "fault=stall after=8 output=50", body)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if text, err := io.ReadAll(response.Body); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v after %s", err, text)
				}
				synctest.Wait()
				if c.Active() != 0 {
					t.Error("the server goes on")
				}
				sentSome(t, c)
			})
		})
	}
}

// sentSome checks that some of 50 tokens were sent.
func sentSome(t *testing.T, c *client) {
	t.Helper()
	if got := c.Totals()["m"]; got.Requests != 1 || got.Output < 1 || got.Output > 8 {
		t.Errorf("%+v", got)
	}
}

// A whole answer breaks off before it or in its middle, or is an error.
func TestWholeFaults(t *testing.T) {
	c := start(t, Config{})
	if _, err := c.post(t.Context(), chatURL, "fault=reset", chatBody); err == nil {
		t.Error("it was answered")
	}
	response, err := c.post(t.Context(), chatURL, "fault=reset after=1", chatBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	response.Body.Close()
	if response, text := c.call(chatURL, "fault=error", chatBody); response.StatusCode != 500 {
		t.Errorf("%d: %s", response.StatusCode, text)
	}
	if got := c.Totals()["m"]; got.Requests != 2 || got.Refused != 1 {
		t.Errorf("%+v", got)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Config{Delay: time.Second})
		began := time.Now()
		c.call(chatURL, "", chatBody)
		if took := time.Since(began); took != time.Second {
			t.Errorf("a whole answer took %v", took)
		}
		began = time.Now()
		c.call(chatURL, "output=3 delay=1ms", `{"model":"m","messages":[],"stream":true}`)
		if took := time.Since(began); took != 5*time.Millisecond { // the role, three tokens, the end
			t.Errorf("a stream took %v", took)
		}
	})
}

// Limits let the amount of a minute pass, and then what is supplied. Headers report what is left.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, Config{Limits: map[string]Limit{"m": {Requests: 60, Tokens: 6000}}})
		expect := func(mock string, status int, headers ...string) {
			t.Helper()
			response, text := c.call(chatURL, mock, chatBody)
			if response.StatusCode != status {
				t.Fatalf("%d: %s", response.StatusCode, text)
			}
			for i := 0; i < len(headers); i += 2 {
				if got := response.Header.Get(headers[i]); got != headers[i+1] {
					t.Errorf("%s: %q, want %q", headers[i], got, headers[i+1])
				}
			}
		}
		// A prompt of 2 tokens: the role, and the text.
		expect("output=998", 200, "X-Ratelimit-Remaining-Tokens", "5000", "X-Ratelimit-Reset-Tokens", "10s", "X-Ratelimit-Remaining-Requests", "59", "X-Ratelimit-Reset-Requests", "1s")
		expect("output=5000", 429, "X-Ratelimit-Remaining-Tokens", "5000", "Retry-After", "1", "X-Ratelimit-Remaining-Requests", "59")
		expect("output=4998", 200, "X-Ratelimit-Remaining-Tokens", "0")
		expect("output=98", 429, "Retry-After", "1")
		time.Sleep(time.Second)
		expect("output=98", 200, "X-Ratelimit-Remaining-Tokens", "0")
		time.Sleep(time.Minute)
		for range 60 {
			expect("output=1", 200)
		}
		expect("output=1", 429, "Retry-After", "1", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m0s")
		if got := c.Totals()["m"]; got.Requests != 63 || got.Refused != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// Anthropic counts input and output separately, does not count cached tokens, and rounds.
func TestAnthropicLimits(t *testing.T) {
	c := start(t, Config{Now: func() time.Time { return t0 }, Limits: map[string]Limit{"m": {InputTokens: 60_000, OutputTokens: 6000}}})
	response, _ := c.call("https://api.anthropic.com/v1/messages", "output=600 cached=1", `{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"Hi"}]}`)
	for name, want := range map[string]string{
		"Anthropic-Ratelimit-Input-Tokens-Limit": "60000", "Anthropic-Ratelimit-Input-Tokens-Remaining": "60000",
		"Anthropic-Ratelimit-Output-Tokens-Remaining": "5000", "Anthropic-Ratelimit-Output-Tokens-Reset": "2026-03-01T12:00:06Z",
		"Anthropic-Ratelimit-Requests-Limit": "",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Tokens that were read from a cache count with some providers, and not with others.
func TestCachedTokensCount(t *testing.T) {
	for provider, left := range map[string]string{"openai": "88", "groq": "89"} { // of 100: 10 of output, and 2 or 1 of the prompt
		c := start(t, Config{Now: func() time.Time { return t0 }, Limits: map[string]Limit{"m": {Tokens: 100}}})
		response, _ := c.call(chatURL, "output=10 cached=1 as="+provider, chatBody)
		if got := response.Header.Get("X-Ratelimit-Remaining-Tokens"); got != left {
			t.Errorf("%s: %s tokens are left, want %s", provider, got, left)
		}
	}
}

// An event reaches the client at once.
func TestEventsAreFlushed(t *testing.T) {
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, Config{Delay: time.Hour})
				url, body := a.request(true, 0)
				began := time.Now()
				response, err := c.post(t.Context(), url, "output=5", body)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if _, err := io.ReadFull(response.Body, make([]byte, 20)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != time.Hour {
					t.Errorf("the first event came after %v", took)
				}
			})
		})
	}
}

func TestScript(t *testing.T) {
	var seen Call
	c := start(t, Config{Script: func(call Call) Reply {
		seen = call
		if call.Number == 1 {
			return Reply{Status: 503, Header: http.Header{"X-Should-Retry": {"false"}}}
		}
		return Reply{}
	}})
	response, _ := c.call(chatURL, "", chatBody)
	if got := response.Header.Get("X-Should-Retry"); response.StatusCode != 503 || got != "false" {
		t.Errorf("%d, %q", response.StatusCode, got)
	}
	if response, _ = c.call(chatURL, "", `{"model":"m","messages":[],"max_tokens":5,"n":2}`); response.StatusCode != 200 {
		t.Error(response.StatusCode)
	}
	if cmp.Or(seen.Number-2, seen.MaxOutput-5, seen.Answers-2) != 0 || seen.API != dialect.Chat || seen.Provider != dialect.OpenAI || seen.Model != "m" || seen.Path != "/v1/chat/completions" {
		t.Errorf("%+v", seen)
	}
}
