package gateway_test

import (
	"io"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/price"
)

// aDollarACall is prices with which a second call exceeds the project's total of a dollar.
const aDollarACall = `
prices:
  gpt-test: {input: 0, output: 0, request: 1}
  claude-test: {input: 0, output: 0, request: 1}
  gemini-test: {input: 0, output: 0, request: 1}
projects: {acme: {dollars: 1}}
`

// A budget that is used up for good gets a 402 that names it. SDKs show it as an error of their own, and
// do not try again.
func TestBudgetUsedUp(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample, aDollarACall))
		if a := s.do(t, r.through(s, "whole")); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		for _, call := range []string{"whole", "stream"} {
			again := r.through(s, call)
			again.Retries = 2
			got := s.do(t, again).Error
			if got == nil || got.Status != 402 || !strings.Contains(got.Message, `project \"acme\"`) && !strings.Contains(got.Message, `project "acme"`) {
				t.Fatalf("%s: %+v", call, got)
			}
		}
		r.idle(t)
		var outcomes []gateway.Outcome
		for _, rec := range r.Recent("", 0, 100) {
			outcomes = append(outcomes, rec.Outcome)
		}
		if len(outcomes) != 3 || outcomes[1] != gateway.Denied || outcomes[2] != gateway.Denied {
			t.Errorf("what became of the calls: %v", outcomes)
		}
	})
}

// batchPrices are half a dollar for a million tokens of input in a batch, and a dollar for those of output.
const batchPrices = `
prices:
  gpt-test: {input: 1, output: 2, batch: 50%}
  claude-test: {input: 1, output: 2, batch: 50%}
projects: {acme: {dollars: 100}}
`

// spent returns what the project has spent of its $100.
func (r *rig) spent(t *testing.T) price.Amount {
	t.Helper()
	r.idle(t)
	d, err := r.Projects().Peek(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	return 100*price.Dollar - price.Amount(d.Windows()[0].Remaining)
}

// batchCost returns what the calls of a model have cost in a batch.
func (r *rig) batchCost(model string) price.Amount {
	used := r.provider.Totals()[model]
	return price.Amount(used.Input*500 + used.Output*1000)
}

// OpenAI's SDK uploads the calls of a batch, submits it and fetches its results, by which it is settled.
func TestBatchOfOpenAI(t *testing.T) {
	r := newRig(t, with(ample, batchPrices))
	client := openai.NewClient(option.WithBaseURL(r.url+"/openai/v1"), option.WithAPIKey(r.key))
	const call = `{"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-test","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}`
	file, err := client.Files.New(t.Context(), openai.FileNewParams{
		File: openai.File(strings.NewReader(call+"\n"+strings.Replace(call, `"c"`, `"d"`, 1)), "batch.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch,
	})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := client.Batches.New(t.Context(), openai.BatchNewParams{
		InputFileID: file.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h,
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, r.Recent("", 0, 10))
	}
	if n := r.spent(t); n < 2*100*1000 {
		t.Errorf("%v are reserved: two answers of 100 tokens may cost more", n)
	}
	if batch, err = client.Batches.Get(t.Context(), batch.ID); err != nil || batch.Status != openai.BatchStatusCompleted {
		t.Fatalf("%v, %v", batch, err)
	}
	results, err := client.Files.Content(t.Context(), batch.OutputFileID)
	if err != nil {
		t.Fatal(err)
	}
	defer results.Body.Close()
	if text, err := io.ReadAll(results.Body); err != nil || strings.Count(string(text), "custom_id") != 2 {
		t.Errorf("%s, %v", text, err)
	}
	if got, want := r.spent(t), r.batchCost("gpt-test"); got != want || want == 0 {
		t.Errorf("the batch has cost %v, want %v", got, want)
	}
}

// Anthropic's SDK submits a batch with its calls in the body, and streams its results.
func TestBatchOfAnthropic(t *testing.T) {
	r := newRig(t, with(ample, batchPrices))
	client := anthropic.NewClient(anthropicoption.WithBaseURL(r.url+"/anthropic"), anthropicoption.WithAPIKey(r.key))
	batch, err := client.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: []anthropic.MessageBatchNewParamsRequest{{
		CustomID: "c",
		Params: anthropic.MessageBatchNewParamsRequestParams{
			Model: "claude-test", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.spent(t); n < 100*1000 {
		t.Errorf("%v are reserved: an answer of 100 tokens may cost more", n)
	}
	if batch, err = client.Messages.Batches.Get(t.Context(), batch.ID, anthropic.MessageBatchGetParams{}); err != nil || batch.ProcessingStatus != anthropic.MessageBatchProcessingStatusEnded {
		t.Fatalf("%v, %v", batch, err)
	}
	results, n := client.Messages.Batches.ResultsStreaming(t.Context(), batch.ID, anthropic.MessageBatchResultsParams{}), 0
	for results.Next() {
		n++
	}
	if err := results.Err(); err != nil || n != 1 {
		t.Errorf("%d results, %v", n, err)
	}
	if got, want := r.spent(t), r.batchCost("claude-test"); got != want || want == 0 {
		t.Errorf("the batch has cost %v, want %v", got, want)
	}
}
