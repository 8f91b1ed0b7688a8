package dialect

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A call of one project raises what is reserved for the first calls of another by a small factor at
// most, and usage that cannot be true by nothing at all, whatever the prompt of the other is.
func TestOthersTeachLittle(t *testing.T) {
	for _, taught := range []struct {
		name     string
		used     llm.Usage
		nothing  bool // the call must not move anything
		repeated int
	}{
		{"a prompt of two tokens that has used 400,000", llm.Usage{Input: 400_000, Output: 10, Exact: true}, true, 1},
		{"the same call many times", llm.Usage{Input: 400_000, Output: 10, Exact: true}, true, 100},
		{"an input of 2^32-1", llm.Usage{Input: 1<<32 - 1, Output: 10, Exact: true}, true, 1},
		{"an output of 2^32-1", llm.Usage{Input: 10, Output: 1<<32 - 1, Exact: true}, true, 1},
		{"an overhead", llm.Usage{Input: 900, Output: 10, Exact: true}, false, 100},
		{"long answers", llm.Usage{Input: 10, Output: 2000, Exact: true}, false, 100},
	} {
		t.Run(taught.name, func(t *testing.T) {
			var e Estimator
			poison, _ := spending(2, 1, 0)
			for range taught.repeated {
				e.Learn("neighbour", &poison, taught.used)
			}
			for _, prompt := range []float64{2, 100, 1000, 100_000} {
				request, _ := spending(prompt, 1, 0)
				before, got := new(Estimator).Estimate("victim", &request), e.Estimate("victim", &request)
				if got.Input > 4*before.Input+1024 || got.Output > 8*before.Output {
					t.Errorf("a prompt of %v is expected to use %+v, and %+v without the neighbour", prompt, got, before)
				}
				if taught.nothing && (got.Input > before.Input || got.Output > before.Output) {
					t.Errorf("a prompt of %v is expected to use %+v, and %+v without the neighbour", prompt, got, before)
				}
				if most := e.Floor("victim", &request); most > 8*before.Output {
					t.Errorf("at least %d tokens are charged for a prompt of %v", most, prompt)
				}
			}
		})
	}
}

// Usage that cannot be true teaches the project itself nothing, either.
func TestImpossibleUsageTeachesNothing(t *testing.T) {
	request, _ := spending(1000, 1, 0)
	var e Estimator
	before := e.Estimate("p", &request)
	e.Learn("p", &request, llm.Usage{Input: 1<<32 - 1, Output: 1<<32 - 1, Exact: true})
	if got := e.Estimate("p", &request); got != before {
		t.Errorf("from %+v to %+v", before, got)
	}
}

// What a provider has stored of a conversation is expected of the calls that continue it, and of no
// other call of the project.
func TestStoredContextsAreLearnedForThemselves(t *testing.T) {
	begins := Request{Endpoint: Endpoint{Provider: OpenAI, API: Responses, Model: "m"}, Prompt: 2, Answers: 1}
	continues, other := begins, begins
	continues.Context, other.Context = "resp_1", "resp_unknown"
	var e Estimator
	before := e.Estimate("p", &begins)
	e.LearnContext("p", &begins, "resp_1", llm.Usage{Input: 300_000, Output: 5000, Exact: true})
	if got := e.Estimate("p", &continues); got.Input < 305_000 || got.Input > 305_000+before.Input {
		t.Errorf("a call that continues 305,000 tokens is expected to use %+v", got)
	}

	used := llm.Usage{Input: 305_010, Output: 20, Exact: true}
	e.Learn("p", &continues, used)
	e.LearnContext("p", &continues, "resp_2", used)
	for _, id := range []string{"resp_1", "resp_2"} {
		continues.Context = id
		if got := e.Estimate("p", &continues); got.Input < 305_030 {
			t.Errorf("a call that continues %s is expected to use %+v", id, got)
		}
	}
	for name, r := range map[string]*Request{"a call that continues nothing": &begins, "a call that continues something else": &other} {
		if got := e.Estimate("p", r); got.Input > before.Input {
			t.Errorf("%s is expected to use %+v, and %+v before", name, got, before)
		}
	}
	if got := e.Estimate("q", &continues); got.Input > before.Input {
		t.Errorf("another project is expected to use %+v", got)
	}
}

// A cut-off or impossible response says nothing of what is stored, and the number of contexts that are
// remembered is bounded.
func TestStoredContextsAreBounded(t *testing.T) {
	request := Request{Endpoint: Endpoint{Provider: OpenAI, API: Responses, Model: "m"}, Prompt: 2, Answers: 1}
	var e Estimator
	for _, used := range []llm.Usage{{Input: 1000, Output: 10}, {Input: -1, Output: 10, Exact: true}, {Input: 1 << 32, Output: 10, Exact: true}} {
		e.LearnContext("p", &request, "resp_1", used)
	}
	if len(e.contexts.young) > 0 {
		t.Error("it has learned from a response that has not reported its usage")
	}
	for i := range 3 * contextGeneration {
		e.LearnContext("p", &request, fmt.Sprint(i), llm.Usage{Input: 1000, Output: 10, Exact: true})
	}
	if n := len(e.contexts.young) + len(e.contexts.old); n > 2*contextGeneration {
		t.Errorf("%d contexts are remembered", n)
	}
}

func TestReadsStoredContexts(t *testing.T) {
	for _, test := range []struct {
		api        API
		body, want string
	}{
		{Responses, `{"model":"m","input":"hi","previous_response_id":"resp_1"}`, "resp_1"},
		{Responses, `{"model":"m","input":"hi","previous_response_id":null}`, ""},
		{Responses, `{"model":"m","input":"hi","conversation":"conv_1"}`, "conv_1"},
		{Responses, `{"model":"m","input":"hi","conversation":{"id":"conv_1"}}`, "conv_1"},
		{Responses, `{"model":"m","input":"hi","conversation":{"id":"conv_1"},"previous_response_id":null}`, "conv_1"},
		{Chat, `{"model":"m","messages":[],"conversation":"conv_1"}`, ""},
		{Generate, `{"contents":[],"cachedContent":"cachedContents/1"}`, "cachedContents/1"},
		{Generate, `{"contents":[],"cached_content":"cachedContents/1"}`, "cachedContents/1"},
		{CohereChat, `{"message":"hi","conversation_id":"c"}`, "c"},
		{Responses, `{"model":"m","input":"hi"}`, ""},
	} {
		r, err := Endpoint{API: test.api}.Read([]byte(test.body))
		if err != nil || r.Context != test.want {
			t.Errorf("%s: %q, %v; want %q", test.body, r.Context, err, test.want)
		}
	}
}
