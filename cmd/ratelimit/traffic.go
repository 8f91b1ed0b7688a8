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

// crowd is the callers of one project, each of which calls a model again and again.
type crowd struct {
	project string
	does    string // a description for people
	model   string
	callers int
	pause   time.Duration // how long a caller rests between two calls
	prompt  string
	output  int // tokens of an answer
	stream  bool

	sent, passed, denied, failed atomic.Int64
	inFlight                     atomic.Int64
}

// answered returns how many calls the provider has answered, with an error or without.
func (c *crowd) answered() int64 { return c.passed.Load() + c.failed.Load() }

// demoCrowds returns the crowds of the demo.
func demoCrowds() []*crowd {
	const question = "Where does the river rise, and where does it end?"
	return []*crowd{
		{project: "search", does: "weight 3, 12 callers", model: large, callers: 12, prompt: question, output: 12},
		{project: "chat", does: "weight 1, 8 callers, streams", model: large, callers: 8, prompt: question, output: 12, stream: true},
		{project: "batch", does: "weight 1, 40 callers: greedy", model: large, callers: 40, prompt: question, output: 12},
		{project: "reports", does: "3,000 tokens a minute, waits", model: small, callers: 2, prompt: question, output: 400},
		{project: "intern", does: "20 requests a minute, no waiting", model: small, callers: 3, pause: answerTime, prompt: question, output: 12},
	}
}

// run has all callers call until ctx ends.
func (c *crowd) run(ctx context.Context, client *http.Client, base string) {
	body, err := json.Marshal(map[string]any{
		"model": c.model, "user": c.project, "max_tokens": c.output, "stream": c.stream,
		"messages": []map[string]string{{"role": "user", "content": c.prompt}},
	})
	if err != nil {
		panic(err) // cannot happen: the value is strings and numbers
	}
	var callers sync.WaitGroup
	for range c.callers {
		callers.Go(func() {
			for ctx.Err() == nil {
				c.call(ctx, client, base+"/openai/v1/chat/completions", body)
				rest(ctx, c.pause)
			}
		})
	}
	callers.Wait()
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// call makes a call and counts its outcome. A call that the end of the demo cuts off counts
// as never sent.
func (c *crowd) call(ctx context.Context, client *http.Client, url string, body []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		c.failed.Add(1)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer demo")
	req.Header.Set("X-Project-ID", c.project)
	c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	c.sent.Add(1)
	status, err := send(client, req)
	switch {
	case ctx.Err() != nil:
		c.sent.Add(-1)
	case err == nil && status == http.StatusOK:
		c.passed.Add(1)
	case err == nil && status == http.StatusTooManyRequests:
		c.denied.Add(1)
	default:
		c.failed.Add(1)
	}
}

// send sends a request, and reads the answer to its end.
func send(client *http.Client, req *http.Request) (status int, err error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
