package gateway

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// rig is a gateway on a real listener, in front of a mock provider on another.
type rig struct {
	*Gateway
	url      string
	provider *mockprovider.Server
}

// newKey makes a virtual key of a project.
func (r *rig) newKey(t testing.TB, project, name string) (secret string, key keys.Key) {
	t.Helper()
	secret, key, err := r.Keys().Create(t.Context(), project, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return secret, key
}

// newRig starts a gateway in front of a mock provider: see [gatewaytest.Config].
func newRig(t testing.TB, yaml string, mock mockprovider.Config) *rig {
	t.Helper()
	provider := mockprovider.New(mock)
	r := newRigBefore(t, yaml, provider)
	r.provider = provider
	return r
}

// newRigBefore is newRig in front of any handler.
func newRigBefore(t testing.TB, yaml string, handler http.Handler) *rig {
	t.Helper()
	upstream := httptest.NewServer(handler)
	t.Cleanup(upstream.Close)
	g, err := New(gatewaytest.Config(t, yaml, upstream.URL), Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &wire.Server{Handler: g, MaxHeader: 64 << 10}
	go server.Serve(listener)
	t.Cleanup(func() {
		server.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{Gateway: g, url: "http://" + listener.Addr().String()}
}

// answer is an answer to a client.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a body to the gateway. Headers are given as names and values.
func (r *rig) post(t testing.TB, path, body string, headers ...string) answer {
	t.Helper()
	return r.do(t, http.MethodPost, path, body, headers...)
}

func (r *rig) do(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err) // not Fatal, because any goroutine may call this
		return answer{}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// last waits until no request is in progress, and returns the record of the last one.
func (r *rig) last(t testing.TB) Record {
	t.Helper()
	r.settled(t)
	all := r.Recent("", 0, maxRecent)
	if len(all) == 0 {
		t.Fatal("no request was recorded")
	}
	return all[len(all)-1]
}

// settled waits until no request is in progress, which is shortly after clients have got
// their answers.
func (r *rig) settled(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, "no request is being served", func() bool { return r.Active() == 0 })
}

const oneOfEach = `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 100, max_tpm: 100000, aliases: [best]}}}
  anthropic: {base_url: MOCK}
  gemini: {base_url: MOCK}
  local: {base_url: MOCK}
`

// seen is a handler that keeps the requests that it gets, and answers with a short text.
type seen struct {
	requests chan *http.Request
	bodies   chan string
}

func newSeen() *seen { return &seen{make(chan *http.Request, 100), make(chan string, 100)} }

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.requests <- r
	s.bodies <- string(body)
	w.Header().Set("Set-Cookie", "session=1")
	w.Header().Set("Connection", "X-Internal")
	w.Header().Set("X-Internal", "1")
	io.WriteString(w, `{"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
}

// fixedAnswer is a handler that answers everything with a text.
type fixedAnswer string

func (text fixedAnswer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if strings.HasPrefix(string(text), "event:") {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	io.WriteString(w, string(text))
}
