package llm_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"
)

// sdkError is what an SDK made of a refusal.
type sdkError struct {
	status     int
	kind, text string
}

func callOpenAI(t *testing.T, url string) sdkError {
	client := openai.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("key"))
	_, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "gpt-6-astra", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	})
	failed, ok := errors.AsType[*openai.Error](err)
	if !ok {
		t.Fatalf("OpenAI's SDK returns %v", err)
	}
	return sdkError{failed.StatusCode, failed.Code, failed.Message}
}

func callAnthropic(t *testing.T, url string) sdkError {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("key"))
	_, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "claude", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	})
	failed, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		t.Fatalf("Anthropic's SDK returns %v", err)
	}
	return sdkError{failed.StatusCode, string(failed.Type()), failed.RawJSON()}
}

func callGemini(t *testing.T, url string) sdkError {
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Models.GenerateContent(t.Context(), "gemini-3-pro", genai.Text("hello"), nil)
	failed, ok := errors.AsType[genai.APIError](err)
	if !ok {
		t.Fatalf("Gemini's SDK returns %v", err)
	}
	return sdkError{failed.Code, failed.Status, failed.Message}
}

// The providers' own SDKs read refusals as their providers', and try again when they
// are told to.
func TestSDKsUnderstandRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		call         func(t *testing.T, url string) sdkError
		api          llm.API
		later, never string // the kind of error
		tries        int32  // where the SDK is told to try again
	}{
		"OpenAI":    {callOpenAI, llm.Chat, "rate_limit_exceeded", "request_too_large", 3},
		"Anthropic": {callAnthropic, llm.Messages, "rate_limit_error", "request_too_large", 3},
		"Gemini":    {callGemini, llm.Generate, "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", 1},
	} {
		for _, refusal := range []llm.Refusal{
			{Status: 429, Message: `no "more" for now`, RetryAfter: time.Hour},
			{Status: 429, Message: "at once", RetryAfter: time.Millisecond, Retry: true},
			{Status: 413, Message: "too large"},
		} {
			var tries atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				h, body := llm.Endpoint{API: test.api}.Refuse(refusal)
				for name, values := range h {
					w.Header()[name] = values
				}
				w.WriteHeader(refusal.Status)
				w.Write(body)
			}))
			got := test.call(t, server.URL)
			server.Close()

			kind, wanted := test.later, int32(1)
			if refusal.Status == 413 {
				kind = test.never
			}
			if refusal.Retry {
				wanted = test.tries
			}
			words := refusal.Message
			if test.api == llm.Messages {
				words = strings.ReplaceAll(words, `"`, `\"`) // its SDK shows the JSON
			}
			if got.status != refusal.Status || got.kind != kind || !strings.Contains(got.text, words) {
				t.Errorf("%s: %+v is understood as %+v", name, refusal, got)
			}
			if tries.Load() != wanted {
				t.Errorf("%s: %+v is tried %d times; want %d", name, refusal, tries.Load(), wanted)
			}
		}
	}
}
