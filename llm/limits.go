package llm

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Unit is what a limit counts.
type Unit string

const (
	Requests     Unit = "requests"
	AllTokens    Unit = "tokens" // prompt and output together
	InputTokens  Unit = "input tokens"
	OutputTokens Unit = "output tokens"
)

// Day is the Per of a limit by the day.
const Day = 24 * time.Hour

// Window is the state of one of a provider's limits.
type Window struct {
	Unit      Unit
	Per       time.Duration // time.Second, time.Minute, Day, or 0 if unknown
	Limit     int64         // 0 if the provider does not say
	Remaining int64         // -1 if the provider does not say
	Reset     time.Duration // the time until it is full again, at most Per; 0 if the provider does not say
}

// Cause is why a provider throttles a call.
type Cause string

const (
	RateLimited Cause = "rate limit"
	DayLimited  Cause = "day limit" // to try again within seconds is of no use
	SpendCap    Cause = "spend cap" // no call passes until the customer pays
	Overloaded  Cause = "overload"  // the provider has too much load; the caller is within its limits
)

// Limits is what a response says about the provider's limits.
type Limits struct {
	Windows []Window

	// Cause is why the call was throttled, or empty. With a Cause, Pause is how long to send nothing
	// to the model: the time that the provider has asked for, or else a guess.
	Cause Cause
	Pause time.Duration
}

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

// ReadLimits reads what a response says about limits. body is that of an error, or nil. Nonsense is
// ignored, and no wait is longer than a day.
func ReadLimits(p Provider, status int, h http.Header, body []byte, now time.Time) Limits {
	if MayThrottle(status) {
		return readThrottled(p, status, h, body, now)
	}
	return Limits{Windows: readHeaders(p, h, 0, now)}
}

// MayThrottle reports whether a provider throttles with this status. Then the body may say why, and
// for how long.
func MayThrottle(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == StatusOverloaded
}

// ReadFault returns what a fault that [Meter.Fault] has found says about limits.
func ReadFault(fault string, now time.Time) (l Limits) {
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
	l.Cause = l.cause(status, &c, 0)
	l.Pause = l.pause(&c, 0, now)
	return l
}

// readThrottled reads the limits in a response that may throttle its call.
func readThrottled(p Provider, status int, h http.Header, body []byte, now time.Time) Limits {
	c := readErrorBody(body, now)
	for _, d := range dialects {
		if d.refusalHeader != "" {
			c.code = cmp.Or(c.code, bareCode(strings.ToLower(h.Get(d.refusalHeader))))
		}
	}
	h = joinedHeaders(h, c.header)
	l := Limits{Windows: readHeaders(p, h, c.per, now)}
	for _, w := range c.violated {
		if w.Unit != "" {
			l.Windows = append(l.Windows, w)
		}
	}
	asked := cmp.Or(retryAfter(h, now), c.delay, waitIn(c.text))
	l.Cause = l.cause(status, &c, asked)
	l.Pause = l.pause(&c, asked, now)
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

// cause returns why a call was throttled, or "" if it was not. asked is the wait that the response
// asks for, or 0.
func (l *Limits) cause(status int, c *errorBody, asked time.Duration) Cause {
	own, known := c.ownCause()
	switch {
	case status == StatusOverloaded, known && own == Overloaded:
		return Overloaded
	case status == http.StatusServiceUnavailable && (asked > 0 || c.overloaded()):
		return Overloaded
	case status == http.StatusServiceUnavailable:
		return "" // the server is down, which is not about limits
	case known:
		return own
	case c.unpaid():
		return SpendCap
	case c.per == Day:
		return DayLimited
	case c.isOfMoney() && asked == 0 && !slices.ContainsFunc(l.Windows, func(w Window) bool { return w.Remaining == 0 }):
		return SpendCap
	case c.per == 0 && asked == 0 && l.longestEmpty().Per == Day:
		return DayLimited
	}
	return RateLimited
}

// ownCause returns the cause of an error by the rules of the dialects, if one of them knows it.
func (c *errorBody) ownCause() (cause Cause, ok bool) {
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

// pause returns how long to send nothing to the model. asked is the wait that the response asks for,
// or 0.
func (l *Limits) pause(c *errorBody, asked time.Duration, now time.Time) time.Duration {
	var wait time.Duration
	switch l.Cause {
	case "":
		return 0
	case RateLimited:
		wait = cmp.Or(asked, l.longestEmpty().Reset, guessedRate)
	case Overloaded:
		wait = cmp.Or(asked, guessedLoad)
	case DayLimited:
		asked = cmp.Or(c.dayEnds, asked)
		if w := l.longestEmpty(); w.Per != time.Minute {
			asked = cmp.Or(asked, w.Reset)
		}
		wait = max(cmp.Or(asked, guessedDay), minLongPause)
	case SpendCap:
		wait = max(cmp.Or(asked, guessedSpend), minLongPause)
	}
	return min(max(wait, minPause), Day)
}

// longestEmpty returns, of the windows with nothing left or an unknown rest, the one that takes the
// longest to reset.
func (l *Limits) longestEmpty() Window {
	var longest Window
	for _, w := range l.Windows {
		if w.Remaining <= 0 && w.Reset > longest.Reset {
			longest = w
		}
	}
	return longest
}
