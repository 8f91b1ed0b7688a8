package dialect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
)

// headersOf returns headers from alternating names and values.
func headersOf(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const (
	second = time.Second
	minute = time.Minute
)

func TestReadWindows(t *testing.T) {
	for name, test := range map[string]struct {
		provider llm.Provider
		header   http.Header
		want     []llm.Window
	}{
		"nothing":        {OpenAI, nil, nil},
		"nothing of use": {OpenAI, headersOf("content-type", "application/json", "retry-after", "5"), nil},
		"OpenAI": {OpenAI, headersOf(
			"x-ratelimit-limit-requests", "500", "x-ratelimit-remaining-requests", "499", "x-ratelimit-reset-requests", "120ms",
			"x-ratelimit-limit-tokens", "30000", "x-ratelimit-remaining-tokens", "29000", "x-ratelimit-reset-tokens", "2s"),
			[]llm.Window{windowOf(llm.Requests, minute, 500, 499, 120*time.Millisecond), windowOf(llm.AllTokens, minute, 30000, 29000, 2*second)}},
		"OpenAI, of a project too": {OpenAI, headersOf(
			"x-ratelimit-limit-tokens", "30000", "x-ratelimit-remaining-tokens", "29000", "x-ratelimit-reset-tokens", "2s",
			"x-ratelimit-limit-project-tokens", "10000", "x-ratelimit-remaining-project-tokens", "9000", "x-ratelimit-reset-project-tokens", "6s"),
			[]llm.Window{windowOf(llm.AllTokens, minute, 30000, 29000, 2*second), windowOf(llm.AllTokens, minute, 10000, 9000, 6*second)}},
		"OpenAI, a few requests a minute": {OpenAI, headersOf(
			"x-ratelimit-limit-requests", "3", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "59.999s"),
			[]llm.Window{windowOf(llm.Requests, minute, 3, 0, 59999*time.Millisecond)}},
		"OpenAI, requests a day": {OpenAI, headersOf(
			"x-ratelimit-limit-requests", "200", "x-ratelimit-remaining-requests", "199", "x-ratelimit-reset-requests", "7m12s"),
			[]llm.Window{windowOf(llm.Requests, llm.Day, 200, 199, 432*second)}},
		"OpenAI, many requests a day": {OpenAI, headersOf(
			"x-ratelimit-limit-requests", "10000", "x-ratelimit-remaining-requests", "9999", "x-ratelimit-reset-requests", "8.64s"),
			[]llm.Window{windowOf(llm.Requests, llm.Day, 10000, 9999, 8640*time.Millisecond)}},
		"OpenAI, requests a day, the second": {OpenAI, headersOf(
			"x-ratelimit-limit-requests", "10000", "x-ratelimit-remaining-requests", "9998", "x-ratelimit-reset-requests", "9.1s"),
			[]llm.Window{windowOf(llm.Requests, llm.Day, 10000, 9998, 9100*time.Millisecond)}},
		"OpenAI, tokens that take longer than a minute": {OpenAI, headersOf(
			"x-ratelimit-limit-tokens", "150000", "x-ratelimit-remaining-tokens", "149984", "x-ratelimit-reset-tokens", "6m0s"),
			[]llm.Window{windowOf(llm.AllTokens, 0, 150000, 149984, 6*minute)}},
		"Azure, whole seconds": {Azure, headersOf(
			"x-ratelimit-limit-requests", "50000", "x-ratelimit-remaining-requests", "49999", "x-ratelimit-reset-requests", "1"),
			[]llm.Window{windowOf(llm.Requests, minute, 50000, 49999, second)}},
		"Azure": {Azure, headersOf(
			"x-ratelimit-remaining-requests", "99", "x-ratelimit-remaining-tokens", "9990",
			"x-ratelimit-limit-tokens", "10000000", "x-ratelimit-reset-tokens", "1"),
			[]llm.Window{windowOf(llm.Requests, minute, 0, 99, 0), windowOf(llm.AllTokens, minute, 10000000, 9990, second)}},
		"Azure, not known": {Azure, headersOf(
			"x-ratelimit-limit-requests", "-1", "x-ratelimit-remaining-requests", "-1", "x-ratelimit-reset-requests", "-1",
			"x-ratelimit-limit-tokens", "-1", "x-ratelimit-remaining-tokens", "5", "x-ratelimit-reset-tokens", "0"),
			[]llm.Window{windowOf(llm.AllTokens, minute, 0, 5, 0)}},
		"Groq": {Groq, headersOf(
			"x-ratelimit-limit-requests", "14400", "x-ratelimit-remaining-requests", "14399", "x-ratelimit-reset-requests", "6s",
			"x-ratelimit-limit-tokens", "18000", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "2m59.56s"),
			[]llm.Window{windowOf(llm.Requests, llm.Day, 14400, 14399, 6*second), windowOf(llm.AllTokens, minute, 18000, 0, minute)}}, // which cannot take longer
		"Groq by another name": {Compatible, headersOf(
			"x-ratelimit-limit-requests", "14400", "x-ratelimit-remaining-requests", "14370", "x-ratelimit-reset-requests", "2m59.56s",
			"x-ratelimit-limit-tokens", "18000", "x-ratelimit-remaining-tokens", "17997", "x-ratelimit-reset-tokens", "7.66s"),
			[]llm.Window{windowOf(llm.Requests, llm.Day, 14400, 14370, 179560*time.Millisecond), windowOf(llm.AllTokens, minute, 18000, 17997, 7660*time.Millisecond)}},
		"Anthropic": {Anthropic, headersOf(
			"anthropic-ratelimit-requests-limit", "1000", "anthropic-ratelimit-requests-remaining", "999", "anthropic-ratelimit-requests-reset", "2026-11-15T12:00:01Z",
			"anthropic-ratelimit-input-tokens-limit", "2000000", "anthropic-ratelimit-input-tokens-remaining", "1999000", "anthropic-ratelimit-input-tokens-reset", "2026-11-15T12:00:00Z",
			"anthropic-ratelimit-output-tokens-limit", "400000", "anthropic-ratelimit-output-tokens-remaining", "0", "anthropic-ratelimit-output-tokens-reset", "2026-11-15T13:01:00+01:00",
			"anthropic-ratelimit-tokens-limit", "2400000", "anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", "2026-11-15T12:01:00Z"),
			[]llm.Window{windowOf(llm.Requests, minute, 1000, 999, second), windowOf(llm.InputTokens, minute, 2000000, 1999000, 0), windowOf(llm.OutputTokens, minute, 400000, 0, minute)}},
		"Anthropic, tokens alone": {Compatible, headersOf(
			"anthropic-ratelimit-tokens-limit", "50000", "anthropic-ratelimit-tokens-remaining", "50000", "anthropic-ratelimit-tokens-reset", "2026-11-15T11:59:00Z"),
			[]llm.Window{windowOf(llm.AllTokens, minute, 50000, 50000, 0)}},
		"Anthropic, tokens and output": {Anthropic, headersOf(
			"anthropic-ratelimit-tokens-remaining", "50000", "anthropic-ratelimit-output-tokens-remaining", "8000"),
			[]llm.Window{windowOf(llm.OutputTokens, minute, 0, 8000, 0)}},
		"Anthropic, rounded up": {Anthropic, headersOf(
			"anthropic-ratelimit-output-tokens-limit", "4800", "anthropic-ratelimit-output-tokens-remaining", "5000"),
			[]llm.Window{windowOf(llm.OutputTokens, minute, 4800, 4800, 0)}},
		"Mistral": {Mistral, headersOf(
			"x-ratelimit-limit-req-minute", "720", "x-ratelimit-remaining-req-minute", "717",
			"x-ratelimit-limit-tokens-minute", "5000000", "x-ratelimit-remaining-tokens-minute", "4999911", "x-ratelimit-tokens-query-cost", "52"),
			[]llm.Window{windowOf(llm.Requests, minute, 720, 717, 0), windowOf(llm.AllTokens, minute, 5000000, 4999911, 0)}},
		"OpenRouter, a minute": {OpenRouter, headersOf("X-RateLimit-Limit", "20", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1794744030000"),
			[]llm.Window{windowOf(llm.Requests, minute, 20, 0, 30*second)}},
		"OpenRouter, a day": {OpenRouter, headersOf("X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1794787200000"),
			[]llm.Window{windowOf(llm.Requests, llm.Day, 50, 0, 12*time.Hour)}},
		"OpenRouter, in seconds since 1970": {OpenRouter, headersOf("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1794744030"),
			[]llm.Window{windowOf(llm.Requests, minute, 0, 0, 30*second)}},
		"OpenRouter, in seconds": {OpenRouter, headersOf("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"),
			[]llm.Window{windowOf(llm.Requests, minute, 0, 0, 30*second)}},
		"OpenRouter, over": {OpenRouter, headersOf("X-RateLimit-Remaining", "19", "X-RateLimit-Reset", "1794743999000"),
			[]llm.Window{windowOf(llm.Requests, 0, 0, 19, 0)}},
		"somebody's": {Compatible, headersOf("X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "40", "X-RateLimit-Reset", "1200"),
			[]llm.Window{windowOf(llm.Requests, 0, 100, 40, 20*minute)}},
		"a limit alone":     {OpenAI, headersOf("x-ratelimit-limit-requests", "60"), []llm.Window{windowOf(llm.Requests, minute, 60, -1, 0)}},
		"a remainder alone": {OpenAI, headersOf("x-ratelimit-remaining-requests", "0"), []llm.Window{windowOf(llm.Requests, minute, 0, 0, 0)}},
		"a reset alone":     {OpenAI, headersOf("x-ratelimit-reset-requests", "1s"), []llm.Window{windowOf(llm.Requests, minute, 0, -1, second)}},
		"twice, the stricter": {OpenAI, headersOf(
			"x-ratelimit-limit-requests", "60", "x-ratelimit-limit-requests", "50",
			"x-ratelimit-remaining-requests", "7", "x-ratelimit-remaining-requests", "9",
			"x-ratelimit-reset-requests", "1s", "x-ratelimit-reset-requests", "3s"),
			[]llm.Window{windowOf(llm.Requests, minute, 50, 7, 3*second)}},
		"nonsense": {OpenAI, headersOf(
			"x-ratelimit-limit-requests", "unlimited", "x-ratelimit-remaining-requests", "NaN", "x-ratelimit-reset-requests", "soon",
			"x-ratelimit-limit-tokens", "0", "x-ratelimit-remaining-tokens", "9007199254740993", "x-ratelimit-reset-tokens", "-1s",
			"anthropic-ratelimit-requests-limit", "", "anthropic-ratelimit-requests-remaining", "1e6", "anthropic-ratelimit-requests-reset", "tomorrow"),
			nil},
		"a wait of years": {OpenAI, headersOf("x-ratelimit-limit-requests", "1", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "20000h"),
			[]llm.Window{windowOf(llm.Requests, llm.Day, 1, 0, llm.Day)}},
	} {
		for _, status := range []int{200, 201, 400, 402, 403, 404, 413, 500, 502, 504, 0} {
			got := ReadLimits(test.provider, status, test.header, nil, limitsNow)
			if diff := cmp.Diff(llm.Limits{Windows: test.want}, got); diff != "" {
				t.Errorf("%s, status %d (-want +got):\n%s", name, status, diff)
			}
		}
	}
}

// Real servers write names in any case, and HTTP/2 has lower case alone.
func TestReadLimitsOfAServer(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["x-ratelimit-LIMIT-requests"] = []string{"500"}
		w.Header()["x-ratelimit-remaining-requests"] = []string{" 499 "}
		w.Header()["X-RateLimit-Reset-Requests"] = []string{"120ms"}
		w.Header()["anthropic-ratelimit-output-tokens-remaining"] = []string{"8000"}
	})
	one := httptest.NewServer(handler)
	defer one.Close()
	two := httptest.NewUnstartedServer(handler)
	two.EnableHTTP2 = true
	two.StartTLS()
	defer two.Close()

	want := llm.Limits{Windows: []llm.Window{windowOf(llm.OutputTokens, minute, 0, 8000, 0), windowOf(llm.Requests, minute, 500, 499, 120*time.Millisecond)}}
	for version, server := range map[int]*httptest.Server{1: one, 2: two} {
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.ProtoMajor != version {
			t.Fatalf("this is HTTP/%d; want HTTP/%d", resp.ProtoMajor, version)
		}
		if diff := cmp.Diff(want, ReadLimits(Compatible, resp.StatusCode, resp.Header, nil, limitsNow)); diff != "" {
			t.Errorf("HTTP/%d (-want +got):\n%s", version, diff)
		}
	}
}

// A window written in a provider's own headers is read back.
func TestWindowsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1<<53).Draw(t, "limit")
		remaining := rapid.Int64Range(0, limit).Draw(t, "remaining")
		reset := time.Duration(rapid.Int64Range(0, int64(llm.Day)).Draw(t, "reset"))
		at := limitsNow.Add(reset).In(time.FixedZone("", rapid.IntRange(-12, 14).Draw(t, "zone")*3600))

		for unit, name := range map[llm.Unit]string{llm.Requests: "requests", llm.AllTokens: "tokens"} {
			h := headersOf("x-ratelimit-limit-"+name, decimal(limit), "x-ratelimit-remaining-"+name, decimal(remaining), "x-ratelimit-reset-"+name, reset.String())
			got := ReadLimits(OpenAI, 200, h, nil, limitsNow).Windows
			if len(got) != 1 || got[0].Per != minute && got[0].Per != llm.Day && reset <= maxMinuteReset {
				t.Fatalf("%v is read as %+v", h, got)
			}
			want := windowOf(unit, got[0].Per, limit, remaining, reset)
			if want.Per > 0 {
				want.Reset = min(reset, want.Per)
			}
			if got[0] != want {
				t.Fatalf("%v is read as %+v; want %+v", h, got[0], want)
			}
		}
		for unit, name := range map[llm.Unit]string{llm.Requests: "requests", llm.AllTokens: "tokens", llm.InputTokens: "input-tokens", llm.OutputTokens: "output-tokens"} {
			prefix := "anthropic-ratelimit-" + name
			h := headersOf(prefix+"-limit", decimal(limit), prefix+"-remaining", decimal(remaining), prefix+"-reset", at.Format(time.RFC3339Nano))
			got := ReadLimits(Anthropic, 200, h, nil, limitsNow).Windows
			if want := windowOf(unit, minute, limit, remaining, min(reset, minute)); len(got) != 1 || got[0] != want {
				t.Fatalf("%v is read as %+v; want %+v", h, got, want)
			}
		}
	})
}

// The Per of a bucket follows from its own numbers, however much of it is used.
func TestPerOfABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		per := rapid.SampledFrom([]time.Duration{minute, llm.Day}).Draw(t, "per")
		limit := rapid.Int64Range(1, 30000).Draw(t, "limit")
		used := rapid.Float64Range(0, float64(limit)).Draw(t, "used") // the bucket fills between requests
		reset := time.Duration(used / float64(limit) * float64(per)).Round(time.Millisecond)
		if reset < second {
			t.Skip("too little is used to tell")
		}
		if used < 1 {
			used = 1 // the request that this answers is in it
			reset = time.Duration(float64(per) / float64(limit)).Round(time.Millisecond)
		}
		left := int64(float64(limit) - used)
		h := headersOf("x-ratelimit-limit-requests", decimal(limit), "x-ratelimit-remaining-requests", decimal(left), "x-ratelimit-reset-requests", reset.String())
		got := ReadLimits(OpenAI, 200, h, nil, limitsNow).Windows
		if len(got) != 1 || got[0].Per != per {
			t.Fatalf("a bucket per %v, with %v of %d used: %v is read as %+v", per, used, limit, h, got)
		}
	})
}

const openAIMessage = "Rate limit reached for gpt-6-astra in organization org-1 on "

func openAIError(kind, code, message string) string {
	return `{"error":{"message":"` + message + `","type":"` + kind + `","param":null,"code":"` + code + `"}}`
}

func anthropicError(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
}

// geminiError returns an error with a violation for each quota: its id, and its value in JSON.
func geminiError(delay string, quotas ...string) string {
	details := `{"@type":"type.googleapis.com/google.rpc.Help","links":[]}`
	var violations []string
	for i := 0; i < len(quotas); i += 2 {
		violations = append(violations, `{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier","quotaId":"`+quotas[i]+
			`","quotaDimensions":{"location":"global","model":"gemini-3-pro"},"quotaValue":`+quotas[i+1]+`}`)
	}
	if quotas != nil {
		details += `,{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[` + strings.Join(violations, ",") + `]}`
	}
	if delay != "" {
		details += `,{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}`
	}
	return `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[` + details + `]}}`
}

func TestReadRefused(t *testing.T) {
	const (
		requestsADay    = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
		requestsAMinute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
		inputAMinute    = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
		inputADay       = "GenerateContentInputTokensPerModelPerDay-FreeTier"
		tokensADay      = "GenerateContentTokenCountPerModelPerDay"
		outputAMinute   = "GenerateContentOutputTokensPerModelPerMinute"
	)
	midnight := 20 * time.Hour // in California
	requestsOut := headersOf("x-ratelimit-limit-requests", "500", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "30s")
	dayOut := headersOf("x-ratelimit-limit-requests", "1000", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "23h")
	outOfOutput := headersOf("anthropic-ratelimit-output-tokens-remaining", "0", "anthropic-ratelimit-output-tokens-reset", "2026-11-15T12:00:40Z")

	for name, test := range map[string]struct {
		provider llm.Provider
		status   int
		header   http.Header
		body     string
		cause    llm.Cause
		pause    time.Duration
		windows  []llm.Window
	}{
		"OpenAI, retry-after-ms": {OpenAI, 429, headersOf("retry-after", "1", "retry-after-ms", "230"),
			openAIError("tokens", "rate_limit_exceeded", openAIMessage+"tokens per min (TPM): Limit 30000, Used 29937. Please try again in 644ms."), llm.RateLimited, 230 * time.Millisecond, nil},
		"OpenAI, retry-after":         {OpenAI, 429, headersOf("retry-after", "2"), openAIError("requests", "slow_down", "Slow down."), llm.RateLimited, 2 * second, nil},
		"OpenAI, a float":             {OpenAI, 429, headersOf("retry-after", "0.25"), "", llm.RateLimited, 250 * time.Millisecond, nil},
		"OpenAI, a date":              {OpenAI, 429, headersOf("retry-after", "Sun, 15 Nov 2026 12:00:07 GMT"), "", llm.RateLimited, 7 * second, nil},
		"OpenAI, a date that is over": {OpenAI, 429, headersOf("retry-after", "Sun, 15 Nov 2026 11:00:00 GMT"), "", llm.RateLimited, guessedRate, nil},
		"OpenAI, twice":               {OpenAI, 429, headersOf("retry-after", "2", "retry-after", "3", "retry-after", "-1"), "", llm.RateLimited, 3 * second, nil},
		"OpenAI, milliseconds twice":  {OpenAI, 429, headersOf("retry-after-ms", "20", "retry-after-ms", "30"), "", llm.RateLimited, 30 * time.Millisecond, nil},
		"OpenAI, bad milliseconds":    {OpenAI, 429, headersOf("retry-after-ms", "NaN", "retry-after", "3"), "", llm.RateLimited, 3 * second, nil},
		"OpenAI, NaN":                 {OpenAI, 429, headersOf("retry-after", "NaN"), "", llm.RateLimited, guessedRate, nil},
		"OpenAI, infinite":            {OpenAI, 429, headersOf("retry-after", "inf"), "", llm.RateLimited, guessedRate, nil},
		"OpenAI, negative":            {OpenAI, 429, headersOf("retry-after", "-4"), "", llm.RateLimited, guessedRate, nil},
		"OpenAI, zero":                {OpenAI, 429, headersOf("retry-after", "0", "retry-after-ms", "0"), "", llm.RateLimited, guessedRate, nil},
		"OpenAI, hardly":              {OpenAI, 429, headersOf("retry-after-ms", "0.001"), "", llm.RateLimited, minPause, nil},
		"OpenAI, too long":            {OpenAI, 429, headersOf("retry-after", "604800"), "", llm.RateLimited, llm.Day, nil},
		"OpenAI, text": {OpenAI, 429, nil,
			openAIError("tokens", "rate_limit_exceeded", openAIMessage+"tokens per min (TPM): Limit 30000. Please try again in 1.2s. Visit https://platform.openai.com"), llm.RateLimited, 1200 * time.Millisecond, nil},
		"OpenAI, milliseconds of text": {OpenAI, 429, nil, openAIError("tokens", "rate_limit_exceeded", "Please try again in 20ms."), llm.RateLimited, 20 * time.Millisecond, nil},
		"OpenAI, a reset": {OpenAI, 429, requestsOut, openAIError("requests", "rate_limit_exceeded", "Rate limit reached."), llm.RateLimited, 30 * second,
			[]llm.Window{windowOf(llm.Requests, minute, 500, 0, 30*second)}},
		"OpenAI, a reset of what is left": {OpenAI, 429, headersOf("x-ratelimit-remaining-tokens", "20", "x-ratelimit-reset-tokens", "59s"), "", llm.RateLimited, guessedRate,
			[]llm.Window{windowOf(llm.AllTokens, minute, 0, 20, 59*second)}},
		"OpenAI, nothing said": {OpenAI, 429, nil, "", llm.RateLimited, guessedRate, nil},
		"OpenAI, requests a day": {OpenAI, 429, nil,
			openAIError("requests", "rate_limit_exceeded", openAIMessage+"requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s."), llm.DayLimited, 432 * second, nil},
		"OpenAI, a day in seconds": {OpenAI, 429, headersOf("retry-after", "9"), openAIError("requests", "rate_limit_exceeded", "on (RPD): Limit 10000"), llm.DayLimited, minLongPause, nil},
		"OpenAI, a day, not said":  {OpenAI, 429, nil, openAIError("tokens", "rate_limit_exceeded", "Limit reached on (TPD)."), llm.DayLimited, guessedDay, nil},
		"OpenAI, a day, and a minute that is used up": {OpenAI, 429, requestsOut, openAIError("tokens", "rate_limit_exceeded", "Tokens per day used up."), llm.DayLimited, guessedDay,
			[]llm.Window{windowOf(llm.Requests, minute, 500, 0, 30*second)}},
		"OpenAI, a day by its window": {OpenAI, 429, dayOut, "", llm.DayLimited, 23 * time.Hour, []llm.Window{windowOf(llm.Requests, llm.Day, 1000, 0, 23*time.Hour)}},
		"OpenAI, a day by its window, but to be retried": {OpenAI, 429, headersOf("retry-after", "2", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "23h"), "", llm.RateLimited, 2 * second,
			[]llm.Window{windowOf(llm.Requests, llm.Day, 0, 0, 23*time.Hour)}},
		"OpenAI, the longest of resets": {OpenAI, 429, headersOf("x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "9s", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "4s"), "", llm.RateLimited, 9 * second,
			[]llm.Window{windowOf(llm.Requests, minute, 0, 0, 9*second), windowOf(llm.AllTokens, minute, 0, 0, 4*second)}},
		"OpenAI, a minute, and a day that is used up": {OpenAI, 429, dayOut, openAIError("", "", "Too many requests per minute"), llm.RateLimited, 23 * time.Hour,
			[]llm.Window{windowOf(llm.Requests, llm.Day, 1000, 0, 23*time.Hour)}},
		"OpenAI, a request that is too large": {OpenAI, 429, nil, openAIError("tokens", "rate_limit_exceeded", "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 50000. The input or output tokens must be reduced in order to run successfully."), "", 0, nil},

		"OpenAI, no quota":   {OpenAI, 429, nil, openAIError("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), llm.SpendCap, guessedSpend, nil},
		"OpenAI, no credit":  {OpenAI, 429, headersOf("retry-after", "3"), openAIError("billing", "credit_balance_exhausted", "per day"), llm.SpendCap, minLongPause, nil},
		"OpenAI, hard limit": {OpenAI, 429, requestsOut, openAIError("billing_hard_limit_reached", "", ""), llm.SpendCap, guessedSpend, []llm.Window{windowOf(llm.Requests, minute, 500, 0, 30*second)}},
		"OpenAI, overload":   {OpenAI, 503, nil, openAIError("server_error", "server_is_overloaded", "x"), llm.Overloaded, guessedLoad, nil},
		"OpenAI, slow down":  {OpenAI, 503, nil, openAIError("slow_down", "", ""), llm.Overloaded, guessedLoad, nil},
		"OpenAI, down":       {OpenAI, 503, nil, openAIError("server_error", "", "The server had an error."), "", 0, nil},
		"down, with windows": {OpenAI, 503, requestsOut, "", "", 0, []llm.Window{windowOf(llm.Requests, minute, 500, 0, 30*second)}},
		"down, for a time":   {Compatible, 503, headersOf("Retry-After", "120"), "<html>maintenance</html>", llm.Overloaded, 2 * minute, nil},

		"Azure": {Azure, 429, nil, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit. Please retry after 45 seconds. Please go here"}}`,
			llm.RateLimited, 45 * second, nil},

		"Groq, a day": {Groq, 429, headersOf("retry-after", "864"),
			openAIError("tokens", "rate_limit_exceeded", "Rate limit reached for model on tokens per day (TPD): Limit 200000. Please try again in 14m24s."), llm.DayLimited, 864 * second, nil},
		"Groq, a minute": {Groq, 429, headersOf("retry-after", "7", "x-ratelimit-remaining-requests", "10"),
			openAIError("tokens", "rate_limit_exceeded", "on tokens per minute (TPM): Limit 8000. Please try again in 6.99s."), llm.RateLimited, 7 * second, []llm.Window{windowOf(llm.Requests, llm.Day, 0, 10, 0)}},

		"Mistral":                               {Mistral, 429, nil, `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`, llm.RateLimited, guessedRate, nil},
		"Mistral, no object":                    {Mistral, 429, nil, `{"message":"Too many. Try again in 3s"}`, llm.RateLimited, 3 * second, nil},
		"Ollama":                                {Ollama, 503, nil, `{"error":"server busy, please try again.  maximum pending requests exceeded; overloaded"}`, llm.Overloaded, guessedLoad, nil},
		"Ollama, of a day":                      {Ollama, 429, nil, `{"error":"you have reached your daily usage limit"}`, llm.DayLimited, guessedDay, nil},
		"Anthropic":                             {Anthropic, 429, headersOf("retry-after", "13"), anthropicError("rate_limit_error", "This request would exceed your organization's rate limit of 30,000 input tokens per minute."), llm.RateLimited, 13 * second, nil},
		"Anthropic, by window":                  {Anthropic, 429, outOfOutput, anthropicError("rate_limit_error", "This would exceed your rate limit."), llm.RateLimited, 40 * second, []llm.Window{windowOf(llm.OutputTokens, minute, 0, 0, 40*second)}},
		"Anthropic, spend":                      {Anthropic, 429, nil, anthropicError("rate_limit_error", "You have reached your monthly spend limit."), llm.SpendCap, guessedSpend, nil},
		"Anthropic, usage":                      {Compatible, 429, headersOf("anthropic-ratelimit-requests-remaining", "99"), anthropicError("rate_limit_error", "You have reached your specified API usage limits."), llm.SpendCap, guessedSpend, []llm.Window{windowOf(llm.Requests, minute, 0, 99, 0)}},
		"Anthropic, spend, but to be retried":   {Anthropic, 429, headersOf("retry-after", "4"), anthropicError("rate_limit_error", "You spend tokens too fast."), llm.RateLimited, 4 * second, nil},
		"Anthropic, spend, but a window is out": {Anthropic, 429, outOfOutput, anthropicError("rate_limit_error", "You spend tokens too fast."), llm.RateLimited, 40 * second, []llm.Window{windowOf(llm.OutputTokens, minute, 0, 0, 40*second)}},
		"Anthropic, overload":                   {Anthropic, 529, nil, anthropicError("overloaded_error", "Overloaded"), llm.Overloaded, guessedLoad, nil},
		"Anthropic, overload, for a time":       {Anthropic, 529, headersOf("retry-after", "5"), "", llm.Overloaded, 5 * second, nil},
		"Anthropic, overload, and out":          {Anthropic, 529, outOfOutput, "", llm.Overloaded, guessedLoad, []llm.Window{windowOf(llm.OutputTokens, minute, 0, 0, 40*second)}},
		"Anthropic, no credit is a 400":         {Anthropic, 400, nil, anthropicError("invalid_request_error", "Your credit balance is too low"), "", 0, nil},

		"Gemini, a minute":             {Gemini, 429, nil, geminiError("22s", requestsAMinute, `"15"`), llm.RateLimited, 22 * second, []llm.Window{windowOf(llm.Requests, minute, 15, 0, 0)}},
		"Gemini, a number":             {Gemini, 429, nil, geminiError("0.5s", inputAMinute, `250000`), llm.RateLimited, 500 * time.Millisecond, []llm.Window{windowOf(llm.InputTokens, minute, 250000, 0, 0)}},
		"Gemini, nanoseconds":          {Gemini, 429, nil, geminiError("22.345678901s", outputAMinute, `"1000"`), llm.RateLimited, 22345678901, []llm.Window{windowOf(llm.OutputTokens, minute, 1000, 0, 0)}},
		"Gemini, a day":                {Gemini, 429, nil, geminiError("22s", requestsADay, `"50"`), llm.DayLimited, midnight, []llm.Window{windowOf(llm.Requests, llm.Day, 50, 0, midnight)}},
		"Gemini, a day, after a while": {Gemini, 429, headersOf("retry-after", "30"), geminiError("22s", tokensADay, `"0"`), llm.DayLimited, midnight, []llm.Window{windowOf(llm.AllTokens, llm.Day, 0, 0, midnight)}},
		"Gemini, both": {Gemini, 429, nil, geminiError("22s", requestsAMinute, `"15"`, inputADay, `"1e6"`, requestsAMinute, `1.5`), llm.DayLimited, midnight,
			[]llm.Window{windowOf(llm.Requests, minute, 15, 0, 0), windowOf(llm.InputTokens, llm.Day, 0, 0, midnight), windowOf(llm.Requests, minute, 0, 0, 0)}},
		"Gemini, no status": {Gemini, 429, nil, strings.Replace(geminiError("22s", requestsADay, `"50"`), "RESOURCE_EXHAUSTED", "", 1), llm.DayLimited, midnight,
			[]llm.Window{windowOf(llm.Requests, llm.Day, 50, 0, midnight)}},
		"Gemini, a second":           {Gemini, 429, nil, geminiError("", "RequestsPerSecond", `"2"`), llm.RateLimited, guessedRate, []llm.Window{windowOf(llm.Requests, second, 2, 0, 0)}},
		"Gemini, images":             {Gemini, 429, nil, geminiError("", "ImagesPerDay", `"2"`), llm.DayLimited, midnight, nil},
		"Gemini, not said":           {Gemini, 429, nil, geminiError(""), llm.RateLimited, guessedRate, nil},
		"Gemini, a day, as text":     {Gemini, 429, nil, `{"error":{"code":429,"message":"Quota exceeded for quota metric 'Generate Content API requests per day'","status":"RESOURCE_EXHAUSTED"}}`, llm.DayLimited, midnight, nil},
		"Gemini, a list":             {Gemini, 429, nil, "[" + geminiError("22s", requestsADay, `"50"`) + "]", llm.DayLimited, midnight, []llm.Window{windowOf(llm.Requests, llm.Day, 50, 0, midnight)}},
		"Gemini, overload":           {Gemini, 503, nil, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, llm.Overloaded, guessedLoad, nil},
		"Gemini, high demand":        {Gemini, 503, nil, `[{"error":{"code":503,"message":"This model is currently experiencing high demand.","status":"UNAVAILABLE"}}]`, llm.Overloaded, guessedLoad, nil},
		"Gemini, down":               {Gemini, 503, nil, `{"error":{"code":503,"message":"Deadline","status":"UNAVAILABLE"}}`, "", 0, nil},
		"Vertex":                     {Vertex, 429, nil, `[{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}]`, llm.RateLimited, guessedRate, nil},
		"Gemini, only for a refusal": {Gemini, 400, nil, geminiError("22s", requestsADay, `"50"`), "", 0, nil},

		"OpenRouter, a day": {OpenRouter, 429, nil, `{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1794787200000"},"provider_name":null}},"user_id":"u"}`,
			llm.DayLimited, 12 * time.Hour, []llm.Window{windowOf(llm.Requests, llm.Day, 50, 0, 12*time.Hour)}},
		"OpenRouter, a number": {OpenRouter, 429, nil, `{"error":{"message":"Rate limit exceeded: free-models-per-day-high-balance.","code":429,"metadata":{"headers":{"x-ratelimit-reset":1794787200000}}}}`,
			llm.DayLimited, 12 * time.Hour, []llm.Window{windowOf(llm.Requests, llm.Day, 0, -1, 12*time.Hour)}},
		"OpenRouter, the end of a day": {OpenRouter, 429, headersOf("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1794744010000"), `{"error":{"message":"Rate limit exceeded: free-models-per-day.","code":429}}`,
			llm.DayLimited, minLongPause, []llm.Window{windowOf(llm.Requests, llm.Day, 0, 0, 10*second)}},
		"OpenRouter, by its source": {OpenRouter, 429, nil, `{"error":{"message":"Rate limit exceeded","code":429,"metadata":{"limit_source":"openrouter_free_tier_daily"}}}`, llm.DayLimited, guessedDay, nil},
		"OpenRouter, a minute": {OpenRouter, 429, headersOf("X-RateLimit-Limit", "20", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1794744030000"),
			`{"error":{"message":"Rate limit exceeded: free-models-per-min. Add 10 credits for 1000 requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Reset":"1794744035000"}}}}`,
			llm.RateLimited, 35 * second, []llm.Window{windowOf(llm.Requests, minute, 20, 0, 35*second)}},
		"OpenRouter, another's": {OpenRouter, 429, nil, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"temporarily rate-limited upstream","provider_name":"Chutes"}}}`, llm.RateLimited, guessedRate, nil},
		"OpenRouter, advice":    {OpenRouter, 429, nil, `{"error":{"message":"Rate limit exceeded. Add credits to go faster","code":429}}`, llm.RateLimited, guessedRate, nil},
		"OpenRouter, no credit": {OpenRouter, 402, nil, `{"error":{"message":"Insufficient credits","code":402}}`, "", 0, nil},

		"Bedrock":             {Bedrock, 429, headersOf("X-Amzn-ErrorType", "ThrottlingException:http://internal.amazon.com/"), `{"message":"Too many tokens, please wait before trying again."}`, llm.RateLimited, guessedRate, nil},
		"Bedrock, a day":      {Bedrock, 429, headersOf("X-Amzn-ErrorType", "ThrottlingException"), `{"message":"Too many tokens per day, please wait before trying again."}`, llm.DayLimited, guessedDay, nil},
		"Bedrock, not ready":  {Bedrock, 429, headersOf("X-Amzn-ErrorType", "ModelNotReadyException"), `{"message":"The model is not ready."}`, llm.Overloaded, guessedLoad, nil},
		"Bedrock, overload":   {Bedrock, 503, nil, `{"__type":"com.amazon.coral.service#ServiceUnavailableException","message":"Bedrock is unable to process your request."}`, llm.Overloaded, guessedLoad, nil},
		"Cohere":              {Cohere, 429, nil, `{"message":"You are using a Trial key, which is limited to 20 API calls / minute."}`, llm.RateLimited, guessedRate, nil},
		"Cohere, for a month": {Cohere, 429, nil, `{"id":"1","message":"You are using a Trial key, which is limited to 1000 API calls / month. You can continue to use the Trial key for free or upgrade."}`, llm.SpendCap, guessedSpend, nil},

		"HTML":             {Compatible, 429, nil, "<html><h1>429</h1>Too many requests: please try again in 30 seconds.</html>", llm.RateLimited, 30 * second, nil},
		"HTML of 503":      {Compatible, 503, nil, "<html><h1>503 Service Temporarily Unavailable</h1>nginx</html>", "", 0, nil},
		"no JSON":          {Compatible, 429, nil, `{"error":{"message":"on requests per day`, llm.DayLimited, guessedDay, nil},
		"null":             {Compatible, 429, nil, `null`, llm.RateLimited, guessedRate, nil},
		"a number":         {Compatible, 429, nil, `429`, llm.RateLimited, guessedRate, nil},
		"an empty list":    {Compatible, 429, nil, `[]`, llm.RateLimited, guessedRate, nil},
		"a list of lists":  {Compatible, 429, nil, `[[{"error":{}}]]`, llm.RateLimited, guessedRate, nil},
		"deep":             {Compatible, 429, nil, strings.Repeat("[", 60000), llm.RateLimited, guessedRate, nil},
		"null everywhere":  {OpenRouter, 429, nil, `{"type":null,"error":{"type":null,"code":null,"status":null,"message":null,"details":null,"metadata":{"headers":null}}}`, llm.RateLimited, guessedRate, nil},
		"numbers":          {Gemini, 429, nil, `{"type":1,"error":{"type":2,"code":3,"status":4,"message":5,"details":6,"metadata":7}}`, llm.RateLimited, guessedRate, nil},
		"lists":            {Gemini, 429, nil, `{"type":[],"error":{"type":[],"code":[],"status":[],"message":[],"details":[[],1,"x",null,{}],"metadata":[]}}`, llm.RateLimited, guessedRate, nil},
		"objects":          {OpenRouter, 429, nil, `{"error":{"code":{},"message":{},"details":{},"metadata":{"headers":{"Retry-After":{},"X-RateLimit-Limit":[50],"X-RateLimit-Reset":1e300}}}}`, llm.RateLimited, guessedRate, nil},
		"wrong violations": {Gemini, 429, nil, `{"error":{"details":[{"@type":"x.QuotaFailure","violations":{}},{"@type":"QuotaFailure","violations":[1,null,{"quotaId":5,"quotaMetric":[],"quotaValue":{}}]},{"@type":"y.RetryInfo","retryDelay":{"seconds":5}}]}}`, llm.RateLimited, guessedRate, nil},
		"bad delays":       {Gemini, 429, nil, `{"error":{"details":[{"@type":".RetryInfo","retryDelay":"-5s"},{"@type":".RetryInfo","retryDelay":"soon"},{"@type":".RetryInfo","retryDelay":3}]}}`, llm.RateLimited, 3 * second, nil},
	} {
		got := ReadLimits(test.provider, test.status, test.header, []byte(test.body), limitsNow)
		if diff := cmp.Diff(llm.Limits{Windows: test.windows, Cause: test.cause, Pause: test.pause}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// ReadLimits must not change the headers, which belong to the response.
func TestReadLimitsLeavesHeaders(t *testing.T) {
	h := headersOf("X-RateLimit-Remaining", "0")
	before := h.Clone()
	body := `{"error":{"metadata":{"headers":{"X-RateLimit-Remaining":"1","X-RateLimit-Reset":"5"}}}}`
	ReadLimits(OpenRouter, 429, h, []byte(body), limitsNow)
	if diff := cmp.Diff(before, h); diff != "" {
		t.Errorf("the headers have changed (-before +after):\n%s", diff)
	}
}

func TestReadFault(t *testing.T) {
	for fault, want := range map[string]llm.Limits{
		"":                            {},
		"server_error":                {},
		"500":                         {},
		"overloaded_error":            {Cause: llm.Overloaded, Pause: guessedLoad},
		"server_is_overloaded":        {Cause: llm.Overloaded, Pause: guessedLoad},
		"slow_down":                   {Cause: llm.Overloaded, Pause: guessedLoad},
		"503":                         {Cause: llm.Overloaded, Pause: guessedLoad},
		"UNAVAILABLE":                 {Cause: llm.Overloaded, Pause: guessedLoad},
		"429":                         {Cause: llm.RateLimited, Pause: guessedRate},
		"rate_limit_error":            {Cause: llm.RateLimited, Pause: guessedRate},
		"throttlingException":         {Cause: llm.RateLimited, Pause: guessedRate},
		"modelTimeoutException":       {},
		"serviceUnavailableException": {Cause: llm.Overloaded, Pause: guessedLoad},
		"RESOURCE_EXHAUSTED":          {Cause: llm.RateLimited, Pause: guessedRate},
		"insufficient_quota":          {Cause: llm.SpendCap, Pause: guessedSpend},
	} {
		if diff := cmp.Diff(want, ReadFault(fault, limitsNow)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", fault, diff)
		}
	}
}

func windowOf(unit llm.Unit, per time.Duration, limit, remaining int64, reset time.Duration) llm.Window {
	return llm.Window{Unit: unit, Per: per, Limit: limit, Remaining: remaining, Reset: reset}
}
