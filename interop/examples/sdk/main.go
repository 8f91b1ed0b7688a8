// Command sdk shows OpenAI's SDK with the transport of llmhttp, and a mock provider on this
// machine: calls are metered to the token, wait for their turn, and stop when the provider
// throttles them.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const model = "gpt-4o"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) error {
	provider := mockprovider.New(mockprovider.Config{Script: script})
	server := httptest.NewServer(provider)
	defer server.Close()

	out := &printer{w: w}
	limiter, err := ratelimit.NewWithConfig(ratelimit.Config{
		Quotas:   map[string]ratelimit.ModelQuota{model: {MaxRPM: 100, MaxTPM: 30_000, MaxConcurrent: 3}},
		Observer: out,
	})
	if err != nil {
		return err
	}
	defer limiter.Close()
	client := openai.NewClient(
		option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: llmhttp.New(nil, limiter)}), // the one line
	)

	out.say("A stream. The caller asked for no usage and sees none, but it is metered.")
	if err := stream(ctx, client, out); err != nil {
		return err
	}
	out.say("\nTwelve calls at once, of which the quota lets three be under way.")
	if err := crowd(ctx, client, 12); err != nil {
		return err
	}
	out.say("\nThe provider throttles a call, and says for how long. All who share the limiter wait for it.")
	if err := ask(ctx, client, "throttle me"); err != nil {
		out.say("  " + err.Error())
	}
	if err := ask(ctx, client, "And me?"); err != nil {
		return err
	}
	out.say("\nA prompt that the quota can never give is not sent.")
	if err := ask(ctx, client, strings.Repeat("far too long ", 20_000)); err != nil {
		out.say("  " + err.Error())
	}
	stats, totals := limiter.Stats(model), provider.Totals()[model]
	out.say(fmt.Sprintf("\nThe limiter has counted %d tokens in %d requests. The provider has: %d tokens in %d requests, and throttled %d.",
		stats.TPM, stats.RPM, totals.Input+totals.Output, totals.Requests, totals.Refused))
	return nil
}

// script lets the mock provider throttle the calls that ask for it.
func script(c mockprovider.Call) mockprovider.Reply {
	if strings.Contains(string(c.Body), "throttle me") {
		return mockprovider.Reply{Status: http.StatusTooManyRequests, RetryAfter: time.Second}
	}
	return mockprovider.Reply{Delay: 2 * time.Millisecond}
}

func stream(ctx context.Context, client openai.Client, out *printer) error {
	chunks := client.Chat.Completions.NewStreaming(ctx, params("Tell me a story."))
	defer chunks.Close()
	var text strings.Builder
	for chunks.Next() {
		for _, choice := range chunks.Current().Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
	out.say("  the model says: " + text.String())
	return chunks.Err()
}

func crowd(ctx context.Context, client openai.Client, n int) error {
	var wg sync.WaitGroup
	failed := make(chan error, n)
	for i := range n {
		wg.Go(func() { failed <- ask(ctx, client, fmt.Sprint("What is ", i, " squared?")) })
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func ask(ctx context.Context, client openai.Client, question string) error {
	_, err := client.Chat.Completions.New(ctx, params(question))
	return err
}

func params(question string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
	}
}

// printer is an observer that prints events.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *printer) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w, text)
}

// Observe is [event.Observer]'s.
func (p *printer) Observe(_ context.Context, e event.Event) {
	switch e.Kind {
	case event.Admitted:
		p.say(fmt.Sprintf("  admitted: reserved %d tokens, waited %v", e.Estimated, e.Waited.Round(time.Millisecond)))
	case event.Settled:
		p.say(fmt.Sprintf("  settled: used %d and %d tokens", e.Used.Input, e.Used.Output))
	case event.Paused:
		p.say(fmt.Sprintf("  paused for %v: %s", e.RetryAfter, e.Cause))
	}
}
