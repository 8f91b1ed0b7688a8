package dialect

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
)

var refusalAPIs = []API{Chat, Responses, Completions, Embeddings, Messages, Generate, OllamaChat, OllamaGenerate, CohereChat, CohereEmbed, CohereRerank, Converse, Invoke}

func TestRefuse(t *testing.T) {
	later := Refusal{Status: 429, Message: `all of "10 requests" <used>`, RetryAfter: 1500 * time.Millisecond, Retry: true}
	never := Refusal{Status: 400, Code: CodeNever, Message: "too large"}
	long := Refusal{Status: 429, Message: "a day", RetryAfter: llm.Day}
	long.CapRetryAfter(DefaultRetryAfterMax, time.Unix(1_000_000, 1))
	openAILater := `{"error":{"message":"all of \"10 requests\" <used>","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
	atTheTop := `{"message":"all of \"10 requests\" <used>","type":"requests","code":"rate_limit_exceeded",` + openAILater[1:]
	mistral := `{"object":"error","param":null,` + atTheTop[1:]
	openAINever := `{"error":{"message":"too large","type":"invalid_request_error","param":null,"code":"exceeds_limit"}}`
	openAILong := `{"error":{"message":"a day","type":"usage_limit_reached","param":null,"code":"insufficient_quota","resets_at":1086400}}`

	for _, test := range []struct {
		endpoint Endpoint
		refusal  Refusal
		want     string
	}{
		{Endpoint{Provider: OpenAI, API: Chat}, later, openAILater},
		{Endpoint{Provider: OpenAI, API: Chat}, never, openAINever},
		{Endpoint{Provider: OpenAI, API: Chat}, Refusal{Status: 400, Code: CodeNever, Message: "too large", LeaveRetry: true}, openAINever},
		{Endpoint{Provider: Azure, API: Responses}, later, openAILater},
		{Endpoint{Provider: Groq, API: Completions}, later, openAILater},
		{Endpoint{Provider: Mistral, API: Embeddings}, later, mistral},
		{Endpoint{Provider: Cohere, API: Chat}, later, mistral},
		{Endpoint{Provider: Cohere, API: CohereChat}, later, `{"message":"all of \"10 requests\" <used>"}`},
		{Endpoint{Provider: Bedrock, API: Chat}, later, mistral},
		{Endpoint{Provider: Bedrock, API: Converse}, later, `{"message":"all of \"10 requests\" <used>","__type":"ThrottlingException"}`},
		{Endpoint{Provider: Bedrock, API: Invoke}, never, `{"message":"too large","__type":"ValidationException"}`},
		{Endpoint{Provider: Bedrock, API: Invoke}, Refusal{Status: 429, Message: "m"}, `{"message":"m","__type":"ServiceQuotaExceededException"}`},
		{Endpoint{Provider: Cohere, API: CohereEmbed}, never, `{"message":"too large"}`},
		{Endpoint{Provider: OpenRouter, API: Chat}, never, openAINever},
		{Endpoint{Provider: Gemini, API: Chat}, later, openAILater},
		{Endpoint{Provider: Ollama, API: Chat}, later, openAILater},
		{Endpoint{}, later, openAILater},
		{Endpoint{Provider: Anthropic, API: Messages}, later, `{"type":"error","error":{"type":"rate_limit_error","message":"all of \"10 requests\" <used>"}}`},
		{Endpoint{Provider: Anthropic, API: Messages}, never, `{"type":"error","error":{"type":"invalid_request_error","message":"too large"}}`},
		{Endpoint{Provider: Anthropic, API: Messages}, Refusal{Status: 429, Code: CodeNever, Message: "too large"}, `{"type":"error","error":{"type":"invalid_request_error","message":"too large"}}`},
		{Endpoint{Provider: Anthropic, API: Messages}, Refusal{Status: 413, Message: "bytes"}, `{"type":"error","error":{"type":"request_too_large","message":"bytes"}}`},
		{Endpoint{Provider: OpenAI, API: Chat}, Refusal{Status: 413, Message: "bytes"}, `{"error":{"message":"bytes","type":"invalid_request_error","param":null,"code":"request_too_large"}}`},
		{Endpoint{Provider: OpenAI, API: Chat}, long, openAILong},
		{Endpoint{Provider: OpenAI, API: Responses}, long, openAILong},
		{Endpoint{Provider: Mistral, API: Chat}, long, `{"object":"error","message":"a day","type":"usage_limit_reached","param":null,"code":"insufficient_quota","resets_at":1086400,` + openAILong[1:]},
		{Endpoint{Provider: Anthropic, API: Messages}, long, `{"type":"error","error":{"type":"rate_limit_error","message":"a day","resets_at":1086400}}`},
		{Endpoint{Provider: Gemini, API: Generate}, long, `{"error":{"code":429,"message":"a day","status":"RESOURCE_EXHAUSTED","resets_at":1086400}}`},
		{Endpoint{Provider: Cohere, API: CohereChat}, long, `{"message":"a day","resets_at":1086400}`},
		{Endpoint{Provider: Bedrock, API: Converse}, long, `{"message":"a day","__type":"ServiceQuotaExceededException","resets_at":1086400}`},
		{Endpoint{Provider: Ollama, API: OllamaChat}, long, `{"error":"a day","resets_at":1086400}`},
		{Endpoint{Provider: OpenAI, API: Responses}, Refusal{Status: 429, Code: "paused", Message: "a pause of \"né\""}, `{"error":{"message":"a pause of \"né\"","type":"usage_limit_reached","param":null,"code":"paused"}}`},
		{Endpoint{Provider: Gemini, API: Generate}, later, `{"error":{"code":429,"message":"all of \"10 requests\" <used>","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}}`},
		{Endpoint{Provider: Vertex, API: Generate}, Refusal{Status: 429, Message: "m", RetryAfter: 22 * time.Second}, `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}}`},
		{Endpoint{Provider: Gemini, API: Generate}, Refusal{Status: 429, Message: "m"}, `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`},
		{Endpoint{Provider: Gemini, API: Generate}, never, `{"error":{"code":400,"message":"too large","status":"INVALID_ARGUMENT"}}`},
		{Endpoint{Provider: Ollama, API: OllamaChat}, later, `{"error":"all of \"10 requests\" <used>"}`},
		{Endpoint{Provider: Ollama, API: OllamaGenerate}, never, `{"error":"too large"}`},
	} {
		h, body := test.endpoint.Refuse(test.refusal)
		if diff := cmp.Diff(decoded(t, []byte(test.want)), decoded(t, body)); diff != "" {
			t.Errorf("%+v refuses with %s (-want +got):\n%s", test.endpoint, body, diff)
		}
		want := http.Header{
			"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))},
		}
		if !test.refusal.LeaveRetry {
			want["X-Should-Retry"] = []string{strconv.FormatBool(test.refusal.Retry)}
		}
		if test.endpoint.Provider == Bedrock {
			want["X-Amzn-Errortype"] = []string{amazonCode(test.refusal)}
		}
		switch {
		case test.endpoint.API == Responses && test.refusal.Message == "a day":
			want["X-Codex-Promo-Message"] = []string{"a day"}
		case test.endpoint.API == Responses && test.refusal.Code == "paused":
			want["X-Codex-Promo-Message"] = []string{`a pause of "n?"`}
		}
		switch test.refusal.RetryAfter {
		case 1500 * time.Millisecond:
			want["Retry-After"], want["Retry-After-Ms"] = []string{"2"}, []string{"1500"}
		case 22 * time.Second:
			want["Retry-After"], want["Retry-After-Ms"] = []string{"22"}, []string{"22000"}
		}
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("%+v refuses with headers (-want +got):\n%s", test.endpoint, diff)
		}
	}
}

func decoded(t *testing.T, body []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return value
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for _, test := range []struct {
		wait           time.Duration
		seconds, milli string
	}{
		{0, "", ""},
		{-time.Second, "", ""},
		{1, "1", "1"},
		{time.Millisecond, "1", "1"},
		{time.Millisecond + 1, "1", "2"},
		{time.Second, "1", "1000"},
		{time.Second + 1, "2", "1001"},
		{llm.Day, "86400", "86400000"},
		{math.MaxInt64, "9223372037", "9223372036855"},
	} {
		for _, api := range refusalAPIs {
			h, body := Endpoint{API: api}.Refuse(Refusal{Status: 429, RetryAfter: test.wait})
			if h.Get("Retry-After") != test.seconds || h.Get("Retry-After-Ms") != test.milli {
				t.Errorf("%s, a wait of %v: Retry-After %q, Retry-After-Ms %q; want %q, %q", api, test.wait, h.Get("Retry-After"), h.Get("Retry-After-Ms"), test.seconds, test.milli)
			}
			if told := strings.Contains(string(body), "retryDelay"); told != (api == Generate && test.wait > 0) {
				t.Errorf("%s, a wait of %v: %s", api, test.wait, body)
			}
		}
	}
}

// A wait that is not longer than the longest stays as it is.
func TestCapRetryAfter(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second, DefaultRetryAfterMax} {
		r := Refusal{Status: 429, RetryAfter: wait, Retry: true}
		r.CapRetryAfter(DefaultRetryAfterMax, time.Unix(1, 0))
		if r != (Refusal{Status: 429, RetryAfter: wait, Retry: true}) {
			t.Errorf("%v: %+v", wait, r)
		}
	}
}

// A budget of a day that was used up at a gateway behind this one is not money that somebody has to pay.
func TestLongWaitsReadBack(t *testing.T) {
	for _, api := range refusalAPIs {
		r := Refusal{Status: 429, Message: "not sent: all is used: try again in 23h0m0s", RetryAfter: 23 * time.Hour}
		r.CapRetryAfter(DefaultRetryAfterMax, limitsNow)
		h, body := Endpoint{API: api}.Refuse(r)
		if got := ReadLimits(OpenAI, r.Status, h, body, limitsNow); got.Cause != llm.RateLimited || got.Pause != 23*time.Hour {
			t.Errorf("%s: %s is read as %+v", api, body, got)
		}
	}
}

// ReadLimits reads a refusal of ours as it reads the provider's own.
func TestRefusalsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Endpoint{Provider: rapid.SampledFrom(limitProviders).Draw(t, "provider"), API: rapid.SampledFrom(refusalAPIs).Draw(t, "api")}
		r := Refusal{
			Status:     429,
			Message:    rapid.StringMatching(`[^a-zA-Z(]*`).Draw(t, "message"), // says nothing of waits, days or money
			RetryAfter: time.Duration(rapid.Int64Range(0, 86_400_000).Draw(t, "ms")) * time.Millisecond,
			Retry:      rapid.Bool().Draw(t, "retry"),
		}
		h, body := e.Refuse(r)
		if !json.Valid(body) {
			t.Fatalf("%s is no JSON", body)
		}
		want := r.RetryAfter
		if want == 0 {
			want = guessedRate
		}
		want = max(want, minPause)
		read := func(h http.Header) {
			got := checkReading(t, e.Provider, r.Status, h, body, limitsNow)
			if got.Cause != llm.RateLimited || got.Pause != want || got.Windows != nil {
				t.Fatalf("%+v is read as %+v", r, got)
			}
		}
		read(h)
		if e.API == Generate {
			read(nil) // the body says it all
		}

		r.Status, r.Code = e.API.NeverStatus(), CodeNever
		h, body = e.Refuse(r)
		if got := ReadLimits(e.Provider, r.Status, h, body, limitsNow); got.Cause != "" || got.Windows != nil {
			t.Fatalf("%+v is read as %+v", r, got)
		}
	})
}

// errorOf decodes the message of a refusal with encoding/json.
func errorOf(api API, body []byte) (message string, err error) {
	if api == OllamaChat || api == OllamaGenerate {
		var shape struct{ Error string }
		err = json.Unmarshal(body, &shape)
		return shape.Error, err
	}
	switch api {
	case CohereChat, CohereEmbed, CohereRerank, Converse, Invoke:
		var shape struct{ Message string }
		err = json.Unmarshal(body, &shape)
		return shape.Message, err
	}
	var shape struct{ Error struct{ Message string } }
	err = json.Unmarshal(body, &shape)
	return shape.Error.Message, err
}

func FuzzRefuse(f *testing.F) {
	for i, message := range []string{"", "plain", `"quoted" \ back`, "new\nline", "<b>&amp;</b>", "\xff\xfe", "\x00", "日本 \u2028", `{"error":{}}`} {
		f.Add(uint8(i), uint16(429), message, int64(i)*1e9, i%2 == 0)
		f.Add(uint8(i), uint16(413), message, int64(-i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, api uint8, status uint16, message string, wait int64, retry bool) {
		e := Endpoint{API: refusalAPIs[int(api)%len(refusalAPIs)]}
		r := Refusal{Status: int(status), Message: message, RetryAfter: time.Duration(wait), Retry: retry}
		h, body := e.Refuse(r)
		got, err := errorOf(e.API, body)
		if want := string([]rune(message)); err != nil || got != want { // what is no UTF-8 is replaced
			t.Fatalf("%s: %q in %s, %v; want %q", e.API, got, body, err, want)
		}
		if h.Get("Content-Length") != strconv.Itoa(len(body)) || (h.Get("Retry-After") != "") != (wait > 0) {
			t.Fatalf("%+v: %v", r, h)
		}
		checkReading(t, OpenAI, int(status), h, body, limitsNow)
	})
}
