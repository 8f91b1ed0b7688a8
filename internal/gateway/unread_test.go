package gateway

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
)

const several = `
providers:
  openai: {base_url: MOCKFLAGS}
  anthropic: {base_url: MOCKFLAGS}
  gemini: {base_url: MOCKFLAGS}
  router: {kind: openrouter, base_url: MOCKFLAGS}
  mistral: {kind: mistral, base_url: MOCKFLAGS}
  azure: {kind: azure, base_url: MOCKFLAGS}
  team: {kind: vertex, base_url: MOCKFLAGS}
  local: {kind: ollama, base_url: MOCKFLAGS}
  own: {base_url: MOCKFLAGS}
`

// withFlags returns several providers with more fields.
func withFlags(flags string) string { return strings.ReplaceAll(several, "MOCKFLAGS", "MOCK"+flags) }

// Credentials with which a client would call the provider past the gateway are not created through it,
// unless the configuration says so.
func TestCredentialsAreNotCreated(t *testing.T) {
	upstream, allowing := newSeen(), newSeen()
	r := newRigBefore(t, withFlags(""), upstream)
	allowed := newRigBefore(t, withFlags(", allow_credentials: true"), allowing)
	for _, c := range []string{
		"POST /openai/v1/realtime/client_secrets", "POST /openai/v1/realtime/sessions", "POST /openai/v1/realtime/transcription_sessions",
		"POST /openai/v1/realtime/calls", "POST /openai/v1/chatkit/sessions", "POST /openai/V1/Realtime/Client_Secrets/", "POST /openai/v1/realtime//sessions",
		"POST /openai/v1/organization/admin_api_keys", "POST /openai/v1/organization/projects/p/service_accounts", "POST /anthropic/v1/organizations/api_keys/k",
		"POST /azure/openai/realtimeapi/sessions", "POST /gemini/v1alpha/auth_tokens", "POST /gemini/v1beta/authTokens", "POST /gemini/v1beta/auth_tokens:create",
		"POST /router/api/v1/keys", "POST /router/api/v1/auth/keys", "PUT /openai/v1/realtime/client_secrets",
		"POST /own/v1/single-use-token/realtime_scribe", "GET /own/v1/convai/conversation/get-signed-url", "GET /own/v3/token", "POST /own/v1/auth/grant", "POST /own/key/generate",
	} {
		method, path, _ := strings.Cut(c, " ")
		provider, _, _ := strings.Cut(path[1:], "/")
		a := r.do(t, method, path, "")
		if want := `allow_credentials: true for the provider \"` + provider; a.status != 403 || !strings.Contains(a.body, want) || r.last(t).Outcome != Refused {
			t.Errorf("%s: %d %s", c, a.status, a.body)
		}
		if a := allowed.do(t, method, path, "{}"); a.status != 200 {
			t.Errorf("%s, allowed: %d %s", c, a.status, a.body)
		}
	}
	if n := len(upstream.requests); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
	for _, c := range []string{
		"GET /openai/v1/organization/usage/completions", "GET /router/api/v1/key", "GET /router/api/v1/keys", "GET /openai/v1/models", "DELETE /openai/v1/realtime/sessions/s",
		"POST /openai/v1/files", "POST /openai/v1/chatkit/sessions/s/cancel",
	} {
		method, path, _ := strings.Cut(c, " ")
		if a := r.do(t, method, path, ""); a.status != 200 {
			t.Errorf("%s: %d %s", c, a.status, a.body)
		}
	}
}

// A project may not delete or change the models of a server that others use too, unless the configuration
// says so.
func TestModelsOfAServerAreNotChanged(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, withFlags(""), upstream)
	allowed := newRigBefore(t, withFlags(", allow_management: true"), newSeen())
	for _, c := range []string{
		"DELETE /local/api/delete", "POST /local/api/pull", "POST /local/api/push", "POST /local/api/create", "POST /local/API/Copy/", "POST /local/api/blobs/sha256:1",
		"HEAD /local/api/blobs/sha256:1", "DELETE /own/api/delete", "POST /own/v1/load_lora_adapter", "POST /own/models/unload", "POST /own/slots/0",
	} {
		method, path, _ := strings.Cut(c, " ")
		if a := r.do(t, method, path, "{}"); a.status != 403 || method != "HEAD" && !strings.Contains(a.body, "allow_management: true for the provider") {
			t.Errorf("%s: %d %s", c, a.status, a.body)
		}
		if a := allowed.do(t, method, path, "{}"); a.status != 200 {
			t.Errorf("%s, allowed: %d %s", c, a.status, a.body)
		}
	}
	if n := len(upstream.requests); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
	for _, c := range []string{"GET /local/api/tags", "POST /local/api/show", "GET /own/slots", "GET /local/api/ps", "POST /openai/v1/models/load", "DELETE /openai/v1/models/ft"} {
		method, path, _ := strings.Cut(c, " ")
		if a := r.do(t, method, path, ""); a.status != 200 {
			t.Errorf("%s: %d %s", c, a.status, a.body)
		}
	}
}

// Where tokens are limited, a request that may use tokens which the gateway cannot count is denied, as it is
// where dollars are limited. Once, it cost one request and no tokens.
func TestTokensThatCannotBeCounted(t *testing.T) {
	const limits = `
projects: {p: {tokens_per_day: 1_000}, p/inside: {}, q: {requests_per_day: 1_000}, s: {tokens_per_day: 1_000, mode: shadow}}
runs: {tokens: 500}
`
	upstream := newSeen()
	r := newRigBefore(t, withFlags("")+limits, upstream)
	allowed := newRigBefore(t, withFlags(", unknown_endpoints: count")+limits, newSeen())
	if err := r.Projects().SetKeyLimits(map[string]*project.Limit{"k": {TokensPerMonth: 9}}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/openai/v1/whatever", "/openai/v1/realtime/y", "/openai/v1/evals/e/runs", "/openai/v1/realtime/x", "/openai/v1/threads/runs",
		"/gemini/v1beta/models/gemini:asyncBatchEmbedContent", "/gemini/v1beta/models/gemini:predict", "/anthropic/v1/complete",
		"/team/v1/projects/p/locations/l/publishers/meta/models/llama:rawPredict", "/mistral/v1/moderations", "/mistral/v1/fine_tuning/jobs",
	} {
		for _, owner := range []string{"p", "p/inside"} {
			if a := r.post(t, path, "{}", "X-Project-ID", owner); a.status != 403 || !strings.Contains(a.body, `project \"p\" has a limit in tokens`) || !strings.Contains(a.body, "unknown_endpoints: count") {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		if a := r.post(t, path, "{}", "X-Project-ID", "q", "X-Run-ID", "x"); a.status != 403 || !strings.Contains(a.body, `run \"`) {
			t.Errorf("%s of a run: %d %s", path, a.status, a.body)
		}
		if len(upstream.requests) > 0 {
			t.Fatalf("%s was sent", path)
		}
		if a := allowed.post(t, path, "{}", "X-Project-ID", "p"); a.status != 200 {
			t.Errorf("%s, allowed: %d %s", path, a.status, a.body)
		}
		for _, free := range []string{"q", "s"} {
			if a := r.post(t, path, "{}", "X-Project-ID", free); a.status != 200 {
				t.Fatalf("%s of %s: %d %s", path, free, a.status, a.body)
			}
			<-upstream.requests
			<-upstream.bodies
		}
	}
	for _, c := range []string{
		"GET /openai/v1/models", "POST /openai/v1/files", "POST /openai/v1/moderations", "POST /openai/v1/uploads/u/complete",
		"POST /openai/v1/conversations", "POST /anthropic/v1/messages/count_tokens", "POST /gemini/v1beta/models/gemini:countTokens", "DELETE /openai/v1/files/f",
		"POST /local/api/show", "POST /mistral/v1/agents",
	} {
		method, path, _ := strings.Cut(c, " ")
		if a := r.do(t, method, path, "{}", "X-Project-ID", "p"); a.status != 200 {
			t.Errorf("%s: %d %s", c, a.status, a.body)
		}
	}
}

// The calls of Gemini's interactions, of Mistral's conversations and agents, and of other companies' models at
// Vertex are charged what they use.
func TestCallsOfNewerEndpoints(t *testing.T) {
	const ofInteraction = `{"id":"i","status":"completed","model":"gemini","usage":{"total_input_tokens":10,"total_output_tokens":5,"total_thought_tokens":20,"total_tool_use_tokens":3,"total_tokens":38}}`
	const ofConversation = `{"object":"conversation.response","conversation_id":"c","outputs":[{"type":"message.output","content":"Hi"}],"usage":{"prompt_tokens":30,"completion_tokens":8,"total_tokens":38}}`
	for _, c := range []struct{ path, body, answer, model string }{
		{"/gemini/v1beta/interactions", `{"model":"gemini","input":"Hello","generation_config":{"max_output_tokens":50}}`, ofInteraction, "gemini"},
		{"/gemini/v1beta/interactions", `{"agent":"deep-research","input":"Hello"}`, ofInteraction, ""},
		{"/gemini/v1beta/interactions", `{"model":"gemini","input":"Hello","stream":true}`, "event: interaction.completed\ndata: {\"event_type\":\"interaction.completed\",\"interaction\":" + ofInteraction + "}\n\n", "gemini"},
		{"/mistral/v1/conversations", `{"model":"m","inputs":"Hello","completion_args":{"max_tokens":50}}`, ofConversation, "m"},
		{"/mistral/v1/conversations/conv_1", `{"inputs":"Hello"}`, ofConversation, ""},
		{"/mistral/v1/conversations/conv_1/restart", `{"inputs":"Hello","from_entry_id":"e"}`, ofConversation, ""},
		{"/mistral/v1/agents/completions", `{"agent_id":"a","messages":[]}`, ofConversation, ""},
		{"/team/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict", `{"model":"m","messages":[]}`, ofConversation, "m"},
	} {
		r := newRigBefore(t, strings.Replace(withFlags(""), "gemini: {base_url: MOCK}", `gemini: {base_url: MOCK, models: {"*": {max_rpm: 9}}}`, 1)+"projects: {p: {tokens_per_day: 10_000}}\n", fixedAnswer(c.answer))
		if a := r.post(t, c.path, c.body, "X-Project-ID", "p"); a.status != 200 {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
			continue
		}
		last := r.last(t)
		d, err := r.Projects().Peek(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		if used := 10_000 - d.Windows()[0].Remaining; used != 38 || last.Model != c.model {
			t.Errorf("%s %s: %d tokens of model %q are charged", c.path, c.body, used, last.Model)
		}
	}
}
