package llm

import (
	"net/http"
	"slices"
	"time"
)

// windowHeaders are the names of the headers with one window, as http.Header spells them.
type windowHeaders struct {
	unit                    Unit
	limit, remaining, reset string

	// per returns the window's Per. That may depend on the provider, on the values of the headers,
	// and on the Per that an error names, which is 0 where none does.
	per func(p Provider, w Window, errorPer time.Duration) time.Duration
}

// allWindowHeaders are the headers of every provider. They are read whoever the provider is,
// because its host may be that of a proxy.
var allWindowHeaders = [...]windowHeaders{
	openAIHeaders(Requests, "Requests", bucketPer),
	openAIHeaders(AllTokens, "Tokens", bucketPer),
	openAIHeaders(AllTokens, "Project-Tokens", bucketPer),
	openAIHeaders(Requests, "Req-Minute", minutePer), // Mistral's
	openAIHeaders(AllTokens, "Tokens-Minute", minutePer),
	{Requests, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", plainPer}, // used by OpenRouter and many others
	anthropicHeaders(Requests, "Requests"),
	anthropicHeaders(InputTokens, "Input-Tokens"),
	anthropicHeaders(OutputTokens, "Output-Tokens"),
	anthropicHeaders(AllTokens, "Tokens"), // must be last: it repeats the strictest of the windows above
}

func openAIHeaders(u Unit, name string, per func(Provider, Window, time.Duration) time.Duration) windowHeaders {
	const prefix = "X-Ratelimit-"
	return windowHeaders{u, prefix + "Limit-" + name, prefix + "Remaining-" + name, prefix + "Reset-" + name, per}
}

func anthropicHeaders(u Unit, name string) windowHeaders {
	prefix := "Anthropic-Ratelimit-" + name
	return windowHeaders{u, prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset", minutePer}
}

// readHeaders returns the windows in the headers of a response. errorPer is the Per that an error
// names, or 0.
func readHeaders(p Provider, h http.Header, errorPer time.Duration, now time.Time) []Window {
	var room [len(allWindowHeaders)]Window // on the stack, so that only the result is allocated
	found := room[:0]
	for i := range allWindowHeaders {
		last := i == len(allWindowHeaders)-1
		if last && slices.ContainsFunc(found, func(w Window) bool { return w.Unit == InputTokens || w.Unit == OutputTokens }) {
			break // the last window would repeat one of these
		}
		names := &allWindowHeaders[i]
		if w, ok := names.read(h, now); ok {
			if w.Per = names.per(p, w, errorPer); w.Per > 0 {
				w.Reset = min(w.Reset, w.Per) // a reset may be later: clocks differ, and some servers count further
			}
			found = append(found, w)
		}
	}
	return append([]Window(nil), found...)
}

// read returns the window in some headers, and whether they have one. Of a header that comes twice
// the stricter value counts.
func (n *windowHeaders) read(h http.Header, now time.Time) (Window, bool) {
	limit, remaining, reset := h[n.limit], h[n.remaining], h[n.reset]
	if limit == nil && remaining == nil && reset == nil {
		return Window{}, false
	}
	w := Window{
		Unit:      n.unit,
		Limit:     max(strictestCount(limit, 1), 0),
		Remaining: strictestCount(remaining, 0),
		Reset:     longestWait(reset, now),
	}
	if w.Limit > 0 {
		w.Remaining = min(w.Remaining, w.Limit) // Anthropic rounds it
	}
	return w, w.Limit > 0 || w.Remaining >= 0 || w.Reset > 0
}

// maxMinuteReset is how long a bucket of a minute takes to fill at most: a minute, and some room
// for clocks and rounding.
const maxMinuteReset = 90 * time.Second

func minutePer(Provider, Window, time.Duration) time.Duration { return time.Minute }

// bucketPer returns the Per of a window with OpenAI's names. Groq's windows are a day for requests
// and a minute for tokens, Azure's are a minute. Others' are a minute, unless the bucket fills too
// slowly for that: then a window of requests is a day, and one of tokens is unknown.
func bucketPer(p Provider, w Window, _ time.Duration) time.Duration {
	switch {
	case p == Groq && w.Unit == Requests:
		return Day
	case p == Groq || p == Azure:
		return time.Minute
	case w.Unit == Requests && (w.Reset > maxMinuteReset || p == OpenAI && fillsInDay(w)):
		return Day
	case w.Reset > maxMinuteReset:
		return 0
	}
	return time.Minute
}

// fillsInDay reports whether a bucket fills in a day. Reset is the time until it is full, so an
// empty one takes limit ÷ used × Reset. used is rounded up, so the result may be half of the true
// time.
func fillsInDay(w Window) bool {
	used := w.Limit - w.Remaining
	if w.Remaining < 0 || used < 1 || w.Reset < time.Second {
		return false
	}
	return w.Reset.Hours()*float64(w.Limit)/float64(used) >= 12
}

// plainPer returns the Per of a window whose names do not have it: the Per that an error names, or
// else, for OpenRouter, which has minutes and days, by the time of its reset.
func plainPer(p Provider, w Window, errorPer time.Duration) time.Duration {
	switch {
	case errorPer > 0:
		return errorPer
	case p != OpenRouter || w.Reset == 0:
		return 0
	case w.Reset > maxMinuteReset:
		return Day
	}
	return time.Minute
}
