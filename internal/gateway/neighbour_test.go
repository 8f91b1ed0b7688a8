package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// neighbours is a gateway whose projects share a model.
const neighbours = `
providers:
  openai: {base_url: MOCK, models: {gpt-5.5: {max_tpm: 2_000_000}}}
prices:
  gpt-5.5: {input: 5, cached_input: 0.50, output: 30}
defaults: {max_wait: 0s}
projects:
  neighbour: {}
  day: {dollars_per_day: 20, reserve: expected}
  month: {dollars_per_month: 5_000, reserve: expected}
  free: {}
  small: {dollars_per_day: 1, reserve: expected}
`

// reporting is a provider that reports the input that the prompt of a call asks for, such as the
// prompt: "report 400000".
var reporting = mockprovider.Config{Script: func(c mockprovider.Call) (reply mockprovider.Reply) {
	if at := strings.Index(string(c.Body), "report "); at >= 0 {
		fmt.Sscanf(string(c.Body[at:]), "report %d", &reply.Input)
	}
	return reply
}}

// responses is the path of OpenAI's responses.
const responses = "/openai/v1/responses"

// asks returns a request of the Responses API. words is the approximate length of its prompt.
func asks(words int) string {
	return `{"model":"gpt-5.5","input":"` + strings.Repeat(" word", words) + `"}`
}

// One call of a neighbour must not lock others out, whatever the provider reports of it. Once, a
// prompt of two characters that continued 400,000 tokens taught the model's calls thousands of input
// tokens for each token of a prompt: a project with $20 a day got the answer that its calls can never pass,
// and a model of 2,000,000 tokens a minute let 0 of 10 calls pass.
func TestOneCallOfANeighbourLocksNobodyOut(t *testing.T) {
	const hidden = `{"model":"gpt-5.5","input":"report 400000","previous_response_id":"resp_0"}`
	for _, c := range []struct{ name, poison, victim string }{
		{"$20 a day, after a prompt with a hidden context", hidden, "requests_per_day"},
		{"a model's tokens a minute, after a prompt with a hidden context", hidden, "free"},
		{"$20 a day, after a prompt whose context is not told", `{"model":"gpt-5.5","input":"report 400000"}`, "requests_per_day"},
		{"a model's tokens a minute, after the same", `{"model":"gpt-5.5","input":"report 400000"}`, "free"},
		{"$5,000 a month, after a usage of 2^32-1", `{"model":"gpt-5.5","input":"report 4294967295"}`, "month"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the second gateway is the first one after a restart, which remembers no call
				yaml := neighbours
				if strings.Contains(c.poison, "4294967295") {
					yaml = strings.Replace(yaml, "{max_tpm: 2_000_000}", "{}", 1) // otherwise the usage itself fills the minute
				}
				r := newRig(t, yaml, reporting)
				if a := r.post(t, responses, c.poison, fieldProject, "neighbour"); a.status != http.StatusOK {
					t.Fatalf("%d %s", a.status, a.body)
				}
				r.settled(t)
				for i := range 10 {
					if a := r.post(t, responses, asks(1400), fieldProject, c.victim); a.status != http.StatusOK {
						t.Fatalf("call %d: %d %s", i, a.status, a.body)
					}
				}
			}
		})
	}
}

// A call that states itself that it may cost more than its limit is refused for good.
func TestWhatACallStatesAnswersNever(t *testing.T) {
	r := newRig(t, neighbours, reporting)
	for name, body := range map[string]string{
		"the output that it allows": `{"model":"gpt-5.5","input":"hi","max_output_tokens":1000000}`,
		"its prompt":                asks(9_000_000 / 5),
	} {
		a := r.post(t, responses, body, fieldProject, "small")
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "it can never pass") {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
}

// The calls of a conversation reserve what the provider has stored of it.
func TestAConversationReservesWhatIsStored(t *testing.T) {
	var reserved func()
	r := newRig(t, neighbours, mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
		if reserved != nil {
			reserved()
		}
		return reporting.Script(c)
	}})
	first := r.post(t, responses, `{"model":"gpt-5.5","input":"report 300000"}`, fieldProject, "requests_per_day")
	_, id, _ := strings.Cut(first.body, `"id":"resp_`)
	id, _, ok := strings.Cut(id, `"`)
	if !ok {
		t.Fatalf("the answer has no id: %s", first.body)
	}
	r.settled(t)
	quota := r.last(t).Quota
	before, more := r.limits.Models.Stats(quota).TPM, 0
	reserved = func() { more = r.limits.Models.Stats(quota).TPM - before }
	r.post(t, responses, `{"model":"gpt-5.5","input":"hi","previous_response_id":"resp_`+id+`"}`, fieldProject, "requests_per_day")
	if more < 300_000 {
		t.Errorf("%d tokens are reserved for a call that continues 300,000", more)
	}
}
