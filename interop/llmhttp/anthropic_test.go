package llmhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

func newAnthropic(client *http.Client, options ...option.RequestOption) anthropic.Client {
	options = append([]option.RequestOption{option.WithAPIKey("key"), option.WithBaseURL("https://api.anthropic.com"), option.WithHTTPClient(client)}, options...)
	return anthropic.NewClient(options...)
}

var messageParams = anthropic.MessageNewParams{
	Model:     model,
	MaxTokens: 60,
	System:    []anthropic.TextBlockParam{{Text: "You are brief."}},
	Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("What is the weather in Paris?"))},
}

func anthropicError(err error) string {
	var said *anthropic.Error
	if errors.As(err, &said) {
		return shownError(err, said.Response) + said.RawJSON()
	}
	return shownError(err, nil)
}

func anthropicWhole(ctx context.Context, client *http.Client, options ...option.RequestOption) []string {
	sdk := newAnthropic(client, options...)
	message, err := sdk.Messages.New(ctx, messageParams)
	if err != nil {
		return []string{anthropicError(err)}
	}
	return []string{message.RawJSON()}
}

func anthropicStreamed(ctx context.Context, client *http.Client) (shown []string) {
	sdk := newAnthropic(client)
	stream := sdk.Messages.NewStreaming(ctx, messageParams)
	defer stream.Close()
	for stream.Next() {
		shown = append(shown, stream.Current().RawJSON())
	}
	if err := stream.Err(); err != nil {
		shown = append(shown, anthropicError(err))
	}
	return append(shown, "end")
}

var anthropicCalls = []sdkCall{
	{"messages", func(ctx context.Context, client *http.Client) []string { return anthropicWhole(ctx, client) }},
	{"messages-stream", anthropicStreamed},
	{"not-retried", func(ctx context.Context, client *http.Client) []string {
		return anthropicWhole(ctx, client, option.WithMaxRetries(0))
	}},
}

func TestAnthropic(t *testing.T) {
	transparent(t, anthropicCalls, replies)
	transparent(t, anthropicCalls, refusals(dialect.Anthropic))
	transparent(t, anthropicCalls, []sdkReply{
		{"529", true, llmhttptest.Always(mockprovider.Reply{Status: 529})},
		{"529-once", true, llmhttptest.Once(mockprovider.Reply{Status: 529})},
		{"429-long", true, llmhttptest.Once(mockprovider.Reply{Status: 429, RetryAfter: 40 * time.Second})},
		{"mid-stream-error", false, llmhttptest.Always(mockprovider.Reply{Fault: mockprovider.FaultError, After: 6})},
	})
}
