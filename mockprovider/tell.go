package mockprovider

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// tell writes where limits stand into headers, as a provider does.
func (p Provider) tell(h http.Header, at standings, failed bool, now time.Time) {
	switch p {
	case OpenAI, Groq:
		tellOpenAI(h, at, func(reset time.Duration) string { return reset.Round(time.Millisecond).String() })
	case Azure:
		tellOpenAI(h, at, func(reset time.Duration) string { return strconv.Itoa(seconds(reset)) })
	case Mistral:
		tellMistral(h, at)
	case Anthropic:
		tellAnthropic(h, at, now)
	case OpenRouter:
		if failed && at.requests.limit > 0 {
			h.Set("X-RateLimit-Limit", strconv.Itoa(at.requests.limit))
			h.Set("X-RateLimit-Remaining", strconv.Itoa(at.requests.remaining))
			h.Set("X-RateLimit-Reset", strconv.FormatInt(now.Add(at.requests.reset).UnixMilli(), 10))
		}
	}
}

func tellOpenAI(h http.Header, at standings, duration func(time.Duration) string) {
	for name, s := range map[string]standing{"requests": at.requests, "tokens": at.tokens} {
		if s.limit == 0 {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+name, strconv.Itoa(s.limit))
		h.Set("X-Ratelimit-Remaining-"+name, strconv.Itoa(s.remaining))
		h.Set("X-Ratelimit-Reset-"+name, duration(s.reset))
	}
}

func tellMistral(h http.Header, at standings) {
	for name, s := range map[string]standing{"req": at.requests, "tokens": at.tokens} {
		if s.limit == 0 {
			continue
		}
		h.Set(fmt.Sprintf("X-Ratelimit-Limit-%s-Minute", name), strconv.Itoa(s.limit))
		h.Set(fmt.Sprintf("X-Ratelimit-Remaining-%s-Minute", name), strconv.Itoa(s.remaining))
	}
}

// tellAnthropic rounds what is left of tokens to thousands.
func tellAnthropic(h http.Header, at standings, now time.Time) {
	for name, s := range map[string]standing{"requests": at.requests, "tokens": at.tokens, "input-tokens": at.input, "output-tokens": at.output} {
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

// tellRetry writes how long to wait, if that is said: of Gemini the error's body
// says it.
func (p Provider) tellRetry(h http.Header, wait time.Duration) {
	if wait <= 0 || p == Gemini || p == Vertex {
		return
	}
	h.Set("Retry-After", strconv.Itoa(seconds(wait)))
	if p == Azure {
		h.Set("Retry-After-Ms", strconv.FormatInt((wait+time.Millisecond-1).Milliseconds(), 10))
	}
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
