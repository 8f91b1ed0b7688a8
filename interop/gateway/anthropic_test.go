package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
)

// leaveAnthropic ends the stream that is open.
var leaveAnthropic func() error

// goAnthropic makes a call with Anthropic's SDK for Go.
func goAnthropic(t *testing.T, k ask) (a answer) {
	options := []option.RequestOption{option.WithMaxRetries(k.Retries), option.WithHeader("X-Mock", k.Mock)}
	if k.Base != "" {
		key := option.WithAPIKey(k.Key)
		if k.Call == "bearer" {
			key = option.WithAuthToken(k.Key)
		}
		options = append(options, option.WithoutEnvironmentDefaults(), option.WithBaseURL(k.Base), key)
	}
	client := anthropic.NewClient(options...)
	err := anthropicCalls[k.Call](t.Context(), &client, k, &a)
	if said := new(anthropic.Error); errors.As(err, &said) {
		a.Error = &fault{fmt.Sprintf("%T", said), said.StatusCode, said.Error() + said.RawJSON(), headersOf(said.Response.Header)}
	} else if err != nil {
		a.Error = &fault{Message: err.Error()}
	}
	return a
}

var anthropicCalls = map[string]func(context.Context, *anthropic.Client, ask, *answer) error{
	"whole":  message,
	"bearer": message,
	"stream": func(ctx context.Context, c *anthropic.Client, k ask, a *answer) error {
		return events(c.Messages.NewStreaming(ctx, messageParams(k)), a)
	},
	"tools": func(ctx context.Context, c *anthropic.Client, k ask, a *answer) error {
		params := messageTools(k)
		first, err := c.Messages.New(ctx, params, option.WithHeader("X-Mock", "tool="+tool))
		if err != nil {
			return err
		}
		a.raw(first)
		params.Messages = append(params.Messages, first.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(first.Content[0].ID, degrees, false)))
		return shown(a)(c.Messages.New(ctx, params))
	},
	"tools-stream": func(ctx context.Context, c *anthropic.Client, k ask, a *answer) error {
		return events(c.Messages.NewStreaming(ctx, messageTools(k), option.WithHeader("X-Mock", "tool="+tool)), a)
	},
	"count": func(ctx context.Context, c *anthropic.Client, k ask, a *answer) error {
		params := messageParams(k)
		return shown(a)(c.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{
			Model: params.Model, Messages: params.Messages, System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: params.System},
		}))
	},
	"open": func(ctx context.Context, c *anthropic.Client, k ask, a *answer) error {
		params := messageParams(k)
		params.MaxTokens = 5000
		stream := c.Messages.NewStreaming(ctx, params)
		leaveAnthropic = stream.Close
		for range k.Pieces {
			stream.Next()
			a.raw(stream.Current())
		}
		return stream.Err()
	},
	"leave": func(context.Context, *anthropic.Client, ask, *answer) error { return leaveAnthropic() },
}

func message(ctx context.Context, c *anthropic.Client, k ask, a *answer) error {
	return shown(a)(c.Messages.New(ctx, messageParams(k)))
}

func messageParams(k ask) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model:     k.Model,
		MaxTokens: 60,
		System:    []anthropic.TextBlockParam{{Text: brief}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	}
}

func messageTools(k ask) anthropic.MessageNewParams {
	params := messageParams(k)
	params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: tool, InputSchema: anthropic.ToolInputSchemaParam{Properties: schema["properties"]},
	}}}
	return params
}

// events shows those of a stream.
func events(stream *ssestream.Stream[anthropic.MessageStreamEventUnion], a *answer) error {
	defer stream.Close()
	for stream.Next() {
		a.raw(stream.Current())
	}
	return stream.Err()
}
