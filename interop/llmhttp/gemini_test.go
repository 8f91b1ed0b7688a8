package llmhttp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

func newGemini(ctx context.Context, client *http.Client, retry *genai.HTTPRetryOptions) *genai.Client {
	sdk, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: client,
		HTTPOptions: genai.HTTPOptions{BaseURL: "https://generativelanguage.googleapis.com", RetryOptions: retry},
	})
	if err != nil {
		panic(err)
	}
	return sdk
}

var geminiConfig = &genai.GenerateContentConfig{
	MaxOutputTokens:   60,
	SystemInstruction: genai.NewContentFromText("You are brief.", genai.RoleUser),
	CandidateCount:    2,
}

var geminiPrompt = genai.Text("What is the weather in Paris?")

func geminiShown(response *genai.GenerateContentResponse, err error) string {
	if err != nil {
		return shownError(err, nil)
	}
	text, err := json.Marshal(response)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func geminiWhole(retry *genai.HTTPRetryOptions) func(context.Context, *http.Client) []string {
	return func(ctx context.Context, client *http.Client) []string {
		return []string{geminiShown(newGemini(ctx, client, retry).Models.GenerateContent(ctx, model, geminiPrompt, geminiConfig))}
	}
}

func geminiStreamed(ctx context.Context, client *http.Client) (shown []string) {
	for response, err := range newGemini(ctx, client, nil).Models.GenerateContentStream(ctx, model, geminiPrompt, geminiConfig) {
		shown = append(shown, geminiShown(response, err))
	}
	return append(shown, "end")
}

var geminiCalls = []sdkCall{
	{"generate", geminiWhole(nil)},
	{"generate-retried", geminiWhole(&genai.HTTPRetryOptions{})},
	{"stream", geminiStreamed},
}

func TestGemini(t *testing.T) {
	transparent(t, geminiCalls, replies)
	transparent(t, geminiCalls, refusals(dialect.Gemini))
	transparent(t, geminiCalls, []sdkReply{
		{"503", true, llmhttptest.Always(mockprovider.Reply{Status: 503})},
		{"mid-stream-error", false, llmhttptest.Always(mockprovider.Reply{Fault: mockprovider.FaultError, After: 6})},
	})
}

// A day's limit is no matter of seconds, whatever the provider says: who tries again
// gets that answer from the limiter, and the provider gets one call.
func TestGeminiDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := llmhttptest.New(t, llmhttptest.Script(mockprovider.Reply{Status: 429, Code: "GenerateRequestsPerDayPerProjectPerModel-FreeTier", RetryAfter: 3 * time.Second}), ample)
		for range 3 {
			shown := geminiWhole(nil)(t.Context(), w.Client)
			if !strings.Contains(shown[0], "429") {
				t.Error(shown)
			}
		}
		w.Settled()
		if sent := w.Server.Totals()[model]; sent.Refused != 1 {
			t.Errorf("%+v", sent)
		}
	})
}
