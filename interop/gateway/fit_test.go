package gateway_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// littleLeft is a budget of which about 500 tokens of answers are left, and which fits calls to that.
const littleLeft = `
prices:
  gpt-test: {input: 0, output: 10, context: 100_000, max_output: 16_000}
  claude-test: {input: 0, output: 10, context: 100_000, max_output: 16_000}
projects: {acme: {dollars: 0.005, fit: true}}
`

// An SDK sees an answer that was fitted as one that has come to its length, and the header says to how many tokens.
func TestSDKsSeeFittedAnswers(t *testing.T) {
	t.Run("openai", func(t *testing.T) {
		r, response := newRig(t, with(ample, littleLeft)), new(http.Response)
		client := openai.NewClient(option.WithBaseURL(r.url+"/openai/v1"), option.WithAPIKey(r.key), option.WithMaxRetries(0), option.WithHeader("X-Mock", "output=9000"))
		got, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "gpt-test", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")},
		}, option.WithResponseInto(&response))
		if err != nil {
			t.Fatal(err)
		}
		wantFitted(t, response.Header, got.Usage.CompletionTokens, got.Choices[0].FinishReason == "length")
	})
	t.Run("anthropic", func(t *testing.T) {
		r, response := newRig(t, with(ample, littleLeft)), new(http.Response)
		client := anthropic.NewClient(anthropicoption.WithBaseURL(r.url+"/anthropic"), anthropicoption.WithAPIKey(r.key), anthropicoption.WithMaxRetries(0), anthropicoption.WithHeader("X-Mock", "output=9000"))
		got, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
			Model: "claude-test", MaxTokens: 8192, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hi"))},
		}, anthropicoption.WithResponseInto(&response))
		if err != nil {
			t.Fatal(err)
		}
		wantFitted(t, response.Header, got.Usage.OutputTokens, got.StopReason == anthropic.StopReasonMaxTokens)
	})
}

func wantFitted(t *testing.T, h http.Header, tokens int64, cut bool) {
	t.Helper()
	if fit, _ := strconv.ParseInt(h.Get("X-Ratelimit-Fit"), 10, 64); fit != 500 || tokens != fit || !cut {
		t.Errorf("fitted to %d, %d tokens, cut: %v", fit, tokens, cut)
	}
}
