package dialect

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

var (
	limitProviders = []llm.Provider{OpenAI, Azure, Anthropic, Gemini, Vertex, Groq, Mistral, OpenRouter, Ollama, Cohere, Bedrock, Compatible}
	limitStatuses  = []int{429, 503, 529, 200, 201, 400, 402, 403, 404, 413, 500, 502, 0, -1}
)

// limitHeaderNames returns the names of all headers that are read.
func limitHeaderNames() []string {
	names := []string{"Retry-After", "Retry-After-Ms"}
	for _, w := range allWindowHeaders {
		names = append(names, w.limit, w.remaining, w.reset)
	}
	return names
}

// The names are looked up in the map directly, so they must be spelled as http.Header spells them.
func TestHeaderNamesAreCanonical(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range limitHeaderNames() {
		if name != http.CanonicalHeaderKey(name) || seen[name] {
			t.Errorf("%q is not canonical, or comes twice", name)
		}
		seen[name] = true
	}
}

// checkLimits checks what holds for every result of ReadLimits.
func checkLimits(t rapid.TB, status int, l llm.Limits) {
	t.Helper()
	for _, w := range l.Windows {
		known := w.Limit > 0 || w.Remaining >= 0 || w.Reset > 0
		switch {
		case !slices.Contains([]llm.Unit{llm.Requests, llm.AllTokens, llm.InputTokens, llm.OutputTokens}, w.Unit),
			!slices.Contains([]time.Duration{0, time.Second, time.Minute, llm.Day}, w.Per),
			w.Limit < 0 || w.Limit > 1<<53,
			w.Remaining < -1 || w.Remaining > 1<<53,
			w.Limit > 0 && w.Remaining > w.Limit,
			w.Reset < 0 || w.Reset > llm.Day,
			!known:
			t.Fatalf("%+v makes no sense", w)
		}
	}
	if (l.Cause != "") != (l.Pause > 0) || l.Pause > llm.Day {
		t.Fatalf("cause %q, pause %v", l.Cause, l.Pause)
	}
	switch l.Cause {
	case "":
		if status == 429 || status == 529 {
			t.Fatalf("status %d has no cause", status)
		}
	case llm.RateLimited:
		if status != 429 || l.Pause < minPause {
			t.Fatalf("status %d: rate limited for %v", status, l.Pause)
		}
	case llm.DayLimited, llm.SpendCap:
		if status != 429 || l.Pause < time.Minute {
			t.Fatalf("status %d: %s for %v", status, l.Cause, l.Pause)
		}
	case llm.Overloaded:
		if status != 503 && status != 529 || l.Pause < minPause {
			t.Fatalf("status %d: overload for %v", status, l.Pause)
		}
	default:
		t.Fatalf("an unknown cause %q", l.Cause)
	}
}

// checkReading calls ReadLimits, checks the result, and checks that it does not depend on the order
// of a map.
func checkReading(t rapid.TB, p llm.Provider, status int, h http.Header, body []byte, now time.Time) llm.Limits {
	t.Helper()
	l := ReadLimits(p, status, h, body, now)
	checkLimits(t, status, l)
	if diff := cmp.Diff(l, ReadLimits(p, status, h.Clone(), body, now)); diff != "" {
		t.Fatalf("read twice, it differs:\n%s", diff)
	}
	return l
}

func FuzzReadHeaders(f *testing.F) {
	for _, test := range waitTests {
		f.Add(uint8(0), uint8(0), uint8(4), uint8(3), "0", test.text)
		f.Add(uint8(7), uint8(3), uint8(31), uint8(30), "5", test.text)
	}
	for _, text := range []string{"", "0", "-1", "60", "9007199254740993", "NaN", "unlimited"} {
		f.Add(uint8(5), uint8(1), uint8(2), uint8(3), text, "60")
	}
	names := limitHeaderNames()
	f.Fuzz(func(t *testing.T, provider, status, one, other uint8, a, b string) {
		h := headersOf(names[int(one)%len(names)], a, names[int(other)%len(names)], b)
		checkReading(t, limitProviders[int(provider)%len(limitProviders)], limitStatuses[int(status)%len(limitStatuses)], h, nil, limitsNow)
	})
}

func FuzzReadErrorBody(f *testing.F) {
	for _, body := range []string{
		"", "null", "[]", "{}", "<html>try again in 5 minutes</html>",
		openAIError("insufficient_quota", "insufficient_quota", "You exceeded your current quota"),
		openAIError("tokens", "rate_limit_exceeded", "on tokens per day (TPD): Please try again in 14m24s."),
		anthropicError("rate_limit_error", "You have reached your monthly spend limit."),
		anthropicError("overloaded_error", "Overloaded"),
		geminiError("22s", "GenerateRequestsPerDayPerProjectPerModel-FreeTier", `"50"`, "GenerateContentInputTokensPerModelPerMinute", `1000`),
		"[" + geminiError("0.5s") + "]",
		`{"error":"daily limit"}`,
		`{"error":{"code":429,"message":"free-models-per-day","metadata":{"limit_source":"daily","headers":{"x-ratelimit-reset":1794787200000,"X-RateLimit-Reset":"7","Retry-After":"2026-11-15T12:00:20Z"}}}}`,
	} {
		for status := range uint8(4) {
			f.Add(uint8(0), status, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, provider, status uint8, body []byte) {
		checkReading(t, limitProviders[int(provider)%len(limitProviders)], limitStatuses[int(status)%len(limitStatuses)], nil, body, limitsNow)
	})
}

// jsonValue draws JSON in the shape of errors, with any value anywhere.
func jsonValue(t *rapid.T, depth int) any {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true),
		rapid.Map(rapid.Float64(), func(n float64) any { return n }),
		rapid.Map(rapid.Int64Range(-5, 2_000_000_000_000), func(n int64) any { return n }),
		rapid.Map(rapid.SampledFrom([]string{
			"error", "rate_limit_error", "insufficient_quota", "slow_down", "RESOURCE_EXHAUSTED", "a.RetryInfo", "a.QuotaFailure",
			"22s", "-1", "50", "GenerateRequestsPerDay", "InputTokensPerMinute", "requests per day", "Please try again in 7m12s.",
			"spend limit", "overloaded", "2026-11-15T12:00:20Z", "1794787200000", "NaN",
		}), func(s string) any { return s }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
	)
	if depth == 0 {
		return leaf.Draw(t, "leaf")
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return leaf.Draw(t, "leaf")
	case 1:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = jsonValue(t, depth-1)
		}
		return list
	}
	object := map[string]any{}
	names := append(limitHeaderNames(), "error", "type", "code", "status", "message", "details", "metadata", "headers", "limit_source",
		"@type", "retryDelay", "violations", "quotaId", "quotaMetric", "quotaValue")
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "names") {
		object[name] = jsonValue(t, depth-1)
	}
	return object
}

// jsonBody draws the body of an error: most often an object with an error in it.
func jsonBody(t *rapid.T) []byte {
	value := jsonValue(t, 5)
	if rapid.Bool().Draw(t, "in an error") {
		value = map[string]any{"error": value}
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil // NaN
	}
	return body
}

// A pause comes with a cause, and is between minPause and a day, whatever a server sends.
func TestPauseComesWithCause(t *testing.T) {
	names := limitHeaderNames()
	values := rapid.OneOf(
		rapid.SampledFrom([]string{"", "0", "-1", "1", "60", "0.5", "1s", "6m0s", "1794744020", "1794787200000", "2026-11-15T12:00:20Z", "Sun, 15 Nov 2026 12:00:20 GMT", "NaN", "9007199254740993"}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 8).Draw(t, "headers") {
			h.Add(name, values.Draw(t, name))
		}
		now := limitsNow.Add(time.Duration(rapid.Int64().Draw(t, "ahead")))
		checkReading(t, rapid.SampledFrom(limitProviders).Draw(t, "provider"), rapid.SampledFrom(limitStatuses).Draw(t, "status"), h, jsonBody(t), now)
	})
}
