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

// Day is the Per of limits by the day.
const Day = 24 * time.Hour

// Window is where one of a provider's limits stands.
type Window struct {
	Unit      Unit
	Per       time.Duration // time.Second, time.Minute, Day, or 0 where that is not known
	Limit     int64         // 0 where it is not said
	Remaining int64         // -1 where it is not said
	Reset     time.Duration // until all of it is there again, Per at most; 0 where it is not said
}

// Cause is why a provider refuses a call.
type Cause string

const (
	RateLimited Cause = "rate limit"
	DayLimited  Cause = "day limit" // it will not help to come back in seconds
	SpendCap    Cause = "spend cap" // neither: somebody has to pay
	Overloaded  Cause = "overload"  // of the provider, not of the caller
)

// Limits is what a provider says about its limits in one response.
type Limits struct {
	Windows []Window

	// Cause is why the call was refused, or empty. Then Pause is how long to
	// send nothing to the model: what the provider has said, or else a guess.
	Cause Cause
	Pause time.Duration
}

// How long to pause where the provider does not say.
const (
	guessedRate  = time.Second      // buckets fill steadily: a little is there again soon
	guessedLoad  = time.Second      // about as long as SDKs wait at first
	guessedDay   = time.Hour        // it is not known when the day ends: so late, at most, that is noticed
	guessedSpend = 10 * time.Minute // somebody who has paid should not wait for long

	leastPause = 5 * time.Millisecond // never 0: the call has been refused, after all
	leastLong  = time.Minute          // of a day or a spend cap, whatever else is said
)

// StatusOverloaded is the status of a response from a provider that has more to do
// than it can: Anthropic's.
const StatusOverloaded = 529

// ReadLimits reads what a response says about limits. The body is that of an error,
// or nil. What makes no sense is ignored, and no wait is longer than a day.
func ReadLimits(p Provider, status int, h http.Header, body []byte, now time.Time) Limits {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, StatusOverloaded:
		return readRefused(p, status, h, body, now)
	}
	return Limits{Windows: readHeaders(p, h, 0, now)}
}

// ReadFault reads what [Meter.Fault] says about limits.
func ReadFault(fault string, now time.Time) (l Limits) {
	c := complaint{code: strings.ToLower(fault)}
	status := 0
	switch {
	case c.unpaid() || c.names("429", "rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "throttlingexception"):
		status = http.StatusTooManyRequests
	case c.overloaded() || c.names("503", "529", "unavailable"):
		status = StatusOverloaded
	default:
		return l
	}
	l.Cause = l.cause(status, &c, 0)
	l.Pause = l.pause(&c, 0, now)
	return l
}

func readRefused(p Provider, status int, h http.Header, body []byte, now time.Time) Limits {
	c := readComplaint(body, now)
	c.code = cmp.Or(c.code, amazonCode(h))
	h = joinedHeaders(h, c.header)
	l := Limits{Windows: readHeaders(p, h, c.per, now)}
	for _, w := range c.violated {
		if w.Unit != "" {
			l.Windows = append(l.Windows, w)
		}
	}
	said := cmp.Or(retryAfter(h, now), c.delay, waitIn(c.text))
	l.Cause = l.cause(status, &c, said)
	l.Pause = l.pause(&c, said, now)
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

// joinedHeaders returns two headers as one.
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

// cause returns why a call was refused. said is the wait that was asked for, or 0.
func (l *Limits) cause(status int, c *complaint, said time.Duration) Cause {
	switch {
	case status == StatusOverloaded, c.names("modelnotreadyexception"):
		return Overloaded
	case status == http.StatusServiceUnavailable && (said > 0 || c.overloaded()):
		return Overloaded
	case status == http.StatusServiceUnavailable:
		return "" // it is down, and says nothing about limits
	case c.speaksOf("request too large"):
		return "" // which is no reason to hold up others
	case c.unpaid(), c.speaksOf("calls / month"): // the latter is Cohere's, of trial keys
		return SpendCap
	case c.per == Day:
		return DayLimited
	case c.capped() && said == 0 && !slices.ContainsFunc(l.Windows, Window.empty):
		return SpendCap
	case c.per == 0 && said == 0 && l.longestEmpty().Per == Day:
		return DayLimited
	}
	return RateLimited
}

// pause returns how long to send nothing.
func (l *Limits) pause(c *complaint, said time.Duration, now time.Time) time.Duration {
	var wait time.Duration
	switch l.Cause {
	case "":
		return 0
	case RateLimited:
		wait = cmp.Or(said, l.longestEmpty().Reset, guessedRate)
	case Overloaded:
		wait = cmp.Or(said, guessedLoad)
	case DayLimited:
		if c.ofGoogle() {
			said = untilMidnight(now, pacific()) // what it asks for may be seconds
		}
		if w := l.longestEmpty(); w.Per != time.Minute {
			said = cmp.Or(said, w.Reset)
		}
		wait = max(cmp.Or(said, guessedDay), leastLong)
	case SpendCap:
		wait = max(cmp.Or(said, guessedSpend), leastLong)
	}
	return min(max(wait, leastPause), Day)
}

// empty reports whether nothing is left of a window.
func (w Window) empty() bool { return w.Remaining == 0 }

// longestEmpty returns the window of which nothing is left, as far as is known, that
// takes the longest to reset.
func (l *Limits) longestEmpty() Window {
	var longest Window
	for _, w := range l.Windows {
		if w.Remaining <= 0 && w.Reset > longest.Reset {
			longest = w
		}
	}
	return longest
}
