package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"testing"

	"google.golang.org/genai"
)

// leaveGemini ends the stream that is open.
var leaveGemini func()

// goGemini makes a call with Gemini's SDK for Go.
func goGemini(t *testing.T, k ask) (a answer) {
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: k.Key, Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: k.Base, Headers: http.Header{"X-Mock": {k.Mock}}, RetryOptions: retryOptions(k.Retries)},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = geminiCalls[k.Call](t.Context(), client.Models, k, &a)
	if said := (genai.APIError{}); errors.As(err, &said) {
		a.Error = &fault{Type: fmt.Sprintf("%T", said), Status: said.Code, Message: said.Error()}
	} else if err != nil {
		a.Error = &fault{Message: err.Error()}
	}
	return a
}

// retryOptions are those of who wants to try again; the SDK does not by itself.
func retryOptions(retries int) *genai.HTTPRetryOptions {
	if retries == 0 {
		return nil
	}
	return &genai.HTTPRetryOptions{Attempts: genai.Ptr(int32(1 + retries)), InitialDelay: genai.Ptr(0.05), ExpBase: genai.Ptr(2.0), Jitter: genai.Ptr(0.0)}
}

var geminiCalls = map[string]func(context.Context, *genai.Models, ask, *answer) error{
	"whole": func(ctx context.Context, m *genai.Models, k ask, a *answer) error {
		return showOne(a)(m.GenerateContent(ctx, k.Model, genai.Text(question), contentConfig()))
	},
	"stream": func(ctx context.Context, m *genai.Models, k ask, a *answer) error {
		return showEach(m.GenerateContentStream(ctx, k.Model, genai.Text(question), contentConfig()), a)
	},
	"tools": func(ctx context.Context, m *genai.Models, k ask, a *answer) error {
		config := contentTools()
		first, err := m.GenerateContent(ctx, k.Model, genai.Text(question), withTool(config))
		if err != nil {
			return err
		}
		a.show(first)
		turn := first.Candidates[0].Content
		result := genai.NewContentFromFunctionResponse(turn.Parts[0].FunctionCall.Name, map[string]any{"output": degrees}, genai.RoleUser)
		return showOne(a)(m.GenerateContent(ctx, k.Model, append(genai.Text(question), turn, result), config))
	},
	"tools-stream": func(ctx context.Context, m *genai.Models, k ask, a *answer) error {
		return showEach(m.GenerateContentStream(ctx, k.Model, genai.Text(question), withTool(contentTools())), a)
	},
	"count": func(ctx context.Context, m *genai.Models, k ask, a *answer) error {
		return showOne(a)(m.CountTokens(ctx, k.Model, genai.Text(question), nil))
	},
	"open": func(ctx context.Context, m *genai.Models, k ask, a *answer) error {
		config := contentConfig()
		config.MaxOutputTokens = 5000
		ctx, cancel := context.WithCancel(ctx)
		next, stop := iter.Pull2(m.GenerateContentStream(ctx, k.Model, genai.Text(question), config))
		leaveGemini = func() { cancel(); stop() }
		for range k.Pieces {
			response, err, _ := next()
			if err != nil {
				return err
			}
			a.show(response)
		}
		return nil
	},
	"leave": func(context.Context, *genai.Models, ask, *answer) error { leaveGemini(); return nil },
}

func contentConfig() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText(brief, genai.RoleUser), MaxOutputTokens: 60}
}

func contentTools() *genai.GenerateContentConfig {
	config := contentConfig()
	config.Tools = []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: tool, ParametersJsonSchema: schema}}}}
	return config
}

// withTool makes the mock want the tool.
func withTool(config *genai.GenerateContentConfig) *genai.GenerateContentConfig {
	telling := *config
	telling.HTTPOptions = &genai.HTTPOptions{Headers: http.Header{"X-Mock": {"tool=" + tool}}}
	return &telling
}

// showOne shows the result of a call, if there is one.
func showOne(a *answer) func(any, error) error {
	return func(result any, err error) error {
		if err == nil {
			a.show(result)
		}
		return err
	}
}

// showEach shows what a stream brings.
func showEach(stream iter.Seq2[*genai.GenerateContentResponse, error], a *answer) error {
	for response, err := range stream {
		if err != nil {
			return err
		}
		a.show(response)
	}
	return nil
}
