package dialect

import (
	"math/bits"
	"net/http"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// windowHeaders are the names of the headers with one window, as http.Header spells them.
type windowHeaders struct {
	unit                    llm.Unit
	limit, remaining, reset string
	per                     windowPer
	repeats                 bool // it repeats the strictest of the windows of input and output tokens, if there are any
}

// windowPer returns the Per of a window of a provider. errorPer is the Per that an error names, or 0.
type windowPer func(d *dialect, w llm.Window, errorPer time.Duration) time.Duration

// allWindowHeaders are the headers of every provider. They are read whoever the provider is,
// because its host may be a proxy's.
var allWindowHeaders []windowHeaders

// windowsByHeader says for the name of a header which of allWindowHeaders it is one of, one bit for each.
var windowsByHeader = map[string]uint64{}

// addWindowHeaders adds headers to those that are read of every response.
func addWindowHeaders(list []windowHeaders) {
	for _, w := range list {
		for _, name := range [...]string{w.limit, w.remaining, w.reset} {
			windowsByHeader[name] |= 1 << len(allWindowHeaders)
		}
		allWindowHeaders = append(allWindowHeaders, w)
	}
}

// repeating returns headers that repeat the strictest of the windows of input and output tokens.
func repeating(h windowHeaders) windowHeaders {
	h.repeats = true
	return h
}

// readHeaders returns the windows in the headers of a response. errorPer is the Per that an error
// names, or 0.
func readHeaders(p llm.Provider, h http.Header, errorPer time.Duration, now time.Time) []llm.Window {
	var room [6]llm.Window // more than any provider sends, on the stack, so that only the result is allocated
	found, d := room[:0], (*dialect)(nil)
	present := uint64(0)
	for name := range h {
		present |= windowsByHeader[name]
	}
	for ; present != 0; present &= present - 1 {
		names := &allWindowHeaders[bits.TrailingZeros64(present)]
		if names.repeats && len(found) > 0 && slices.ContainsFunc(found, func(w llm.Window) bool { return w.Unit == llm.InputTokens || w.Unit == llm.OutputTokens }) {
			continue
		}
		w, ok := names.read(h, now)
		if !ok {
			continue
		}
		if d == nil { // most responses have none
			d = dialectOf(p)
		}
		if w.Per = names.per(d, w, errorPer); w.Per > 0 {
			w.Reset = min(w.Reset, w.Per) // a reset may be later: clocks differ, and some servers count further
		}
		found = append(found, w)
	}
	return append([]llm.Window(nil), found...)
}

// read returns the window in some headers, and whether they have one. Of a header that comes twice
// the stricter value counts.
func (n *windowHeaders) read(h http.Header, now time.Time) (llm.Window, bool) {
	limit, remaining, reset := h[n.limit], h[n.remaining], h[n.reset]
	if limit == nil && remaining == nil && reset == nil {
		return llm.Window{}, false
	}
	w := llm.Window{
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

func minutePer(*dialect, llm.Window, time.Duration) time.Duration { return time.Minute }
