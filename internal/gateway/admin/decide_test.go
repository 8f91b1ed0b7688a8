package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/project"
)

func (r *rig) decides(t testing.TB, q Question) Answer {
	t.Helper()
	text, _ := json.Marshal(q)
	return as[Answer](t, r.want(t, 200, "POST", "/v1/decide", string(text)))
}

// A question is answered as the same call would be, and charges nothing.
func TestDecide(t *testing.T) {
	r := newRig(t, asking)
	for range 3 { // nothing is charged
		if a := r.decides(t, Question{Model: "once"}); !a.Allowed || a.Code != "ok" || a.Quota != "once" || len(a.Limits) == 0 || a.RetryAfter != 0 {
			t.Fatalf("%+v", a)
		}
	}
	r.asks(t, "once")
	a := r.decides(t, Question{Model: "once"})
	if a.Allowed || a.Code != "rpm_exceeded" || a.Limit != "max_rpm" || a.Scope != "model" || a.Owner != "once" || a.RetryAfter <= 0 || a.RetryAfter > 65 || a.Never || !strings.Contains(a.Reason, "0 of its 1 requests") {
		t.Errorf("%+v", a)
	}
	r.asks(t, "gpt-4o", "X-Project-ID", "acme")
	if a := r.decides(t, Question{Model: "gpt-4o", Project: "acme/deep/down"}); a.Allowed || a.Limit != "requests_per_day" || a.Scope != "project" || a.Owner != "acme" || a.Code != "project_exceeded" {
		t.Errorf("%+v", a)
	}
	r.asks(t, "gpt-4o", "X-Project-ID", "people", "X-User-ID", "ann")
	if a := r.decides(t, Question{Model: "gpt-4o", Project: "people", User: "ann"}); a.Allowed || a.Scope != "user" || a.Owner != "people/ann" {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "gpt-4o", Project: "people", User: "bob"}); !a.Allowed {
		t.Errorf("%+v", a)
	}
	r.asks(t, "gpt-4o", "X-Run-ID", "r-1")
	if a := r.decides(t, Question{Model: "gpt-4o", Run: "r-1"}); a.Allowed || a.Scope != "run" || a.Owner != "r-1" {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "few", Tokens: 41}); a.Allowed || !a.Never || a.Limit != "max_tpm" || a.RetryAfter != 0 {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "few", Input: 30, Output: 10}); !a.Allowed {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "daily", Project: "narrow"}); a.Allowed || a.Code != gateway.CodeForbidden || !a.Never || !strings.Contains(a.Reason, `may not call "daily", but only gpt-4o`) {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "daily", Project: "rich"}); a.Allowed || a.Code != gateway.CodeUnpriced || !strings.Contains(a.Reason, "the price of model") {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "gpt-4o", Project: "rich", Tokens: 31}); a.Allowed || a.Limit != "dollars" || !a.Never { // 31 tokens of output at $10 a million
		t.Errorf("%+v", a)
	}
	for subject, q := range map[string]Question{
		"projects/team":  {Model: "gpt-4o", Project: "team/search"},
		"quotas/shared":  {Model: "shared"},
		"projects/other": {Model: "openai/unheard-of", Project: "other"},
	} {
		if a := r.decides(t, q); !a.Allowed {
			t.Errorf("%s: %+v", subject, a)
		}
		r.want(t, 200, "PATCH", "/v1/"+subject, `{"paused": true}`)
		if a := r.decides(t, q); a.Allowed || a.Code != "paused" || a.Limit != gateway.LimitPaused || a.Owner != subject[strings.Index(subject, "/")+1:] || a.Never {
			t.Errorf("%s: %+v", subject, a)
		}
	}
}

// Limits in shadow deny nothing: neither a question nor a call.
func TestDecideInShadow(t *testing.T) {
	r := newRig(t, asking)
	r.asks(t, "once", "X-Project-ID", "acme")
	if a := r.decides(t, Question{Model: "once", Project: "acme"}); a.Allowed {
		t.Fatalf("%+v", a)
	}
	r.want(t, 200, "PATCH", "/v1/projects/acme", `{"mode": "shadow"}`)
	if a := r.decides(t, Question{Model: "gpt-4o", Project: "acme"}); !a.Allowed {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "once", Project: "acme"}); a.Allowed || a.Owner != "once" { // the model is not in shadow
		t.Errorf("%+v", a)
	}
	r.want(t, 200, "PATCH", "/v1/quotas/once", `{"mode": "shadow"}`)
	if a := r.decides(t, Question{Model: "once", Project: "acme"}); !a.Allowed {
		t.Errorf("%+v", a)
	}
	status, id := r.asks(t, "once", "X-Project-ID", "acme")
	e := r.explained(t, id)
	model, day := e.limit(t, "model", "once", "max_rpm"), e.limit(t, "project", "acme", "requests_per_day")
	if status != 200 || !model.Shadow || model.Enough || !day.Shadow || day.Enough || day.Remaining != 0 || day.Needed != 1 || !strings.Contains(e.Sentence, "would have denied it, and is in shadow") {
		t.Errorf("%d %+v", status, e)
	}
}

// A key lends its project, its limit and its models to a question.
func TestDecideForAKey(t *testing.T) {
	r := newRig(t, asking)
	_, key, err := r.gateway.Keys().CreateKey(t.Context(), keys.Key{Project: "people", Limit: project.Limit{TokensPerMinute: 50}, Models: []string{"gpt-4o"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.decides(t, Question{Model: "gpt-4o", Key: key.ID, Tokens: 50}); !a.Allowed {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "gpt-4o", Key: key.ID, Tokens: 51}); a.Allowed || !a.Never || a.Scope != "key" || a.Owner != key.ID {
		t.Errorf("%+v", a)
	}
	if a := r.decides(t, Question{Model: "daily", Key: key.ID}); a.Allowed || a.Code != gateway.CodeForbidden {
		t.Errorf("%+v", a)
	}
	for body, says := range map[string]string{
		`{"model": "gpt-4o", "key": "nobody"}`:                            "there is no key",
		`{"model": "gpt-4o", "key": "` + key.ID + `", "project": "team"}`: `belongs to project \"people\"`,
		`{"model": ""}`: "model is empty",
		`{"provider": "openai", "model": "` + strings.Repeat("-1", 20_000) + `"}`: "at most 512 bytes",
		`{"provider": "openai", "model": "a\u0007"}`:                              "no control characters",
		`{"model": "gpt-4o", "provider": "nobody"}`:                               "it must be one of anthropic, gemini, local, openai",
		`{"model": "gpt-4o", "project": "a b"}`:                                   "project",
		`{"model": "gpt-4o", "run": "\u0000"}`:                                    "run",
		`{"model": "gpt-4o", "tokens": -1}`:                                       "from 0 to",
		`{"model": "gpt-4o", "tokens": 1e30}`:                                     "whole number",
		`{"model": "gpt-4o", "tokens": 1, "input_tokens": 1}`:                     "or the other two",
		`{"model": "gpt-4o", "colour": "red"}`:                                    "the fields are provider, model",
	} {
		if a := r.want(t, 400, "POST", "/v1/decide", body); !strings.Contains(a.text, says) {
			t.Errorf("%s: %s", body, a.text)
		}
	}
}

// Without a provider, a model is found by the name of its quota, or at the only provider that has it.
func TestDecideFindsTheProvider(t *testing.T) {
	r := newRig(t, `
state: memory
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 5}, both: {max_rpm: 6}}}
  mine: {base_url: MOCK, kind: openai, models: {llama: {max_rpm: 7, aliases: [best]}, both: {max_rpm: 8}}, deployments: {eu: {base_url: MOCK}, us: {base_url: MOCK}}}
`)
	for model, quota := range map[string]string{
		"gpt-4o": "gpt-4o", "llama": "mine/llama@eu", "best": "mine/llama@eu", "mine/llama": "mine/llama@eu", "mine/llama@us": "mine/llama@eu", "openai/new": "openai/new",
		"mine/both": "mine/both@eu", "both": "both",
	} {
		if a := r.decides(t, Question{Model: model}); a.Quota != quota || !a.Allowed {
			t.Errorf("%s: %+v", model, a)
		}
	}
	if a := r.want(t, 400, "POST", "/v1/decide", `{"model": "unheard-of"}`); !strings.Contains(a.text, "provider must be one of anthropic, gemini, local, mine, openai") {
		t.Error(a.text)
	}
}

// A question is answered with yes if and only if the same call then passes, whatever the limits are.
func TestDecideAgreesWithCalls(t *testing.T) {
	asked := 0
	rapid.Check(t, func(rt *rapid.T) {
		some := func(name string, field string, least, most int) string {
			n := rapid.IntRange(least-1, most).Draw(rt, name)
			if n < least {
				return ""
			}
			return fmt.Sprintf("%s: %d, ", field, n)
		}
		level := func(name string) string {
			return "{" + some(name+" rpm", "requests_per_minute", 1, 6) + some(name+" tpm", "tokens_per_minute", 30, 300) + some(name+" day", "requests_per_day", 1, 9) +
				some(name+" weight", "weight", 1, 5) + some(name+" dollars", "dollars", 1, 2) + "}"
		}
		yaml := fmt.Sprintf(`
state: memory
providers:
  openai:
    base_url: MOCK
    models:
      m: {max_input_tpm: 1000000, max_output_tpm: 1000000, %s}
      n: {max_input_tpm: 1000000, max_output_tpm: 1000000, %s}
prices:
  m: {input: 2000, output: 10000}
  n: {input: 1, output: 1}
defaults: {max_wait: 0s}
projects:
  a: %s
  a/b: %s
  c: %s
`, some("m rpm", "max_rpm", 1, 8)+some("m tpm", "max_tpm", 40, 400), some("n rpm", "max_rpm", 1, 4)+some("n rpd", "max_rpd", 1, 9), level("a"), level("a/b"), level("c"))
		type step struct{ project, model string }
		var steps []step
		for range 12 {
			steps = append(steps, step{rapid.SampledFrom([]string{"a", "a/b", "c", "a/b/d"}).Draw(rt, "project"), rapid.SampledFrom([]string{"m", "n"}).Draw(rt, "model")})
		}
		fault := ""
		t.Run("", func(t *testing.T) { // which closes the gateway at its end
			r := newRig(t, yaml)
			needed := map[step][2]int{} // input and output of the last call
			for _, s := range steps {
				answer := r.decides(t, Question{Model: s.model, Project: s.project, Input: needed[s][0], Output: needed[s][1]})
				status, id := r.asks(t, s.model, "X-Project-ID", s.project)
				e := r.explained(t, id)
				input, output := e.limit(t, "model", s.model, "max_input_tpm").Needed, e.limit(t, "model", s.model, "max_output_tpm").Needed
				before := needed[s]
				if needed[s] = [2]int{int(input), int(output)}; needed[s] != before {
					continue // another call was asked about
				}
				asked++
				if answer.Allowed != (status == 200) || !answer.Allowed && (answer.Limit != e.Decision.Limit || answer.Owner != e.Decision.Owner) {
					fault = fmt.Sprintf("%s of %s: the answer is %+v, and the call ends with %d: %s", s.model, s.project, answer, status, e.Sentence)
					return
				}
			}
		})
		if fault != "" {
			rt.Fatalf("%s\n%s", yaml, fault)
		}
	})
	if asked < 50 {
		t.Errorf("only %d calls were compared", asked)
	}
}
