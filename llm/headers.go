package llm

import (
	"net/http"
	"slices"
	"time"
)

// windowHeaders are the headers that tell one window, by their names as http.Header
// has them.
type windowHeaders struct {
	unit                    Unit
	limit, remaining, reset string

	// per returns the window's Per. That may depend on the provider, on what the
	// headers say, and on the Per that an error speaks of, which is 0 where none does.
	per func(p Provider, w Window, said time.Duration) time.Duration
}

// allWindowHeaders are those of every provider: which headers there are says more than
// who the provider is, for its host may be a proxy's.
var allWindowHeaders = [...]windowHeaders{
	openAIHeaders(Requests, "Requests", bucketPer),
	openAIHeaders(AllTokens, "Tokens", bucketPer),
	openAIHeaders(AllTokens, "Project-Tokens", bucketPer),
	openAIHeaders(Requests, "Req-Minute", minutePer), // Mistral's
	openAIHeaders(AllTokens, "Tokens-Minute", minutePer),
	{Requests, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", plainPer}, // OpenRouter's, and of many others
	anthropicHeaders(Requests, "Requests"),
	anthropicHeaders(InputTokens, "Input-Tokens"),
	anthropicHeaders(OutputTokens, "Output-Tokens"),
	anthropicHeaders(AllTokens, "Tokens"), // the strictest of input, output and others: the last here
}

func openAIHeaders(u Unit, name string, per func(Provider, Window, time.Duration) time.Duration) windowHeaders {
	const prefix = "X-Ratelimit-"
	return windowHeaders{u, prefix + "Limit-" + name, prefix + "Remaining-" + name, prefix + "Reset-" + name, per}
}

func anthropicHeaders(u Unit, name string) windowHeaders {
	prefix := "Anthropic-Ratelimit-" + name
	return windowHeaders{u, prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset", minutePer}
}

// readHeaders returns the windows that headers tell.
func readHeaders(p Provider, h http.Header, said time.Duration, now time.Time) []Window {
	var room [len(allWindowHeaders)]Window // so that one copy is all that is allocated
	found := room[:0]
	for i := range allWindowHeaders {
		last := i == len(allWindowHeaders)-1
		if last && slices.ContainsFunc(found, func(w Window) bool { return w.Unit == InputTokens || w.Unit == OutputTokens }) {
			break // it would repeat one of these
		}
		names := &allWindowHeaders[i]
		if w, ok := names.read(h, now); ok {
			if w.Per = names.per(p, w, said); w.Per > 0 {
				w.Reset = min(w.Reset, w.Per) // clocks differ, and some count on beyond
			}
			found = append(found, w)
		}
	}
	return append([]Window(nil), found...)
}

// read returns the window that the headers tell, and whether they tell anything. A
// header that comes twice counts as the stricter of both.
func (n *windowHeaders) read(h http.Header, now time.Time) (Window, bool) {
	limit, remaining, reset := h[n.limit], h[n.remaining], h[n.reset]
	if limit == nil && remaining == nil && reset == nil {
		return Window{}, false // as most are
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

// mostMinute is how long a bucket of a minute takes to fill, at most: a minute, and
// what clocks and rounding add.
const mostMinute = 90 * time.Second

func minutePer(Provider, Window, time.Duration) time.Duration { return time.Minute }

// bucketPer returns the Per of a window with OpenAI's names. Groq's are by the day for
// requests and by the minute for tokens, Azure's by the minute. Others' are by the
// minute, unless the bucket fills too slowly for that: one of requests is by the day
// then, and of tokens it is not known.
func bucketPer(p Provider, w Window, _ time.Duration) time.Duration {
	switch {
	case p == Groq && w.Unit == Requests:
		return Day
	case p == Groq || p == Azure:
		return time.Minute
	case w.Unit == Requests && (w.Reset > mostMinute || p == OpenAI && fillsInDay(w)):
		return Day
	case w.Reset > mostMinute:
		return 0
	}
	return time.Minute
}

// fillsInDay reports whether a bucket fills in a day. Reset is until it is full, so all of it
// takes limit ÷ used × Reset; used is rounded up, so that this may be half of it.
func fillsInDay(w Window) bool {
	used := w.Limit - w.Remaining
	if w.Remaining < 0 || used < 1 || w.Reset < time.Second {
		return false
	}
	return w.Reset.Hours()*float64(w.Limit)/float64(used) >= 12
}

// plainPer returns the Per of a window whose names do not tell it: what the error
// says; or else, of OpenRouter, which has minutes and days, by when it resets.
func plainPer(p Provider, w Window, said time.Duration) time.Duration {
	switch {
	case said > 0:
		return said
	case p != OpenRouter || w.Reset == 0:
		return 0
	case w.Reset > mostMinute:
		return Day
	}
	return time.Minute
}
