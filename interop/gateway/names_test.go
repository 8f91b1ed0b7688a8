package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// A model may be called by its alias: the provider gets its name.
func TestAlias(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample))
		for _, call := range every {
			k := r.through(s, call)
			k.Model = "best"
			a, want := s.do(t, k), s.do(t, r.past(s, call))
			compare(t, call, "", want.cleaned(""), a.cleaned(""))
		}
		r.charged(t, s.model, s.model)
		r.settled(t)
		if all := r.provider.Totals(); len(all) != 1 {
			t.Errorf("the provider knows the models %v", all)
		}
	})
}

// Providers that speak as OpenAI does have names of their own, and take its SDKs.
func TestCompatible(t *testing.T) {
	for _, c := range []struct{ provider, root, behind, model, as string }{
		{"groq", "/v1", "/openai/v1/chat/completions", "groq-test", "groq"},
		{"openrouter", "/v1", "/api/v1/chat/completions", "maker/router-test", "openrouter"},
	} {
		for _, s := range sdks[:2] {
			t.Run(c.provider+"/"+s.name, func(t *testing.T) {
				r := newRig(t, with(ample))
				own := *s
				own.provider, own.root, own.model = c.provider, c.root, c.model
				for _, mock := range []string{"as=" + c.as, "as=" + c.as + " reasoning=5", "as=" + c.as + " status=400"} {
					for _, call := range []string{"whole", "stream"} {
						without, with := own.both(t, r, call, mock)
						compare(t, call, mock, without, with)
					}
				}
				r.charged(t, c.provider+"/"+c.model, c.model)
				r.settled(t)
				for _, got := range r.provider.received() {
					got.carries(t, c.provider)
					if got.URL.Path != c.behind {
						t.Errorf("the provider was asked for %s", got.URL)
					}
				}
			})
		}
	}
}

// Azure's deployments stand in the path.
func TestAzure(t *testing.T) {
	r := newRig(t, with(ample))
	s := *sdks[1]
	s.provider, s.root, s.model = "azure", "", "azure-test"
	a := s.do(t, r.through(&s, "azure"))
	if a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	got := r.provider.received()[0]
	got.carries(t, "azure")
	if got.URL.Path != "/openai/deployments/azure-test/chat/completions" || got.URL.Query().Get("api-version") == "" {
		t.Errorf("the provider was asked for %s", got.URL)
	}
	r.charged(t, "azure/azure-test", "azure-test")
}

// Ollama has no key, and gets none.
func TestOllama(t *testing.T) {
	r := newRig(t, with(ample))
	for _, c := range []struct{ path, body string }{
		{"/api/chat", `{"model":"llama-test","messages":[{"role":"user","content":"Hello there"}]}`},
		{"/api/chat", `{"model":"llama-test","stream":false,"messages":[{"role":"user","content":"Hello there"}]}`},
		{"/api/chat", `{"model":"best","messages":[{"role":"user","content":"Hello there"}]}`},
		{"/api/generate", `{"model":"llama-test","prompt":"Hello there"}`},
		{"/api/generate", `{"model":"llama-test","stream":false,"prompt":"Hello there"}`},
		{"/v1/chat/completions", `{"model":"llama-test","stream":true,"messages":[{"role":"user","content":"Hello there"}]}`},
	} {
		status, text := post(t, r.url+"/local"+c.path, c.body, r.key)
		_, want := post(t, r.without.url+c.path, strings.ReplaceAll(c.body, "best", "llama-test"), "")
		if text = strings.ReplaceAll(text, `,"usage":null`, ""); status != 200 || text != want {
			t.Errorf("%s: %d %s, not %s", c.path, status, text, want)
		}
		r.settled(t)
	}
	for _, got := range r.provider.received() {
		got.carries(t, "local")
	}
	r.charged(t, "local/llama-test", "llama-test")
}

func post(t *testing.T, address, body, key string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	return send(t, request)
}
