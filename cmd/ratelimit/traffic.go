package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// demoProject is a project of the demo. Each of its callers calls a model again and again.
type demoProject struct {
	name    string
	does    string // a description for people
	model   string
	callers int
	pause   time.Duration // how long a caller rests between two calls
	prompt  string
	output  int // tokens of an answer
	stream  bool

	sent, passed, denied, failed atomic.Int64
	inFlight                     atomic.Int64

	waits []time.Duration // how long the last calls that have passed had waited; the board sets it
	used  int64           // how many tokens the calls have used; the board sets it
}

// answered returns how many calls the provider has answered, with an error or without.
func (p *demoProject) answered() int64 { return p.passed.Load() + p.failed.Load() }

func demoProjects() []*demoProject {
	const question = "Where does the river rise, and where does it end?"
	return []*demoProject{
		{name: "search", does: "weight 3, 12 callers", model: large, callers: 12, prompt: question, output: 12},
		{name: "chat", does: "weight 1, 8 callers, streams", model: large, callers: 8, prompt: question, output: 12, stream: true},
		{name: "batch", does: "weight 1, 40 callers: greedy", model: large, callers: 40, prompt: question, output: 12},
		{name: "reports", does: "3,000 tokens a minute, waits", model: small, callers: 2, prompt: question, output: 400},
		{name: "intern", does: "20 requests a minute, no waiting", model: small, callers: 3, pause: answerTime, prompt: question, output: 12},
	}
}

// run has all callers call until ctx ends.
func (p *demoProject) run(ctx context.Context, client *http.Client, base string) {
	body, err := json.Marshal(map[string]any{
		"model": p.model, "user": p.name, "max_tokens": p.output, "stream": p.stream,
		"messages": []map[string]string{{"role": "user", "content": p.prompt}},
	})
	if err != nil {
		panic(err) // cannot happen: the value is strings and numbers
	}
	var callers sync.WaitGroup
	for range p.callers {
		callers.Go(func() {
			for ctx.Err() == nil {
				p.call(ctx, client, base+"/openai/v1/chat/completions", body)
				select {
				case <-ctx.Done():
				case <-time.After(p.pause):
				}
			}
		})
	}
	callers.Wait()
}

// call makes a call and counts its outcome. A call that the end of the demo cuts off counts
// as never sent.
func (p *demoProject) call(ctx context.Context, client *http.Client, url string, body []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		p.failed.Add(1)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer demo")
	req.Header.Set("X-Project-ID", p.name)
	p.inFlight.Add(1)
	defer p.inFlight.Add(-1)
	p.sent.Add(1)
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
	}
	switch {
	case ctx.Err() != nil:
		p.sent.Add(-1)
	case err == nil && resp.StatusCode == http.StatusOK:
		p.passed.Add(1)
	case err == nil && resp.StatusCode == http.StatusTooManyRequests:
		p.denied.Add(1)
	default:
		p.failed.Add(1)
	}
}
