package dialect

import "testing"

func BenchmarkReadLimits(b *testing.B) {
	openAI := headersOf(
		"content-type", "application/json", "date", "Sun, 15 Nov 2026 12:00:00 GMT", "x-request-id", "req_1", "openai-processing-ms", "300",
		"openai-version", "2020-10-01", "openai-organization", "org", "cf-ray", "1", "server", "cloudflare",
		"x-ratelimit-limit-requests", "500", "x-ratelimit-remaining-requests", "499", "x-ratelimit-reset-requests", "120ms",
		"x-ratelimit-limit-tokens", "30000", "x-ratelimit-remaining-tokens", "29000", "x-ratelimit-reset-tokens", "2s")
	anthropic := headersOf("content-type", "application/json", "date", "Sun, 15 Nov 2026 12:00:00 GMT", "request-id", "req_1", "cf-ray", "1", "server", "cloudflare")
	for _, name := range []string{"requests", "input-tokens", "output-tokens", "tokens"} {
		for what, value := range map[string]string{"limit": "1000", "remaining": "999", "reset": "2026-11-15T12:00:01Z"} {
			anthropic.Set("anthropic-ratelimit-"+name+"-"+what, value)
		}
	}
	b.Run("openai", func(b *testing.B) {
		for b.Loop() {
			ReadLimits(OpenAI, 200, openAI, nil, limitsNow)
		}
	})
	b.Run("anthropic", func(b *testing.B) {
		for b.Loop() {
			ReadLimits(Anthropic, 200, anthropic, nil, limitsNow)
		}
	})
	b.Run("none", func(b *testing.B) {
		for b.Loop() {
			ReadLimits(Gemini, 200, nil, nil, limitsNow)
		}
	})
	b.Run("refused", func(b *testing.B) {
		body := []byte(geminiError("22s", "GenerateRequestsPerDayPerProjectPerModel-FreeTier", `"50"`))
		for b.Loop() {
			ReadLimits(Gemini, 429, nil, body, limitsNow)
		}
	})
}

// Limits are read from every response, so reading them allocates nothing but the windows.
func TestReadLimitsAllocates(t *testing.T) {
	h := headersOf(
		"x-ratelimit-limit-requests", "500", "x-ratelimit-remaining-requests", "499", "x-ratelimit-reset-requests", "120ms",
		"x-ratelimit-limit-tokens", "30000", "x-ratelimit-remaining-tokens", "29000", "x-ratelimit-reset-tokens", "2s",
		"anthropic-ratelimit-requests-limit", "1000", "anthropic-ratelimit-requests-remaining", "999", "anthropic-ratelimit-requests-reset", "2026-11-15T12:00:01Z")
	if n := testing.AllocsPerRun(100, func() { ReadLimits(OpenAI, 200, h, nil, limitsNow) }); n > 1 {
		t.Errorf("reading limits allocates %v times; want 1", n)
	}
}
