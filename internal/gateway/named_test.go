package gateway

import (
	"strings"
	"testing"
)

// A call that names different models in its path, query and body is refused. Once, it was
// charged to the body's model, and servers such as LiteLLM served the other.
func TestACallNamesOneModel(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, `
providers:
  litellm: {base_url: MOCK, models: {cheap: {max_rpm: 1000}, dear: {max_rpm: 1000, aliases: [best]}}}
  gemini: {base_url: MOCK}
  azure: {kind: azure, base_url: MOCK}
`, upstream)
	const litellm = "/litellm/v1/chat/completions"
	cheap, none := `{"model":"cheap","messages":[]}`, `{"messages":[]}`
	for _, c := range []struct {
		path, body string
		want       int
		model      string
	}{
		{litellm + "?model=dear", cheap, 400, ""},
		{litellm + "?a=b&%6dodel=dear", cheap, 400, ""},
		{litellm + "?MODEL=dear", cheap, 400, ""},
		{litellm + "?model_id=dear", cheap, 400, ""},
		{litellm + "?deployment=dear", cheap, 400, ""},
		{litellm + "?model=cheap&model=dear", cheap, 400, ""},
		{litellm + "?model=cheap&model=dear", none, 400, ""},
		{litellm + "?model=cheap", cheap, 200, "cheap"},
		{litellm + "?model=", cheap, 200, "cheap"},
		{litellm + "?model=dear", none, 400, ""},
		{litellm + "?model=best", none, 400, ""},
		{litellm + "?model=best", `{"model":"best","messages":[]}`, 400, ""},
		{"/litellm/engines/dear/chat/completions", cheap, 400, ""},
		{"/litellm/v1/engines/dear/completions", cheap, 400, ""},
		{"/litellm/Engines/dear/embeddings", cheap, 400, ""},
		{"/litellm/engines/a/dear/chat/completions", cheap, 400, ""},
		{"/litellm/openai/deployments/dear/chat/completions", cheap, 400, ""},
		{"/litellm/openai/deployments/dear/chat/completions", `{"model":"dear","Model":"cheap"}`, 400, ""},
		{"/litellm/engines/dear/chat/completions?model=cheap", none, 400, ""},
		{"/litellm/engines/dear/chat/completions", none, 200, "dear"},
		{"/litellm/engines/best/chat/completions", `{"model":"best"}`, 200, "best"},
		{"/litellm/engines/cheap/chat/completions", cheap, 200, "cheap"},
		{generate, `{"model":"models/gemini-2.5-pro","contents":[]}`, 200, "gemini-2.5-pro"},
		{generate, `{"model":"gemini-2.5-flash","contents":[]}`, 400, ""},
		{"/azure/openai/deployments/mine/chat/completions", `{"model":"gpt-4o"}`, 200, "mine"}, // as Azure's SDKs send it
		{"/azure/openai/deployments/mine/chat/completions?model=gpt-4o", none, 400, ""},
	} {
		a := r.post(t, c.path, c.body)
		if last := r.last(t); a.status != c.want || last.Model != c.model {
			t.Errorf("%s %s: %d of %q; want %d of %q: %s", c.path, c.body, a.status, last.Model, c.want, c.model, a.body)
		}
		if c.path == "/litellm/engines/best/chat/completions" {
			for len(upstream.requests) > 1 {
				<-upstream.requests
				<-upstream.bodies
			}
			if sent, body := <-upstream.requests, <-upstream.bodies; sent.URL.Path != "/engines/dear/chat/completions" || body != `{"model":"dear"}` {
				t.Errorf("sent to %s: %s", sent.URL, body)
			}
		}
	}
}

// A call without a model is charged to a quota, or refused.
func TestCallsWithoutAModelHaveAQuota(t *testing.T) {
	const path, stored = "/openai/v1/responses", `{"prompt":{"id":"pmpt_1"}}`
	for _, c := range []struct {
		models, project string
		want            int
		quota           string
	}{
		{"models: {gpt-6: {max_rpm: 9}}", "", 400, ""},
		{"kind: openai", "", 400, ""}, // this kind has quotas by default
		{`models: {gpt-6: {max_rpm: 9}, "*": {max_rpm: 1}}`, "", 200, "openai/*"},
		{"models: {gpt-6: {max_rpm: 1}, other: {max_rpm: 9}}, unnamed_model: gpt-6", "", 200, "gpt-6"},
		{`models: {gpt-6: {max_rpm: 1}, "*": {max_rpm: 9}}, unnamed_model: gpt-6`, "models: [gpt-6]", 200, "gpt-6"},
		{"models: {gpt-6: {max_rpm: 1}}, unnamed_model: gpt-6", "models: [other]", 403, ""},
		{`models: {gpt-6: {max_rpm: 9}, "*": {max_rpm: 1}}`, "models: [gpt-6]", 403, ""},
		{`models: {gpt-6: {max_rpm: 9}, "*": {max_rpm: 1}}`, `models: ["*"]`, 200, "openai/*"},
	} {
		upstream := newSeen()
		r := newRigBefore(t, "providers: {openai: {base_url: MOCK, "+c.models+"}}\ndefaults: {max_wait: 0s, "+c.project+"}\n", upstream)
		a := r.post(t, path, stored)
		if last := r.last(t); a.status != c.want || last.Quota != c.quota || last.Model != "" {
			t.Errorf("%s %s: %d of %q: %s", c.models, c.project, a.status, last.Quota, a.body)
		}
		if c.want != 200 {
			continue
		}
		if got := <-upstream.bodies; got != stored {
			t.Errorf("%s: sent %s", c.models, got)
		}
		if a := r.post(t, path, stored); a.status != 429 {
			t.Errorf("%s: the second is %d %s", c.models, a.status, a.body)
		}
	}
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK, models: {gpt-6: {max_rpm: 9}}}}\ndefaults: {models: [gpt-6, free]}\n", newSeen())
	for _, model := range []string{"gpt-6", "free"} { // OpenAI ignores a model in the query, so that must not choose the quota
		if a := r.post(t, path+"?model="+model, stored); a.status != 400 {
			t.Errorf("with %s in the query: %d %s", model, a.status, a.body)
		}
	}
	r = newRigBefore(t, "providers: {vllm: {base_url: MOCK, models: {m: {aliases: [n]}}}}\n", newSeen())
	if a := r.post(t, "/vllm/v1/chat/completions", `{"messages":[]}`); a.status != 200 {
		t.Errorf("where there are no quotas: %d %s", a.status, a.body)
	}
}

// Names are checked before they are compared, which takes time that grows with the square of
// their length: a body of 420 KB once kept a core busy for twelve seconds.
func TestLongNamesAreNotCompared(t *testing.T) {
	r := newRigBefore(t, "providers: {o: {kind: ollama, base_url: MOCK, models: {m: {max_rpm: 9}}}}\n", newSeen())
	long := strings.Repeat("http://", 100) + "m"
	for path, body := range map[string]string{
		"/o/engines/m/chat/completions":        `{"model":"` + long + `"}`,
		"/o/v1/chat/completions":               `{"model":"` + long + `"}`,
		"/o/v1/chat/completions?model=" + long: `{"model":"m"}`,
		"/o/api/chat?model=" + long:            `{}`,
	} {
		if a := r.post(t, path, body); a.status != 400 || !strings.Contains(a.body, "at most 512 bytes") {
			t.Errorf("%.60s: %d %s", path, a.status, a.body)
		}
	}
}
