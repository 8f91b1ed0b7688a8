package llmhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
)

func newOpenAI(client *http.Client, options ...option.RequestOption) openai.Client {
	options = append([]option.RequestOption{option.WithAPIKey("key"), option.WithBaseURL("https://api.openai.com/v1"), option.WithHTTPClient(client)}, options...)
	return openai.NewClient(options...)
}

var chatParams = openai.ChatCompletionNewParams{
	Model:               model,
	Messages:            []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are brief."), openai.UserMessage("What is the weather in Paris?")},
	MaxCompletionTokens: openai.Int(60),
	Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:       "get_weather",
		Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})},
}

var responseParams = responses.ResponseNewParams{
	Model:           model,
	Input:           responses.ResponseNewParamsInputUnion{OfString: openai.String("What is the weather in Paris?")},
	MaxOutputTokens: openai.Int(60),
}

var completionParams = openai.CompletionNewParams{
	Model:     model,
	Prompt:    openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once upon a time")},
	MaxTokens: openai.Int(60),
	N:         openai.Int(2),
}

// raw is what all of OpenAI's results have.
type raw interface{ RawJSON() string }

// openAIShown returns what the SDK shows of one result.
func openAIShown(result raw, err error) []string {
	if err != nil {
		return []string{openAIError(err)}
	}
	return []string{result.RawJSON()}
}

func openAIError(err error) string {
	var said *openai.Error
	if errors.As(err, &said) {
		return shownError(err, said.Response) + said.RawJSON()
	}
	return shownError(err, nil)
}

// openAIStreamed returns what the SDK shows of a stream.
func openAIStreamed[T raw](stream *ssestream.Stream[T]) (shown []string) {
	defer stream.Close()
	for stream.Next() {
		shown = append(shown, stream.Current().RawJSON())
	}
	if err := stream.Err(); err != nil {
		shown = append(shown, openAIError(err))
	}
	return append(shown, "end")
}

var openAICalls = []sdkCall{
	{"chat", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		return openAIShown(sdk.Chat.Completions.New(ctx, chatParams))
	}},
	{"several", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		params := chatParams
		params.N = openai.Int(3)
		return openAIShown(sdk.Chat.Completions.New(ctx, params))
	}},
	{"chat-stream", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		return openAIStreamed(sdk.Chat.Completions.NewStreaming(ctx, chatParams))
	}},
	{"chat-stream-usage", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		params := chatParams
		params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		return openAIStreamed(sdk.Chat.Completions.NewStreaming(ctx, params))
	}},
	{"chat-stream-options", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		params := chatParams
		params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeObfuscation: openai.Bool(false)}
		return openAIStreamed(sdk.Chat.Completions.NewStreaming(ctx, params))
	}},
	{"responses", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		return openAIShown(sdk.Responses.New(ctx, responseParams))
	}},
	{"responses-stream", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		return openAIStreamed(sdk.Responses.NewStreaming(ctx, responseParams))
	}},
	{"completions", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		return openAIShown(sdk.Completions.New(ctx, completionParams))
	}},
	{"completions-stream", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client)
		return openAIStreamed(sdk.Completions.NewStreaming(ctx, completionParams))
	}},
	{"not-retried", func(ctx context.Context, client *http.Client) []string {
		sdk := newOpenAI(client, option.WithMaxRetries(0))
		return openAIShown(sdk.Chat.Completions.New(ctx, chatParams))
	}},
}

// replies are those that every SDK gets.
var replies = []sdkReply{
	{"text", true, llmhttptest.Always(mockprovider.Reply{Text: "It is 21° in Paris, and <sunny>."})},
	{"long", true, llmhttptest.Always(mockprovider.Reply{Output: 60})},
	{"cut", true, llmhttptest.Always(mockprovider.Reply{Output: 500})},
	{"thought", true, llmhttptest.Always(mockprovider.Reply{Reasoning: 20, Output: 9})},
	{"cached", true, llmhttptest.Always(mockprovider.Reply{Cached: 5, CacheWrite: 2})},
	{"tool", true, llmhttptest.Always(mockprovider.Reply{Tool: &mockprovider.Tool{Name: "get_weather", Arguments: `{"city":"Paris"}`}})},
	{"text-and-tool", true, llmhttptest.Always(mockprovider.Reply{Reasoning: 3, Text: "I look.", Tool: &mockprovider.Tool{Name: "get_weather", Arguments: `{"city":"Paris"}`}})},
	{"slow", true, llmhttptest.Always(mockprovider.Reply{Delay: 3 * time.Second})},
	{"400", true, llmhttptest.Always(mockprovider.Reply{Status: 400})},
	{"401", true, llmhttptest.Always(mockprovider.Reply{Status: 401})},
	{"500", true, llmhttptest.Always(mockprovider.Reply{Status: 500})},
	{"500-once", true, llmhttptest.Once(mockprovider.Reply{Status: 500})},
	{"not-to-be-retried", true, llmhttptest.Always(mockprovider.Reply{Status: 503, Header: http.Header{"X-Should-Retry": {"false"}}})},
	{"reset-before-once", false, llmhttptest.Once(mockprovider.Reply{Fault: mockprovider.FaultReset})},
	{"reset", false, llmhttptest.Always(mockprovider.Reply{Fault: mockprovider.FaultReset, After: 6})},
	{"early-end", false, llmhttptest.Always(mockprovider.Reply{Fault: mockprovider.FaultEnd, After: 6})},
}

// refusals are 429 in the style of each provider that has this API.
func refusals(as ...llm.Provider) (list []sdkReply) {
	for _, p := range as {
		list = append(list,
			sdkReply{"429-" + string(p), true, llmhttptest.Always(mockprovider.Reply{Status: 429, As: p, RetryAfter: 2 * time.Second})},
			sdkReply{"429-once-" + string(p), true, llmhttptest.Once(mockprovider.Reply{Status: 429, As: p, RetryAfter: 2 * time.Second})},
		)
	}
	return list
}

func TestOpenAI(t *testing.T) {
	transparent(t, openAICalls, replies)
	transparent(t, openAICalls, refusals(dialect.OpenAI, dialect.Azure, dialect.Groq, dialect.Mistral, dialect.OpenRouter))
	transparent(t, openAICalls, []sdkReply{
		{"429-quota", true, llmhttptest.Always(mockprovider.Reply{Status: 429, Code: "insufficient_quota", Header: http.Header{"X-Should-Retry": {"false"}}})},
		{"mid-stream-error", false, llmhttptest.Always(mockprovider.Reply{Fault: mockprovider.FaultError, After: 6})},
		{"mid-stream-error-openrouter", false, llmhttptest.Always(mockprovider.Reply{Fault: mockprovider.FaultError, After: 6, As: dialect.OpenRouter})},
	})
}

func TestOpenAIEmbeddings(t *testing.T) {
	transparent(t, []sdkCall{
		{"one", func(ctx context.Context, client *http.Client) []string {
			sdk := newOpenAI(client)
			return openAIShown(sdk.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("a few words")}}))
		}},
		{"many", func(ctx context.Context, client *http.Client) []string {
			sdk := newOpenAI(client)
			return openAIShown(sdk.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "few words", "more"}}}))
		}},
	}, []sdkReply{
		{"text", true, llmhttptest.Always(mockprovider.Reply{})},
		{"500-once", true, llmhttptest.Once(mockprovider.Reply{Status: 500})},
	})
}

// The provider is asked for usage, and the SDK does not see it.
func TestHiddenUsage(t *testing.T) {
	for _, c := range []struct {
		name  string
		asks  bool
		shown int // of the chunks, how many report usage
	}{{"not-asked-for", false, 0}, {"asked-for", true, 1}} {
		t.Run(c.name, func(t *testing.T) {
			var asked bool
			w := llmhttptest.New(t, mockprovider.Config{Script: func(call mockprovider.Call) mockprovider.Reply {
				asked = call.UsageAsked
				return mockprovider.Reply{}
			}}, ample)
			params := chatParams
			if c.asks {
				params.StreamOptions.IncludeUsage = openai.Bool(true)
			}
			sdk := newOpenAI(w.Client)
			stream := sdk.Chat.Completions.NewStreaming(t.Context(), params)
			defer stream.Close()
			shown := 0
			for stream.Next() {
				chunk := stream.Current()
				if len(chunk.Choices) == 0 || chunk.Usage.TotalTokens > 0 {
					shown++
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			if !asked || shown != c.shown {
				t.Errorf("the provider was asked: %v; %d chunks tell usage, want %d", asked, shown, c.shown)
			}
			w.Settled()
		})
	}
}

// What is no call of a model passes as it is, and is not charged.
func TestOtherRequests(t *testing.T) {
	w := llmhttptest.New(t, mockprovider.Config{}, ample)
	sdk := newOpenAI(w.Client)
	if _, err := sdk.Models.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.Events.All(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
