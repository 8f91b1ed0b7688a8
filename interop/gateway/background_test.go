package gateway_test

import (
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"dappco.re/go/core/go-ratelimit/price"
)

// OpenAI's SDK makes calls in the background, and polls or streams their responses, which settle them.
func TestBackgroundOfOpenAI(t *testing.T) {
	r := newRig(t, with(ample, batchPrices))
	client := openai.NewClient(option.WithBaseURL(r.url+"/openai/v1"), option.WithAPIKey(r.key))
	cost := func() price.Amount {
		used := r.provider.Totals()["gpt-test"]
		return price.Amount(used.Input*1000 + used.Output*2000)
	}
	begin := func() *responses.Response {
		begun, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
			Model: "gpt-test", Background: openai.Bool(true), MaxOutputTokens: openai.Int(1000),
			Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)},
		})
		if err != nil || begun.Status != responses.ResponseStatusQueued {
			t.Fatalf("%+v, %v", begun, err)
		}
		return begun
	}

	polled := begin()
	if n := r.spent(t); n < 1000*2000 {
		t.Errorf("%v are reserved: an answer of 1,000 tokens may cost more", n)
	}
	for polled.Status != responses.ResponseStatusCompleted {
		var err error
		if polled, err = client.Responses.Get(t.Context(), polled.ID, responses.ResponseGetParams{}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := r.spent(t), cost(); got != want || want == 0 {
		t.Errorf("polled: the call has cost %v, want %v", got, want)
	}

	asked := option.WithQuery("stream", "true") // the SDK says it in a body
	stream := client.Responses.GetStreaming(t.Context(), begin().ID, responses.ResponseGetParams{}, asked)
	last := ""
	for stream.Next() {
		last = stream.Current().Type
	}
	if err := stream.Err(); err != nil || last != "response.completed" {
		t.Errorf("the stream ends with %q, %v", last, err)
	}
	if got, want := r.spent(t), cost(); got != want {
		t.Errorf("streamed: both calls have cost %v, want %v", got, want)
	}

	cancelled, err := client.Responses.Cancel(t.Context(), begin().ID)
	if err != nil || cancelled.Status != responses.ResponseStatusCancelled {
		t.Errorf("%+v, %v", cancelled, err)
	}
	if n := r.spent(t) - cost(); n < 900*2000 {
		t.Errorf("%v are charged for a call that was cancelled and has told no usage", n)
	}
}
