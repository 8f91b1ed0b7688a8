package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// configuration is a company with a few models and teams.
func configuration(provider string) []byte {
	return []byte(strings.ReplaceAll(`
state: memory
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
providers:
  openai:
    base_url: MOCK
    models:
      gpt-6-astra: {max_rpm: 400, max_tpm: 90000, max_concurrent: 40}
      gpt-6-luna: {max_rpm: 1200, max_tpm: 400000}
  anthropic:
    base_url: MOCK
    models:
      claude-opus-5: {max_rpm: 120, max_input_tpm: 60000, max_output_tpm: 16000}
projects:
  acme: {dollars_per_month: 5000, tokens_per_minute: 150000, dollars_per_day: 400}
  acme/search: {requests_per_minute: 600, dollars_per_day: 120, weight: 3}
  acme/chat: {tokens_per_minute: 60000}
  acme/batch: {weight: 1}
  labs: {dollars_per_day: 40, requests_per_minute: 90}
  labs/intern: {requests_per_minute: 20, max_wait: 0s}
  reports: {tokens_per_minute: 9000, tokens_per_day: 2000000}
defaults: {max_wait: 2m}
`, "MOCK", provider))
}

// caller is callers of a project that call a model again and again.
type caller struct {
	project, model string
	callers        int
	rest           time.Duration // between two calls of a caller, on average
	words, output  int           // of a prompt, and the tokens of an answer
}

var callers = []caller{
	{"acme/search", "gpt-6-astra", 6, 2200 * time.Millisecond, 120, 60},
	{"acme/chat", "gpt-6-astra", 3, 3 * time.Second, 90, 80},
	{"acme/batch", "gpt-6-astra", 18, 200 * time.Millisecond, 200, 120},
	{"acme/search", "gpt-6-luna", 4, time.Second, 150, 100},
	{"labs", "gpt-6-luna", 2, 2 * time.Second, 100, 150},
	{"labs/intern", "gpt-6-luna", 2, 2500 * time.Millisecond, 60, 40},
	{"reports", "claude-opus-5", 3, 4 * time.Second, 300, 250},
	{"acme/chat", "claude-opus-5", 2, 3 * time.Second, 120, 120},
}

// reply is what the provider answers: after a while, about as much as was asked for.
func reply(c mockprovider.Call) mockprovider.Reply {
	r := mockprovider.FromHeader(c)
	r.Delay = time.Duration(200+rand.IntN(900)) * time.Millisecond
	return r
}

// traffic has all callers call. The function that it returns waits for them to end.
func traffic(ctx context.Context, base string) (wait func()) {
	var all sync.WaitGroup
	for _, c := range callers {
		for range c.callers {
			all.Go(func() {
				for ctx.Err() == nil {
					c.call(ctx, base)
					select {
					case <-ctx.Done():
					case <-time.After(time.Duration(float64(c.rest) * (0.5 + rand.Float64()))):
					}
				}
			})
		}
	}
	return all.Wait
}

// call makes one call, of whatever outcome.
func (c *caller) call(ctx context.Context, base string) {
	path, prompt := "/openai/v1/chat/completions", strings.Repeat("river ", c.words/2+rand.IntN(c.words))
	if strings.HasPrefix(c.model, "claude") {
		path = "/anthropic/v1/messages"
	}
	body, _ := json.Marshal(map[string]any{ // strings and numbers
		"model": c.model, "max_tokens": c.output, "messages": []map[string]string{{"role": "user", "content": prompt}},
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Project-ID", c.project)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
