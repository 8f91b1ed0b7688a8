package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// What all SDKs ask.
const (
	question = "What is the weather in Paris?"
	brief    = "You are brief."
	tool     = "get_weather"
	degrees  = "21 degrees"
)

var (
	wantsTool = option.WithHeader("X-Mock", "tool="+tool)
	schema    = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}
)

// leaveOpenAI ends the stream that is open.
var leaveOpenAI func() error

// goOpenAI makes a call with OpenAI's SDK for Go.
func goOpenAI(t *testing.T, k ask) (a answer) {
	options := []option.RequestOption{option.WithMaxRetries(k.Retries), option.WithHeader("X-Mock", k.Mock)}
	if k.Base != "" {
		options = append(options, option.WithBaseURL(k.Base), option.WithAPIKey(k.Key))
	}
	client := openai.NewClient(options...)
	err := openAICalls[k.Call](t.Context(), &client, k, &a)
	if said := new(openai.Error); errors.As(err, &said) {
		a.Error = &fault{fmt.Sprintf("%T", said), said.StatusCode, said.Error() + said.RawJSON(), headersOf(said.Response.Header)}
	} else if err != nil {
		a.Error = &fault{Message: err.Error()}
	}
	return a
}

var openAICalls = map[string]func(context.Context, *openai.Client, ask, *answer) error{
	"whole": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		return shown(a)(c.Chat.Completions.New(ctx, chat(k)))
	},
	"stream": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		return pieces(c.Chat.Completions.NewStreaming(ctx, chat(k)), a)
	},
	"stream-usage": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		params := chat(k)
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		return pieces(c.Chat.Completions.NewStreaming(ctx, params), a)
	},
	"tools": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		params := chatTools(k)
		first, err := c.Chat.Completions.New(ctx, params, wantsTool)
		if err != nil {
			return err
		}
		a.raw(first)
		message := first.Choices[0].Message
		params.Messages = append(params.Messages, message.ToParam(), openai.ToolMessage(degrees, message.ToolCalls[0].ID))
		return shown(a)(c.Chat.Completions.New(ctx, params))
	},
	"tools-stream": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		return pieces(c.Chat.Completions.NewStreaming(ctx, chatTools(k), wantsTool), a)
	},
	"responses": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		return shown(a)(c.Responses.New(ctx, response(k)))
	},
	"responses-stream": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		return pieces(c.Responses.NewStreaming(ctx, response(k)), a)
	},
	"responses-tools": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		params := response(k)
		params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction(tool, schema, true)}
		first, err := c.Responses.New(ctx, params, wantsTool)
		if err != nil {
			return err
		}
		a.raw(first)
		call := first.Output[0].AsFunctionCall()
		result := responses.ResponseInputItemParamOfFunctionCallOutput(degrees)
		result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(question, responses.EasyInputMessageRoleUser),
			responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name),
			result,
		}}
		return shown(a)(c.Responses.New(ctx, params))
	},
	"embeddings": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		return shown(a)(c.Embeddings.New(ctx, openai.EmbeddingNewParams{
			Model: k.Model,
			Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a few words", "more"}},
		}))
	},
	"models": func(ctx context.Context, c *openai.Client, _ ask, a *answer) error {
		return shown(a)(c.Models.List(ctx))
	},
	"upload": func(ctx context.Context, c *openai.Client, _ ask, a *answer) error {
		file := openai.File(strings.NewReader(strings.Repeat("x", 100_000)), "batch.jsonl", "application/jsonl")
		return shown(a)(c.Files.New(ctx, openai.FileNewParams{File: file, Purpose: openai.FilePurposeBatch}))
	},
	"open": func(ctx context.Context, c *openai.Client, k ask, a *answer) error {
		params := chat(k)
		params.MaxCompletionTokens = openai.Int(5000)
		stream := c.Chat.Completions.NewStreaming(ctx, params)
		leaveOpenAI = stream.Close
		for range k.Pieces {
			stream.Next()
			a.raw(stream.Current())
		}
		return stream.Err()
	},
	"leave": func(context.Context, *openai.Client, ask, *answer) error { return leaveOpenAI() },
}

func chat(k ask) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:               k.Model,
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(brief), openai.UserMessage(question)},
		MaxCompletionTokens: openai.Int(60),
	}
}

func chatTools(k ask) openai.ChatCompletionNewParams {
	params := chat(k)
	params.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: tool, Parameters: schema}),
	}
	return params
}

func response(k ask) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model:           k.Model,
		Instructions:    openai.String(brief),
		Input:           responses.ResponseNewParamsInputUnion{OfString: openai.String(question)},
		MaxOutputTokens: openai.Int(60),
	}
}

// result is what all results of the SDKs of OpenAI and Anthropic have.
type result interface{ RawJSON() string }

// shown shows the result of a call, if there is one.
func shown(a *answer) func(result, error) error {
	return func(r result, err error) error {
		if err == nil {
			a.raw(r)
		}
		return err
	}
}

// pieces shows those of a stream.
func pieces[T result](stream *ssestream.Stream[T], a *answer) error {
	defer stream.Close()
	for stream.Next() {
		a.raw(stream.Current())
	}
	return stream.Err()
}
