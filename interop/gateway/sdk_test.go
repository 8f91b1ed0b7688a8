package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// ask is a call that a test wants an SDK to make.
type ask struct {
	Call    string `json:"call"` // its name
	Base    string `json:"base"` // the base URL; empty: the SDK reads it, and the key, from the environment
	Key     string `json:"key"`
	Model   string `json:"model"`
	Mock    string `json:"mock"`    // the header X-Mock, which says how the mock answers
	Retries int    `json:"retries"` // how often the SDK may try again
	Pieces  int    `json:"pieces"`  // of a stream that stays open, how many to wait for
}

// answer is what an SDK has shown of a call, in JSON.
type answer struct {
	Shown []string `json:"shown"` // a result, or the pieces of a stream
	Error *fault   `json:"error"` // how it has ended
}

// fault is an error of an SDK's own.
type fault struct {
	Type    string            `json:"type"`
	Status  int               `json:"status"`
	Message string            `json:"message"`
	Headers map[string]string `json:"headers"` // their names in lower case; of Gemini's SDKs there are none
}

// show adds a result.
func (a *answer) show(result any) {
	text, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	a.Shown = append(a.Shown, string(text))
}

// raw adds a result as it came, of SDKs that keep that.
func (a *answer) raw(result interface{ RawJSON() string }) {
	a.Shown = append(a.Shown, result.RawJSON())
}

// headersOf returns headers as Node.js shows them.
func headersOf(h http.Header) map[string]string {
	all := map[string]string{}
	for name, values := range h {
		all[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return all
}

// sdk is one of the SDKs.
type sdk struct {
	name     string
	provider string   // whose it is, by its name in the path
	root     string   // of a base URL, behind the provider's own address
	model    string   // that it calls
	calls    []string // that it can make, beside those that all can
	pieces   int      // that it shows of a stream of five events that bring tokens
	retries  bool     // it tries again after as long as the answer says
	faults   func(status int) string
	do       func(*testing.T, ask) answer
}

// every call that all SDKs can make.
var every = []string{"whole", "stream", "tools", "tools-stream"}

var sdks = []*sdk{
	{
		name: "openai-go", provider: "openai", root: "/v1", model: "gpt-test", do: goOpenAI, pieces: 6, retries: true,
		calls:  []string{"stream-usage", "responses", "responses-stream", "responses-tools", "embeddings", "models", "upload"},
		faults: only("*apierror.Error"),
	},
	{
		name: "openai-node", provider: "openai", root: "/v1", model: "gpt-test", do: nodes["openai"].do, pieces: 6, retries: true,
		calls:  []string{"stream-usage", "responses", "responses-stream", "responses-tools", "embeddings", "models", "upload"},
		faults: byStatus(nil),
	},
	{
		name: "anthropic-go", provider: "anthropic", model: "claude-test", do: goAnthropic, pieces: 7, retries: true,
		calls:  []string{"count", "bearer"},
		faults: only("*apierror.Error"),
	},
	{
		name: "anthropic-node", provider: "anthropic", model: "claude-test", do: nodes["anthropic"].do, pieces: 7, retries: true,
		calls:  []string{"count", "bearer"},
		faults: byStatus(map[int]string{413: "RequestTooLargeError", 503: "ServiceUnavailableError", 529: "OverloadedError"}),
	},
	{
		name: "gemini-go", provider: "gemini", model: "gemini-test", do: goGemini, pieces: 5,
		calls:  []string{"count"},
		faults: only("genai.APIError"),
	},
	{
		name: "gemini-node", provider: "gemini", model: "gemini-test", do: nodes["gemini"].do, pieces: 5,
		calls:  []string{"count"},
		faults: only("ApiError"),
	},
}

// only is an SDK that has one type of errors.
func only(name string) func(int) string { return func(int) string { return name } }

// byStatus is an SDK that has a type of errors for each status, and these beside what
// all such have.
func byStatus(more map[int]string) func(int) string {
	return func(status int) string {
		if name := more[status]; name != "" {
			return name
		}
		return faultsByStatus[status]
	}
}

var faultsByStatus = map[int]string{
	400: "BadRequestError",
	401: "AuthenticationError",
	403: "PermissionDeniedError",
	404: "NotFoundError",
	429: "RateLimitError",
	500: "InternalServerError",
	502: "InternalServerError",
	503: "InternalServerError",
	529: "InternalServerError",
}

// overEach runs a test with each SDK, all at a time.
func overEach(t *testing.T, test func(*testing.T, *sdk)) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}
