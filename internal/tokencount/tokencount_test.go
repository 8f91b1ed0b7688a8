package tokencount

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// countKey has characters that JSON, %q and addresses escape.
const countKey = `sk-"secret\0123/456+789`

var countProviders = []llm.Provider{dialect.Gemini, dialect.OpenAI, dialect.Anthropic}

// countServer answers on loopback until the test is over.
func countServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func countAnswer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// countFails returns the text of the error that Count must return, which never
// shows the key and is always short and printable.
func countFails(t testing.TB, n int, err error) string {
	t.Helper()
	if err == nil || n != 0 {
		t.Fatalf("counted %d, %v; want an error", n, err)
	}
	text := err.Error()
	for shown := err; shown != nil; shown = errors.Unwrap(shown) {
		for _, form := range []string{countKey, fmt.Sprintf("%q", countKey), url.QueryEscape(countKey), url.PathEscape(countKey)} {
			if strings.Contains(fmt.Sprintf("%+v", shown), strings.Trim(form, `"`)) {
				t.Fatalf("the key stands in %q", text)
			}
		}
	}
	if !strings.HasPrefix(text, "ratelimit: ") || len(text) > 600 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Fatalf("not short and printable: %d bytes, %q", len(text), text)
	}
	return text
}

type countRequest struct {
	method, host, uri string
	header            http.Header
	body              string
}

func countRequestOf(r *http.Request) countRequest {
	body, _ := io.ReadAll(r.Body)
	return countRequest{r.Method, r.Host, r.RequestURI, r.Header, string(body)}
}

// countWire has the requests and answers that each provider documents.
var countWire = map[llm.Provider]struct {
	host, uri    string
	header       map[string]string
	body, answer string
}{
	dialect.Gemini: {
		host:   "generativelanguage.googleapis.com",
		uri:    "/v1beta/models/some-model:countTokens",
		header: map[string]string{"x-goog-api-key": countKey},
		body:   `{"contents":[{"parts":[{"text":"Grüße, <wörld> & \"all\"\n"}]}]}`,
		answer: `{"totalTokens":31,"promptTokensDetails":[{"modality":"TEXT","tokenCount":31}]}`,
	},
	dialect.OpenAI: {
		host:   "api.openai.com",
		uri:    "/v1/responses/input_tokens",
		header: map[string]string{"Authorization": "Bearer " + countKey},
		body:   `{"model":"some-model","input":"Grüße, <wörld> & \"all\"\n"}`,
		answer: `{"object":"response.input_tokens","input_tokens":31}`,
	},
	dialect.Anthropic: {
		host:   "api.anthropic.com",
		uri:    "/v1/messages/count_tokens",
		header: map[string]string{"x-api-key": countKey, "anthropic-version": "2023-06-01"},
		body:   `{"model":"some-model","messages":[{"role":"user","content":"Grüße, <wörld> & \"all\"\n"}]}`,
		answer: `{"input_tokens":31}`,
	},
}

const countText = "Grüße, <wörld> & \"all\"\n"

func countCheckWire(t *testing.T, provider llm.Provider, got countRequest, uri string) {
	t.Helper()
	want := countWire[provider]
	if got.method != http.MethodPost || got.uri != uri {
		t.Errorf("%s %s; want POST %s", got.method, got.uri, uri)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("Content-Type is %q", kind)
	}
	for name, value := range want.header {
		if !slices.Equal(got.header.Values(name), []string{value}) {
			t.Errorf("%s is %q; want %q", name, got.header.Values(name), value)
		}
	}
	for name, values := range got.header {
		if strings.Contains(fmt.Sprint(values), countKey) && want.header[strings.ToLower(name)] == "" && want.header[name] == "" {
			t.Errorf("the key is in %s too", name)
		}
	}
	var body, wanted any
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	if err := json.Unmarshal([]byte(want.body), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(body, wanted) {
		t.Errorf("asked %s; want %s", got.body, want.body)
	}
}

func TestCounter(t *testing.T) {
	for _, provider := range countProviders {
		for _, prefix := range []string{"", "/", "/proxy/of", "/proxy/of/", "/a%2Fb//", "/#"} {
			t.Run(string(provider)+prefix, func(t *testing.T) {
				var got countRequest
				server := countServer(t, func(w http.ResponseWriter, r *http.Request) {
					got = countRequestOf(r)
					io.WriteString(w, countWire[provider].answer)
				})
				counter := Counter{Provider: provider, APIKey: countKey, BaseURL: server.URL + prefix}
				n, err := counter.Count(t.Context(), "some-model", countText)
				if n != 31 || err != nil {
					t.Fatalf("counted %d, %v; want 31", n, err)
				}
				countCheckWire(t, provider, got, strings.TrimRight(prefix, "/#")+countWire[provider].uri)
			})
		}
	}
}

// Without a base URL, each provider's own host is asked, over TLS.
func TestCounterAsksTheProviderItself(t *testing.T) {
	var got countRequest
	var answer string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = countRequestOf(r)
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	var dialled string
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled = address
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	old := countClient.Transport
	t.Cleanup(func() { countClient.Transport = old })
	countClient.Transport = transport

	for _, provider := range countProviders {
		want := countWire[provider]
		answer = want.answer
		t.Run(string(provider), func(t *testing.T) {
			transport.CloseIdleConnections()
			n, err := Counter{Provider: provider, APIKey: countKey}.Count(t.Context(), "some-model", countText)
			if n != 31 || err != nil {
				t.Fatalf("counted %d, %v; want 31", n, err)
			}
			if got.host != want.host || dialled != want.host+":443" {
				t.Errorf("asked %s at %s; want %s", got.host, dialled, want.host)
			}
			countCheckWire(t, provider, got, want.uri)
		})
	}
}

// Invalid arguments are refused before any request.
func TestCounterRefuses(t *testing.T) {
	asked := atomic.Int32{}
	server := countServer(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, `{"totalTokens":1,"input_tokens":1}`)
	})
	host := strings.TrimPrefix(server.URL, "http://")
	type refusal struct {
		counter     Counter
		model, text string
		want        string
	}
	allowed := "the provider must be gemini, openai or anthropic"
	tests := []refusal{
		{Counter{Provider: dialect.Ollama, APIKey: countKey, BaseURL: server.URL}, "m", "t", `with "ollama": ` + allowed},
		{Counter{Provider: dialect.Ollama, BaseURL: server.URL}, "m", "t", allowed},
		{Counter{Provider: "Gemini\n", APIKey: countKey, BaseURL: server.URL}, "m", "t", allowed},
		{Counter{APIKey: countKey, BaseURL: server.URL}, "m", "t", allowed},
		{Counter{Provider: dialect.Gemini, APIKey: countKey, BaseURL: server.URL}, "models/", "t", "the model is empty"},
	}
	for _, p := range countProviders {
		good := Counter{Provider: p, APIKey: countKey, BaseURL: server.URL}
		tests = append(tests,
			refusal{good, "", "t", "the model is empty"},
			refusal{good, "m\xff", "t", "the model is not valid UTF-8"},
			refusal{good, "m", "t\xc3", "the text is not valid UTF-8"},
			refusal{Counter{Provider: p, BaseURL: server.URL}, "m", "t", "the API key is empty"},
		)
		for _, bad := range []string{"\n", "\r\nX-Other: 1", "\x00", "\t", "\x7f", " ", "é", "\xff"} {
			key := Counter{Provider: p, APIKey: countKey + bad, BaseURL: server.URL}
			tests = append(tests, refusal{key, "m", "t", "the API key must be visible ASCII"})
		}
		for base, want := range map[string]string{
			"http://host:" + countKey:           "it does not parse",
			"http://ann:" + countKey + "@[::1":  "it does not parse",
			"http://ho st":                      "it does not parse",
			"http://" + host + "/%zz":           "it does not parse",
			"http://" + host + "/\n":            "it does not parse",
			host:                                "it does not parse",
			"localhost:80":                      "neither http:// nor https://",
			"//" + host:                         "neither http:// nor https://",
			"/v1":                               "neither http:// nor https://",
			"ftp://" + host:                     "neither http:// nor https://",
			"file:///etc/passwd":                "neither http:// nor https://",
			"http:" + host:                      "it has no host",
			"https://":                          "it has no host",
			"https:///path":                     "it has no host",
			"http://:80":                        "it has no host",
			"http://ann:hunter2@" + host:        "it holds a user",
			"http://ann@" + host:                "it holds a user",
			"http://@" + host:                   "it holds a user",
			"http://" + host + "?key=hunter2":   "it holds a query",
			"http://" + host + "/a?":            "it holds a query",
			"http://" + host + "/#" + "hunter2": "it holds a fragment",
			"http://" + host + "/a?key=hunter2#hunter2": "it holds a query",
		} {
			tests = append(tests, refusal{Counter{Provider: p, APIKey: countKey, BaseURL: base}, "m", "t", want})
		}
	}
	for _, test := range tests {
		n, err := test.counter.Count(t.Context(), test.model, test.text)
		text := countFails(t, n, err)
		if !strings.Contains(text, test.want) {
			t.Errorf("%+v %q: %s; want %s", test.counter, test.model, text, test.want)
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, "secret") || strings.Contains(text, "ann") {
			t.Errorf("%s: shows what the base URL or the key holds", text)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// An answer is a count, or an error that says what is wrong with it.
func TestCounterAnswers(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string // FIELD stands for the name of the provider's field
		want   string // the text of the error; empty: a count of 7
	}{
		{200, `{"FIELD":7}`, ""},
		{200, " {\"more\":[{}],\n\"FIELD\" : 7 }\n", ""},
		{200, ``, "the answer is no JSON object: (empty)"},
		{200, ` `, "the answer is no JSON object: (empty)"},
		{200, `{"FIELD":7`, `the answer is no JSON object: {"FIELD":7`},
		{200, `{"FIELD":7}{"FIELD":8}`, "the answer is no JSON object: "},
		{200, `{"FIELD":07}`, "the answer is no JSON object: "},
		{200, `7`, "the answer is no JSON object: 7"},
		{200, `[{"FIELD":7}]`, "the answer is no JSON object: "},
		{200, "<html>\n<b>sign\tin</b>", "the answer is no JSON object: <html> <b>sign in</b>"},
		{200, strings.Repeat("[", 1<<19), "the answer is no JSON object: "},
		{200, `null`, "the answer has no FIELD: null"},
		{200, `{}`, "the answer has no FIELD: {}"},
		{200, `{"tokens":7}`, `the answer has no FIELD: {"tokens":7}`},
		{200, `{"FIELD":null}`, "the answer's FIELD must be a whole number from 0 to 2147483647: null"},
		{200, `{"FIELD":-1}`, "the answer's FIELD must be a whole number from 0 to 2147483647: -1"},
		{200, `{"FIELD":1.5}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":1e3}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":"7"}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":[7]}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":true}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":2147483648}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":18446744073709551617}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":` + strings.Repeat("9", 5000) + `}`, "the answer's FIELD must be a whole number"},
		{200, `{"FIELD":7}` + strings.Repeat(" ", 1<<20), "the answer is longer than 1048576 bytes"},
		{201, `{"FIELD":7}`, `201 Created: {"FIELD":7}`},
		{204, ``, "204 No Content: (empty)"},
		{304, ``, "304 Not Modified: (empty)"},
		{307, ``, "307 Temporary Redirect: (empty)"}, // a redirect without a target
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"x"}]}}`,
			"400 Bad Request: API key not valid. Please pass a valid API key."},
		{404, `{"type":"error","error":{"type":"not_found_error","message":"model: some-model"},"request_id":"req_1"}`, "404 Not Found: model: some-model"},
		{429, `{"error":{"message":"Rate limit reached for gpt-4o","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			"429 Too Many Requests: Rate limit reached for gpt-4o"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, `": 529: Overloaded`},
		{500, ``, "500 Internal Server Error: (empty)"},
		{502, "<h1>bad\r\n\x1b[31mgateway\u202e\xff</h1>", "502 Bad Gateway: <h1>bad   [31mgateway \ufffd</h1>"},
		{503, `{"error":"text"}`, `503 Service Unavailable: {"error":"text"}`},
		{503, `{"error":{"message":""}}`, `503 Service Unavailable: {"error":{"message":""}}`},
		{503, `{"error":{"message":7}}`, `503 Service Unavailable: {"error":{"message":7}}`},
		{500, strings.Repeat("é", 1000), strings.Repeat("é", 150) + "…"},
		{500, "a" + strings.Repeat("é", 1000), "a" + strings.Repeat("é", 149) + "…"},
		{400, `{"error":{"message":` + countJSON("wrong key "+countKey+", really "+countKey) + `}}`, "400 Bad Request: wrong key [key], really [key]"},
		{400, "no " + countKey + "\n", "400 Bad Request: no [key]"},
		{400, `{"detail":` + countJSON("no "+countKey) + `}`, `400 Bad Request: {"detail":"no [key]"}`},
		{400, strings.Repeat("x", 295) + countKey, strings.Repeat("x", 295) + "[key]"},
		{400, strings.Repeat("x", 298) + countKey, strings.Repeat("x", 298) + "[k…"},
		{200, countKey, "the answer is no JSON object: [key]"},
		{200, `{"key":` + countJSON(countKey) + `}`, `the answer has no FIELD: {"key":"[key]"}`},
		{200, `{"FIELD":` + countJSON(countKey) + `}`, `: "[key]"`},
	} {
		for _, provider := range countProviders {
			field := "input_tokens"
			if provider == dialect.Gemini {
				field = "totalTokens"
			}
			fill := strings.NewReplacer("FIELD", field).Replace
			server := countServer(t, countAnswer(test.status, fill(test.body)))
			counter := Counter{Provider: provider, APIKey: countKey, BaseURL: server.URL}
			n, err := counter.Count(t.Context(), "some-model", "text")
			if test.want == "" {
				if n != 7 || err != nil {
					t.Errorf("%s: %.80q: counted %d, %v; want 7", provider, test.body, n, err)
				}
				continue
			}
			if text := countFails(t, n, err); !strings.Contains(text, fill(test.want)) {
				t.Errorf("%s: %d %.80q: %s; want %s", provider, test.status, test.body, text, fill(test.want))
			}
		}
	}
}

func countJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

func TestCounterZero(t *testing.T) {
	server := countServer(t, countAnswer(200, `{"input_tokens":0}`))
	counter := Counter{Provider: dialect.OpenAI, APIKey: countKey, BaseURL: server.URL}
	if n, err := counter.Count(t.Context(), "m", ""); n != 0 || err != nil {
		t.Errorf("counted %d, %v; want 0", n, err)
	}
}

// An endless answer is read up to a bound, compressed or not.
func TestCounterEndlessAnswer(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"plain": func(w http.ResponseWriter, _ *http.Request) {
			for chunk := bytes.Repeat([]byte(" "), 1<<16); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"packed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			for chunk := bytes.Repeat([]byte(" "), 1<<16); ; {
				if _, err := packed.Write(chunk); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := countServer(t, handler)
			counter := Counter{Provider: dialect.Gemini, APIKey: countKey, BaseURL: server.URL}
			n, err := counter.Count(t.Context(), "m", "t")
			if text := countFails(t, n, err); !strings.Contains(text, "the answer is longer than 1048576 bytes") {
				t.Error(text)
			}
		})
	}
}

// No redirect is followed, so no other host sees the key, whatever the client
// would allow.
func TestCounterRedirects(t *testing.T) {
	others := atomic.Int32{}
	other := countServer(t, func(w http.ResponseWriter, _ *http.Request) {
		others.Add(1)
		io.WriteString(w, `{"totalTokens":1,"input_tokens":1}`)
	})
	follow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, client := range []*http.Client{nil, follow} {
		for _, provider := range countProviders {
			for _, status := range []int{301, 302, 303, 307, 308} {
				for location, want := range map[string]string{
					other.URL + "/?key=" + url.QueryEscape(countKey): "the server redirects elsewhere",
					"/elsewhere": "the server redirects elsewhere",
					"http://ann:" + url.QueryEscape(countKey) + "@" + strings.TrimPrefix(other.URL, "http://"): "the server redirects elsewhere",
					"http://[" + countKey: "failed to parse Location header",
				} {
					requests := atomic.Int32{}
					server := countServer(t, func(w http.ResponseWriter, r *http.Request) {
						requests.Add(1)
						w.Header().Set("Location", location)
						w.WriteHeader(status)
						io.WriteString(w, `{"totalTokens":1,"input_tokens":1}`)
					})
					counter := Counter{Provider: provider, APIKey: countKey, BaseURL: server.URL, Client: client}
					n, err := counter.Count(t.Context(), "m", "t")
					if text := countFails(t, n, err); !strings.Contains(text, want) {
						t.Errorf("%s %d to %s: %s; want %s", provider, status, location, text, want)
					}
					if n := requests.Load(); n != 1 {
						t.Errorf("%s %d to %s: asked %d times", provider, status, location, n)
					}
					server.Close()
				}
			}
		}
	}
	if n := others.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
	if follow.CheckRedirect(nil, nil) != nil {
		t.Error("the caller's client was changed")
	}
}

// countRaw is a server that reads a request, sends bytes, and then closes or keeps the
// connection as the test says.
func countRaw(t *testing.T, answer string, then func(net.Conn)) string {
	server := countServer(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, answer)
		then(conn)
	})
	return server.URL
}

// A broken answer is an error that shows nothing of the key.
func TestCounterBrokenConnection(t *testing.T) {
	hangUp := func(net.Conn) {}
	untilClosed := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for _, test := range []struct {
		answer string
		then   func(net.Conn)
		want   string
	}{
		{"", hangUp, "EOF"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", hangUp, "200 OK, but reading the answer: unexpected EOF"},
		{"HTTP/1.1 502 Bad\r\nContent-Length: 99\r\n\r\n{", hangUp, "502 Bad Gateway, but reading the answer: unexpected EOF"},
		{countKey + "\r\n\r\n", untilClosed, "malformed HTTP response"},
		{"HTTP/1.1 " + countKey + "\r\n\r\n", untilClosed, "malformed HTTP"},
		{strings.Repeat("long", 1<<16) + "\r\n\r\n", untilClosed, "malformed HTTP response"},
		{"HTTP/1.1 200 OK\r\n" + countKey + "\r\n\r\n", untilClosed, "malformed MIME header"},
		{"HTTP/1.1 200 OK\r\nContent-Length: " + countKey + "\r\n\r\n", untilClosed, "bad Content-Length"},
		{"HTTP/1.1 404 " + countKey + "\r\nContent-Length: 0\r\n\r\n", untilClosed, "404 Not Found: (empty)"},
		{"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", untilClosed, "101 Switching Protocols"},
	} {
		counter := Counter{Provider: dialect.Gemini, APIKey: countKey, BaseURL: countRaw(t, test.answer, test.then)}
		n, err := counter.Count(t.Context(), "m", "t")
		if text := countFails(t, n, err); !strings.Contains(text, test.want) {
			t.Errorf("%.40q: %s; want %s", test.answer, text, test.want)
		}
	}
}

func TestCounterNobodyListens(t *testing.T) {
	counter := Counter{Provider: dialect.OpenAI, APIKey: countKey, BaseURL: "http://127.0.0.1:1"}
	n, err := counter.Count(t.Context(), "m", "t")
	if text := countFails(t, n, err); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%s; want one that wraps %v", text, syscall.ECONNREFUSED)
	}
}

// A caller that stops waiting gets the error of its context, wherever the server hangs.
func TestCounterContext(t *testing.T) {
	cause := errors.New("enough")
	for hangs, begin := range map[string]func(http.ResponseWriter){
		"before the header": func(http.ResponseWriter) {},
		"in the body": func(w http.ResponseWriter) {
			io.WriteString(w, `{"totalTokens":`)
			w.(http.Flusher).Flush()
		},
		"in the body of an error": func(w http.ResponseWriter) {
			w.WriteHeader(500)
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(hangs, func(t *testing.T) {
			arrived := make(chan struct{}, 1)
			server := countServer(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				begin(w)
				arrived <- struct{}{}
				<-r.Context().Done()
			})
			counter := Counter{Provider: dialect.Gemini, APIKey: countKey, BaseURL: server.URL}

			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				<-arrived
				cancel(cause)
			}()
			n, err := counter.Count(ctx, "m", "t")
			if text := countFails(t, n, err); !errors.Is(err, context.Canceled) {
				t.Errorf("%s; want one that wraps %v", text, context.Canceled)
			}

			ctx, stop := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
			defer stop()
			n, err = counter.Count(ctx, "m", "t")
			if text := countFails(t, n, err); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s; want one that wraps %v", text, context.DeadlineExceeded)
			}
		})
	}
}

func TestCounterContextThatHasEnded(t *testing.T) {
	server := countServer(t, func(http.ResponseWriter, *http.Request) { t.Error("asked all the same") })
	counter := Counter{Provider: dialect.Gemini, APIKey: countKey, BaseURL: server.URL}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
		n, err := counter.Count(ctx, "m", "t")
		if text := countFails(t, n, err); !errors.Is(err, want) {
			t.Errorf("%s; want one that wraps %v", text, want)
		}
	}
	var none context.Context
	n, err := counter.Count(none, "m", "t")
	if text := countFails(t, n, err); !strings.Contains(text, "nil Context") {
		t.Error(text)
	}
}

// The default client gives a hanging server up, even if the caller has no deadline.
func TestCounterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go io.Copy(io.Discard, far)
		client := *countClient
		client.Transport = &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return near, nil },
		}
		counter := Counter{Provider: dialect.Gemini, APIKey: countKey, BaseURL: "http://hangs", Client: &client}
		n, err := counter.Count(t.Context(), "m", "t")
		if text := countFails(t, n, err); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s; want one that wraps %v", text, context.DeadlineExceeded)
		}
	})
}

// A transport's own error that shows the key is not wrapped.
func TestCounterTransportThatTells(t *testing.T) {
	client := &http.Client{Transport: countTransport(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("cannot send %s %s\n", r.URL, r.Header)
	})}
	for _, provider := range countProviders {
		counter := Counter{Provider: provider, APIKey: countKey, Client: client}
		n, err := counter.Count(t.Context(), "m", "t")
		if text := countFails(t, n, err); !strings.Contains(text, "[key]") {
			t.Error(text)
		}
	}
}

type countTransport func(*http.Request) (*http.Response, error)

func (f countTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// countOnWire returns a client whose requests a handler reads from their bytes,
// without a socket: fuzzing is fast then, and each input runs the same way twice.
func countOnWire(handler http.HandlerFunc) *http.Client {
	return &http.Client{Transport: countTransport(func(r *http.Request) (*http.Response, error) {
		var wire bytes.Buffer
		if err := r.Write(&wire); err != nil {
			return nil, err
		}
		arrived, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil {
			return nil, err
		}
		recorder := httptest.NewRecorder()
		handler(recorder, arrived)
		return recorder.Result(), nil
	})}
}

// Whatever a model is called, it changes nothing of the path but its own part,
// and the key stays in its header.
func FuzzCountTokensPath(f *testing.F) {
	for _, model := range []string{
		"gemini-2.5-pro", "models/gemini-2.5-pro", "models/", "", "..", "../../x", "/", "//host/x", "a?b=c", "a#b", "a%2f..%2f", "a:b", "a\r\nb: c", "\x00", "\xff", "é", "http://host/",
		"models/models/x", "tunedModels/mine", `a\b`, "a b", "a%2Fb",
	} {
		for i := range countProviders {
			f.Add(uint8(i), model)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, model string) {
		if strings.Contains(model, countKey) {
			t.Skip()
		}
		var got countRequest
		client := countOnWire(func(w http.ResponseWriter, r *http.Request) {
			got = countRequestOf(r)
			io.WriteString(w, `{"totalTokens":3,"input_tokens":3}`)
		})
		provider := countProviders[int(which)%len(countProviders)]
		counter := Counter{Provider: provider, APIKey: countKey, BaseURL: "http://host/prefix", Client: client}
		n, err := counter.Count(t.Context(), model, "text")
		if err != nil {
			if text := countFails(t, n, err); got.uri != "" || !strings.Contains(text, "the model is") {
				t.Fatalf("%q: %s, after a request to %q", model, text, got.uri)
			}
			return
		}
		if n != 3 || got.host != "host" || got.method != http.MethodPost || strings.Contains(got.uri, url.PathEscape(countKey)) || strings.Contains(got.uri, countKey) {
			t.Fatalf("%q: counted %d at %s %s", model, n, got.method, got.uri)
		}
		for name, value := range countWire[provider].header {
			if got.header.Get(name) != value {
				t.Fatalf("%q: %s is %q", model, name, got.header.Get(name))
			}
		}
		if provider != dialect.Gemini {
			var body struct{ Model string }
			if err := json.Unmarshal([]byte(got.body), &body); err != nil || body.Model != model || got.uri != "/prefix"+countWire[provider].uri {
				t.Fatalf("%q is asked for as %q at %s, %v", model, body.Model, got.uri, err)
			}
			return
		}
		segment, within := strings.CutPrefix(got.uri, "/prefix/v1beta/models/")
		segment, counts := strings.CutSuffix(segment, ":countTokens")
		name, err := url.PathUnescape(segment)
		if !within || !counts || strings.ContainsAny(segment, "/?#:") || err != nil || name != strings.TrimPrefix(model, "models/") {
			t.Fatalf("%q is asked for at %s", model, got.uri)
		}
	})
}

// Whatever a server answers is a count or an error, and no error shows the key.
func FuzzCountTokensAnswer(f *testing.F) {
	for _, body := range []string{
		`{"totalTokens":7}`, `{"input_tokens":7}`, `{"input_tokens":-7}`, `{"totalTokens":1e9}`, `{"totalTokens":"7"}`, `{"totalTokens":99999999999999999999}`,
		``, `null`, `[]`, `{`, `{"error":{"message":"no"}}`, `{"error":{"message":` + countJSON(countKey) + `}}`, `{"error":"` + countKey + `"}`, countKey, "\x00\xff\u202e",
	} {
		for i := range countProviders {
			f.Add(uint8(i), uint16(0), body)
			f.Add(uint8(i), uint16(200), body)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, code uint16, body string) {
		status := 200 + int(code)%400
		provider := countProviders[int(which)%len(countProviders)]
		counter := Counter{Provider: provider, APIKey: countKey, Client: countOnWire(countAnswer(status, body))}
		n, err := counter.Count(t.Context(), "m", "text")
		if err != nil {
			countFails(t, n, err)
			return
		}
		if n < 0 || n > maxCounted || status != 200 || !strings.Contains(body, fmt.Sprint(n)) && n != 0 {
			t.Fatalf("%d %q is a count of %d", status, body, n)
		}
	})
}
