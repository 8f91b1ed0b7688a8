package mockprovider

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// writeLimits writes the states of limits into headers, as the provider does.
func writeLimits(p llm.Provider, h http.Header, at limitStates, failed bool, now time.Time) {
	switch p {
	case llm.OpenAI, llm.Groq:
		writeOpenAI(h, at, func(reset time.Duration) string { return reset.Round(time.Millisecond).String() })
	case llm.Azure:
		writeOpenAI(h, at, func(reset time.Duration) string { return strconv.Itoa(seconds(reset)) })
	case llm.Mistral:
		writeMistral(h, at)
	case llm.Anthropic:
		writeAnthropic(h, at, now)
	case llm.OpenRouter:
		if failed && at.requests.limit > 0 {
			h.Set("X-RateLimit-Limit", strconv.Itoa(at.requests.limit))
			h.Set("X-RateLimit-Remaining", strconv.Itoa(at.requests.remaining))
			h.Set("X-RateLimit-Reset", strconv.FormatInt(now.Add(at.requests.reset).UnixMilli(), 10))
		}
	}
}

func writeOpenAI(h http.Header, at limitStates, duration func(time.Duration) string) {
	for name, s := range map[string]limitState{"requests": at.requests, "tokens": at.tokens} {
		if s.limit == 0 {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+name, strconv.Itoa(s.limit))
		h.Set("X-Ratelimit-Remaining-"+name, strconv.Itoa(s.remaining))
		h.Set("X-Ratelimit-Reset-"+name, duration(s.reset))
	}
}

func writeMistral(h http.Header, at limitStates) {
	for name, s := range map[string]limitState{"req": at.requests, "tokens": at.tokens} {
		if s.limit == 0 {
			continue
		}
		h.Set(fmt.Sprintf("X-Ratelimit-Limit-%s-Minute", name), strconv.Itoa(s.limit))
		h.Set(fmt.Sprintf("X-Ratelimit-Remaining-%s-Minute", name), strconv.Itoa(s.remaining))
	}
}

// writeAnthropic rounds the tokens that are left to thousands.
func writeAnthropic(h http.Header, at limitStates, now time.Time) {
	for name, s := range map[string]limitState{"requests": at.requests, "tokens": at.tokens, "input-tokens": at.input, "output-tokens": at.output} {
		if s.limit == 0 {
			continue
		}
		if name != "requests" {
			s.remaining = (s.remaining + 500) / 1000 * 1000
		}
		h.Set("Anthropic-Ratelimit-"+name+"-Limit", strconv.Itoa(s.limit))
		h.Set("Anthropic-Ratelimit-"+name+"-Remaining", strconv.Itoa(s.remaining))
		h.Set("Anthropic-Ratelimit-"+name+"-Reset", now.Add(s.reset).UTC().Format(time.RFC3339))
	}
}

// writeRetry writes how long to wait, if that is known. Gemini's errors have it in the body.
func writeRetry(p llm.Provider, h http.Header, wait time.Duration) {
	if wait <= 0 || p == llm.Gemini || p == llm.Vertex {
		return
	}
	h.Set("Retry-After", strconv.Itoa(seconds(wait)))
	if p == llm.Azure {
		h.Set("Retry-After-Ms", strconv.FormatInt((wait+time.Millisecond-1).Milliseconds(), 10))
	}
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
