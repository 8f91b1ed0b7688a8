package gateway

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf16"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A request that the provider could take for another, or that the gateway cannot read, is
// refused, and the provider does not get it.
func TestRefusedBeforeItIsSent(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	for _, c := range []struct {
		method, path, body string
		headers            []string
		want               int
	}{
		{"TRACE", "/openai/v1/models", "", nil, 405},
		{"TRACK", "/openai/v1/models", "", nil, 405},
		{"PROPFIND", "/openai/v1/files", "", nil, 405},
		{"POST", chat + ";a=b", hello, nil, 400},
		{"POST", "/openai/v1/chat;a=b/completions", hello, nil, 400},
		{"POST", "/openai/v1/chat%5ccompletions", hello, nil, 400},
		{"POST", chat + "%00", hello, nil, 400},
		{"POST", chat + "%09", hello, nil, 400},
		{"POST", chat + "%20", hello, nil, 400},
		{"POST", chat + ".", hello, nil, 400},
		{"POST", chat + "%20/", hello, nil, 400},
		{"POST", chat + "./", hello, nil, 400},
		{"POST", "/openai/v1/chat%20/completions", hello, nil, 400},
		{"POST", "/openai/v1/%20chat/completions", hello, nil, 400},
		{"POST", chat + "%3Fa=b", hello, nil, 400},
		{"POST", chat + "%23a", hello, nil, 400},
		{"POST", "/openai/v1/realtime/client_secrets%20/", hello, nil, 400},
		{"POST", "/openai/v1/realtime/client_secrets%3Fa", hello, nil, 400},
		{"DELETE", "/local/api/delete./", hello, nil, 400},
		{"GET", generate + "?$httpMethod=POST", "", nil, 400},
		{"GET", generate + "?a=b&%24http%4dethod=POST", "", nil, 400},
		{"POST", generate + "?alt=proto", `{"contents":[]}`, nil, 415},
		{"POST", generate + "?$alt=media", `{"contents":[]}`, nil, 415},
		{"POST", generate + "?alt=json&callback=f", `{"contents":[]}`, nil, 415},
		{"POST", chat, wide(hello, binary.LittleEndian), nil, 400},
		{"POST", chat, wide(hello, binary.BigEndian), nil, 400},
		{"POST", chat, hello + "\x00", nil, 400},
		{"POST", chat, hello, []string{"Content-Type", "application/json; charset=utf-7"}, 415},
		{"POST", chat, hello, []string{"Content-Type", `application/json; charset=utf-8; Charset="UTF-16"`}, 415},
		{"POST", chat, hello, []string{"Content-Type", "application/json", "Content-Type", "multipart/form-data; boundary=b"}, 400},
		{"POST", chat, hello, []string{"Content-Encoding", "identity", "Content-Encoding", "compress"}, 415},
		{"POST", chat, hello, []string{"Content-Encoding", "identity", "Content-Encoding", "br"}, 400},
		{"POST", chat, hello + `{"model":"gpt-4o"}`, nil, 400},
		{"POST", chat, hello + "\n]", nil, 400},
		{"POST", "/openai/v1/chat%252Fcompletions", hello, nil, 400},
		{"POST", "/openai/v1/%2563hat/completions", hello, nil, 400},
		{"GET", "/openai/v1/models/%252e%252e", "", nil, 400},
		{"PUT", chat, hello, nil, 405},
		{"PATCH", chat, hello, nil, 405},
		{"PUT", messages, hello, nil, 405},
		{"PATCH", generate, `{"contents":[]}`, nil, 405},
		{"PUT", "/openai/v1/responses/", hello, nil, 405},
	} {
		a := r.do(t, c.method, c.path, c.body, c.headers...)
		if a.status != c.want {
			t.Errorf("%s %s %v: %d %s", c.method, c.path, c.headers, a.status, a.body)
		}
		if allowed := strings.Contains(a.header.Get("Allow"), "POST"); allowed != (c.want == 405) {
			t.Errorf("%s: Allow is %q", c.method, a.header.Get("Allow"))
		}
		testkit.Equal(t, "the outcome of "+c.method+" "+c.path, Refused, r.last(t).Outcome)
	}
	if n := len(upstream.requests); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
	for _, c := range []struct{ path, body, kind string }{
		{chat, hello, "application/json; charset=UTF-8"},
		{generate + "?alt=sse", `{"contents":[]}`, "application/json"},
		{generate + "?$alt=json&prettyPrint=false", `{"contents":[]}`, "application/json"},
		{generate + "?%24alt=json%3Benum-encoding%3Dint", `{"contents":[]}`, "application/json"},
		{chat, hello, `application/json;charset="utf8";;`},
		{chat, hello, "application/json; charset=; q"},
	} {
		if a := r.post(t, c.path, c.body, "Content-Type", c.kind); a.status != 200 {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
	}
}

// wide returns a text in UTF-16.
func wide(text string, order binary.AppendByteOrder) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// A client cannot ask Google for an answer without usage, on any path of a call. Once, it could on those
// of OpenAI's API and on rawPredict.
func TestUsageIsNotLeftOut(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach+"  team: {kind: vertex, base_url: MOCK}\n  own: {base_url: MOCK}\n", upstream)
	for _, path := range []string{
		generate, "/gemini/v1beta/openai/chat/completions", "/gemini/v1beta/openai/embeddings", "/own/v1beta/openai/chat/completions",
		"/team/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict",
		"/team/v1/projects/p/locations/l/endpoints/openapi/chat/completions",
	} {
		body := `{"contents":[]}`
		if !strings.Contains(path, ":") {
			body = `{"model":"m"}`
		}
		if a := r.post(t, path+"?alt=proto", body); a.status != 415 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		if a := r.post(t, path+"?fields=candidates&a=b&%24fields=x", body, "X-Goog-FieldMask", "candidates"); a.status != 200 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		if got := <-upstream.requests; got.URL.RawQuery != "a=b" || got.Header["X-Goog-Fieldmask"] != nil {
			t.Errorf("%s %v", got.URL, got.Header)
		}
	}
	for _, path := range []string{"/gemini/v1beta/batches/b", "/gemini/v1beta/interactions/i"} { // what a batch, or a call in the background, has used
		r.do(t, "GET", path+"?fields=name&a=b&%24fields=x", "", "X-Goog-FieldMask", "name")
		if got := <-upstream.requests; got.URL.RawQuery != "a=b" || got.Header["X-Goog-Fieldmask"] != nil {
			t.Errorf("%s %v", got.URL, got.Header)
		}
	}
	r.do(t, "GET", "/gemini/v1beta/models?fields=models", "") // an answer that has no usage anyway
	if got := <-upstream.requests; got.URL.RawQuery != "fields=models" {
		t.Errorf("%s", got.URL)
	}
}

// All names of a model lead to one quota, and to one answer whether a project may call it.
func TestNamesOfOneModel(t *testing.T) {
	const router = "/openrouter/api/v1/chat/completions"
	r := newRigBefore(t, `
providers:
  gemini: {base_url: MOCK, models: {gemini-2.5-pro: {max_rpm: 2}, gemini-2.5-flash: {max_rpm: 2}, "gemini-*": {max_rpm: 2}}}
  local: {kind: ollama, base_url: MOCK, models: {"llama3:latest": {max_rpm: 2}}}
  azure: {kind: azure, base_url: MOCK, models: {GPT-4o: {max_rpm: 2}, "O*": {max_rpm: 2}}}
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 2}, gpt-4o-2024-05-13: {max_rpm: 2}}}
  anthropic: {base_url: MOCK, models: {claude-haiku-3.5: {max_rpm: 2}, "claude-sonnet-4*": {max_rpm: 2}, "*": {max_rpm: 100}}}
  openrouter: {kind: openrouter, base_url: MOCK, models: {meta/llama-4: {max_rpm: 2}, "meta/llama-5:free": {max_rpm: 2}, meta/llama-5: {max_rpm: 2}, "*:free": {max_rpm: 2}, "*": {max_rpm: 100}}}
defaults: {max_wait: 0s}
projects: {p: {models: [gemini-2.5-pro, "gemini-2.5-flash*", llama3, "gpt-4o*", gemini-1, "o*", "claude-haiku-3.5*", "claude-sonnet-4*", "meta/*"]}}
`, newSeen())
	for _, c := range []struct {
		path  string
		names []string
		quota string
	}{
		{"/gemini/v1beta/openai/chat/completions", []string{"gemini-2.5-pro", "models/gemini-2.5-pro"}, "gemini-2.5-pro"},
		{"/gemini/v1beta/openai/chat/completions", []string{"gemini-1", "models/gemini-1"}, "gemini/gemini-*"},
		{"/local/api/chat", []string{"llama3", "LLAMA3", "registry.ollama.ai/library/llama3:latest", "library/llama3:latest"}, "local/llama3:latest"},
		{"/azure/openai/deployments/gpt-4O/chat/completions", []string{""}, "azure/GPT-4o"},
		{"/azure/openai/deployments/o3/chat/completions", []string{""}, "azure/O*"},
		{chat, []string{"gpt-4o", "gpt-4o-2024-08-06"}, "gpt-4o"},
		{chat, []string{"gpt-4o-2024-05-13"}, "gpt-4o-2024-05-13"},
		{messages, []string{"claude-3-5-haiku-20241022", "claude-3-5-haiku-latest", "claude-haiku-3.5"}, "claude-haiku-3.5"},
		{messages, []string{"claude-sonnet-4-0", "claude-4-sonnet-20250514"}, "anthropic/claude-sonnet-4*"},
		{router, []string{"meta/llama-4:nitro", "meta/llama-4:floor", "meta/llama-4:online"}, "openrouter/meta/llama-4"},
		{router, []string{"meta/llama-5:nitro", "Meta/Llama-5"}, "openrouter/meta/llama-5"},
		{router, []string{"meta/llama-5:free"}, "openrouter/meta/llama-5:free"},
		{router, []string{"meta/llama-6:free"}, "openrouter/*:free"},
		{"/gemini/v1beta/models/gemini-2.5-flash-001:generateContent", []string{""}, "gemini-2.5-flash"},
	} {
		for i := range 4 {
			name := c.names[i%len(c.names)]
			a := r.post(t, c.path, fmt.Sprintf(`{"model":%q,"messages":[]}`, name), "X-Project-ID", "p")
			if want := 200 + 229*(i/2); a.status != want || r.last(t).Quota != c.quota {
				t.Errorf("%s: %d of %q; want %d of %q", name, a.status, r.last(t).Quota, want, c.quota)
			}
		}
	}
}

// All names of a model that is not in the configuration lead to one quota, too.
func TestNamesOfAnUnknownModel(t *testing.T) {
	r := newRigBefore(t, "providers: {local: {kind: ollama, base_url: MOCK}}\n", newSeen())
	for _, name := range []string{"mistral", "MISTRAL:latest", "registry.ollama.ai/library/mistral", "mistral-2024-08-06"} {
		if a := r.post(t, "/local/api/chat", fmt.Sprintf(`{"model":%q,"messages":[]}`, name)); a.status != 200 || r.last(t).Quota != "local/mistral" {
			t.Errorf("%s: %d of %q", name, a.status, r.last(t).Quota)
		}
	}
}

// A blank in a query, which HTTP/2 allows and HTTP/1 cannot send, is refused.
func TestBlankInAQuery(t *testing.T) {
	r := newRigBefore(t, oneOfEach, newSeen())
	for _, query := range []string{"a=b c", "a=\x7f"} {
		request := httptest.NewRequest("POST", chat, strings.NewReader(hello))
		request.Host = "localhost"
		request.URL.RawQuery = query
		w := httptest.NewRecorder()
		r.ServeHTTP(w, request)
		if w.Code != 400 {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	}
}

// A provider whose key is the gateway's gets no credentials in a query, and no parameters that
// may be credentials.
func TestCredentialsInAQuery(t *testing.T) {
	t.Setenv("KEY", "of-the-provider")
	upstream := newSeen()
	r := newRigBefore(t, "providers: {gemini: {base_url: MOCK, key: {env: KEY}}}\n", upstream)
	r.post(t, generate+"?key=mine&a=b&%24key=mine&access_token=mine&%6bey=mine&%zz=mine&c=d", `{"contents":[]}`)
	if got := <-upstream.requests; got.URL.RawQuery != "a=b&c=d" {
		t.Errorf("%s", got.URL.RawQuery)
	}
}

// Other providers of Anthropic's API get the key in both headers.
func TestKeyOfMessages(t *testing.T) {
	t.Setenv("KEY", "sk")
	upstream := newSeen()
	r := newRigBefore(t, "providers: {anthropic: {base_url: MOCK, key: {env: KEY}}, vllm: {base_url: MOCK, key: {env: KEY}}}\n", upstream)
	for path, bearer := range map[string]string{messages: "", "/vllm/v1/messages": "Bearer sk"} {
		r.post(t, path, hello)
		if got := (<-upstream.requests).Header; got.Get("X-Api-Key") != "sk" || got.Get("Authorization") != bearer {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// A project that may only call some models may not name others to fall back to.
func TestFallbacks(t *testing.T) {
	r := newRigBefore(t, `
providers: {openrouter: {kind: openrouter, base_url: MOCK}, anthropic: {base_url: MOCK}}
projects: {p: {models: [cheap]}}
`, newSeen())
	for _, c := range []struct {
		project, path, body string
		want                int
	}{
		{"p", "/openrouter/api/v1/chat/completions", `{"model":"cheap","messages":[]}`, 200},
		{"p", "/openrouter/api/v1/chat/completions", `{"model":"cheap","models":["dear"],"messages":[]}`, 403},
		{"p", messages, `{"model":"cheap","fallbacks":[{"model":"dear"}],"messages":[]}`, 403},
		{"p", "/openrouter/api/v1/chat/completions", `{"model":"cheap","models":null,"messages":[]}`, 200},
		{"p", "/openrouter/api/v1/chat/completions", `{"model":"cheap","models":[ ],"messages":[]}`, 200},
		{"q", "/openrouter/api/v1/chat/completions", `{"model":"cheap","models":["dear"],"messages":[]}`, 200},
		{"q", "/openrouter/api/v1/chat/completions", `{"models":["dear"],"messages":[]}`, 400},
	} {
		if a := r.post(t, c.path, c.body, "X-Project-ID", c.project); a.status != c.want {
			t.Errorf("%s: %s: %d %s", c.project, c.body, a.status, a.body)
		}
	}
}

// Calls are recognized by the path that the provider gets. What base_url ends with may stand in the client's path, too.
func TestBaseWithAPath(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, `
providers:
  anthropic: {base_url: MOCK/v1, models: {claude: {max_rpm: 1}}}
  compatible: {kind: compatible, base_url: MOCK/v1, models: {gpt: {max_rpm: 1}}}
  router: {kind: openrouter, base_url: MOCK/api/v1/, models: {llm: {max_rpm: 1}, other: {max_rpm: 1}}}
  local: {kind: ollama, base_url: MOCK/api, models: {llama: {max_rpm: 1}}}
  proxy: {kind: gemini, base_url: MOCK/v1beta, models: {gemini: {max_rpm: 1, aliases: [best]}}}
defaults: {max_wait: 0s}
`, upstream)
	for _, c := range []struct{ path, body, sent string }{
		{"/anthropic/messages", `{"model":"claude","messages":[]}`, "/v1/messages"},
		{"/compatible/v1/chat/completions", `{"model":"gpt","messages":[]}`, "/v1/chat/completions"},
		{"/router/api/v1/chat/completions", `{"model":"llm","messages":[]}`, "/api/v1/chat/completions"},
		{"/router/v1/chat/completions", `{"model":"other","messages":[]}`, "/api/v1/chat/completions"},
		{"/local/chat", `{"model":"llama","messages":[]}`, "/api/chat"},
		{"/proxy/models/best:generateContent", `{"contents":[]}`, "/v1beta/models/gemini:generateContent"},
	} {
		if a := r.post(t, c.path, c.body); a.status != 200 {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		} else if got := <-upstream.requests; got.URL.Path != c.sent {
			t.Errorf("%s: sent to %s", c.path, got.URL.Path)
		}
		if a := r.post(t, c.path, c.body); a.status != 429 {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
	}
}

// quoting is a server that refuses keys, and quotes them in its errors, in gzip if the client
// accepts it.
type quoting int

func (status quoting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := io.Writer(w)
	if r.Header.Get("Accept-Encoding") == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		to = packed
	}
	w.WriteHeader(int(status))
	io.WriteString(to, "no such key: "+r.Header.Get("Authorization"))
}

// Clients do not get the gateway's key from a server that refuses and quotes it.
func TestKeyIsNotQuoted(t *testing.T) {
	t.Setenv("KEY", "sk-secret")
	for _, status := range []int{401, 403} {
		r := newRigBefore(t, "keys: required\nproviders: {openai: {base_url: MOCK, key: {env: KEY}}}\n", quoting(status))
		secret, _ := r.newKey(t, "p", "")
		for path, body := range map[string]string{chat: hello, "/openai/v1/files": "x"} {
			a := r.post(t, path, body, "Authorization", "Bearer "+secret, "Accept-Encoding", "gzip")
			if a.status != status || a.body != "no such key: Bearer ***" {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
}

// The same holds for an answer that the client gets because the next deployment gave none.
func TestKeyOfAnotherDeploymentIsNotQuoted(t *testing.T) {
	t.Setenv("A", "sk-of-a")
	t.Setenv("B", "sk-of-b")
	r := newRigBefore(t, `
providers:
  openai:
    retries: 1
    deployments: {a: {base_url: MOCK, key: {env: A}}, b: {base_url: "http://127.0.0.1:1", key: {env: B}}}
`, quoting(401))
	if a := r.post(t, chat, hello); a.status != 401 || a.body != "no such key: Bearer ***" || r.last(t).Retries != 1 {
		t.Errorf("%d %s, recorded as %+v", a.status, a.body, r.last(t))
	}
}

// A provider gets none of the headers from which some servers take the path, the method or the host of a request:
// they would serve another request than the gateway has read.
func TestHeadersThatNameAnotherRequest(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	names := []string{"X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-Forwarded-Uri", "X-Forwarded-Prefix", "X-HTTP-Method-Override", "X-Original-Method", "X-Host"}
	var headers []string
	for _, name := range names {
		headers = append(headers, name, "/v1/files")
	}
	for _, path := range []string{chat, "/openai/v1/files"} {
		r.post(t, path, hello, headers...)
		got := <-upstream.requests
		for _, name := range names {
			if got.Header.Get(name) != "" {
				t.Errorf("%s: the provider gets %s", path, name)
			}
		}
	}
}
