package dialect

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// How long to pause where the provider does not say.
const (
	guessedRate  = time.Second      // for a bucket, which fills steadily, so that some of it is there again soon
	guessedLoad  = time.Second      // for overload: about the first wait of SDKs
	guessedDay   = time.Hour        // for a day whose end is unknown: the pause ends at most an hour after it
	guessedSpend = 10 * time.Minute // for a spend cap: a customer who has paid should not wait for long

	minPause     = 5 * time.Millisecond // the least, since the call was throttled
	minLongPause = time.Minute          // the least for a day or a spend cap, whatever else the response says
)

// StatusOverloaded is a status for too much load, which Anthropic has made.
const StatusOverloaded = 529

// ReadLimits reads what a response says about limits. body is an error's, or nil. Nonsense is
// ignored, and no wait is longer than a day.
func ReadLimits(p llm.Provider, status int, h http.Header, body []byte, now time.Time) llm.Limits {
	if MayThrottle(status) {
		return readThrottled(p, status, h, body, now)
	}
	return llm.Limits{Windows: readHeaders(p, h, 0, now)}
}

// MayThrottle reports whether a provider throttles with this status. Then the body may say why, and
// for how long.
func MayThrottle(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == StatusOverloaded
}

// ReadFault returns what a fault that [Meter.Fault] has found says about limits.
func ReadFault(fault string, now time.Time) (l llm.Limits) {
	c := errorBody{code: strings.ToLower(fault)}
	status := 0
	switch {
	case c.unpaid() || c.is(faultLimit):
		status = http.StatusTooManyRequests
	case c.overloaded() || c.is(faultLoad):
		status = StatusOverloaded
	default:
		return l
	}
	l.Cause = causeOf(&l, status, &c, 0)
	l.Pause = pauseOf(&l, &c, 0, now)
	return l
}

// readThrottled reads the limits in a response that may throttle its call.
func readThrottled(p llm.Provider, status int, h http.Header, body []byte, now time.Time) llm.Limits {
	c := readErrorBody(body, now)
	for _, d := range dialects {
		if d.refusalHeader != "" {
			c.code = cmp.Or(c.code, bareCode(strings.ToLower(h.Get(d.refusalHeader))))
		}
	}
	h = joinedHeaders(h, c.header)
	l := llm.Limits{Windows: readHeaders(p, h, c.per, now)}
	for _, w := range c.violated {
		if w.Unit != "" {
			l.Windows = append(l.Windows, w)
		}
	}
	asked := cmp.Or(retryAfter(h, now), c.delay, waitIn(c.text))
	l.Cause = causeOf(&l, status, &c, asked)
	l.Pause = pauseOf(&l, &c, asked, now)
	return l
}

// retryAfter returns the wait that headers ask for, or 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	for _, v := range h["Retry-After-Ms"] {
		wait = max(wait, parseMilli(v))
	}
	return cmp.Or(wait, longestWait(h["Retry-After"], now))
}

// joinedHeaders returns the values of both headers as one.
func joinedHeaders(h, more http.Header) http.Header {
	if len(more) == 0 {
		return h
	}
	both := maps.Clone(more)
	for name, values := range h {
		both[name] = slices.Concat(values, more[name])
	}
	return both
}

// causeOf returns why a call was throttled, or "" if it was not. asked is the wait that the response
// asks for, or 0.
func causeOf(l *llm.Limits, status int, c *errorBody, asked time.Duration) llm.Cause {
	own, known := c.ownCause()
	switch {
	case status == StatusOverloaded, known && own == llm.Overloaded:
		return llm.Overloaded
	case status == http.StatusServiceUnavailable && (asked > 0 || c.overloaded()):
		return llm.Overloaded
	case status == http.StatusServiceUnavailable:
		return "" // the server is down, which is not about limits
	case known:
		return own
	case c.unpaid():
		return llm.SpendCap
	case c.per == llm.Day:
		return llm.DayLimited
	case c.isOfMoney() && asked == 0 && !slices.ContainsFunc(l.Windows, func(w llm.Window) bool { return w.Remaining == 0 }):
		return llm.SpendCap
	case c.per == 0 && asked == 0 && longestEmpty(l).Per == llm.Day:
		return llm.DayLimited
	}
	return llm.RateLimited
}

// ownCause returns the cause of an error by the rules of the dialects, if one of them knows it.
func (c *errorBody) ownCause() (cause llm.Cause, ok bool) {
	for _, d := range dialects {
		if d.errorCause == nil {
			continue
		}
		if cause, ok = d.errorCause(c); ok {
			return cause, true
		}
	}
	return "", false
}

// isOfMoney reports whether an error that has no code for it is about money.
func (c *errorBody) isOfMoney() bool {
	return slices.ContainsFunc(dialects, func(d *dialect) bool { return d.speaksOfMoney != nil && d.speaksOfMoney(c) })
}

// pauseOf returns how long to send nothing to the model. asked is the wait that the response asks for,
// or 0.
func pauseOf(l *llm.Limits, c *errorBody, asked time.Duration, now time.Time) time.Duration {
	var wait time.Duration
	switch l.Cause {
	case "":
		return 0
	case llm.RateLimited:
		wait = cmp.Or(asked, longestEmpty(l).Reset, guessedRate)
	case llm.Overloaded:
		wait = cmp.Or(asked, guessedLoad)
	case llm.DayLimited:
		asked = cmp.Or(c.dayEnds, asked)
		if w := longestEmpty(l); w.Per != time.Minute {
			asked = cmp.Or(asked, w.Reset)
		}
		wait = max(cmp.Or(asked, guessedDay), minLongPause)
	case llm.SpendCap:
		wait = max(cmp.Or(asked, guessedSpend), minLongPause)
	}
	return min(max(wait, minPause), llm.Day)
}

// longestEmpty returns, of the windows with nothing left or an unknown rest, the one that takes the
// longest to reset.
func longestEmpty(l *llm.Limits) llm.Window {
	var longest llm.Window
	for _, w := range l.Windows {
		if w.Remaining <= 0 && w.Reset > longest.Reset {
			longest = w
		}
	}
	return longest
}
