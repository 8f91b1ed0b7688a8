package dialect

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// errorBody is what the body of an error says. Its strings are in lower case.
type errorBody struct {
	shape    string // the type of the whole body
	kind     string // the type of the error
	code     string
	status   string
	text     string        // the message; the whole body where that is not JSON
	delay    time.Duration // the wait that the body asks for, or 0
	dayEnds  time.Duration // the time to the end of the provider's day, or 0 if it is not known
	violated []llm.Window  // the windows that the body names; a Unit may be empty
	header   http.Header   // of the provider behind a reseller
	per      time.Duration // the Per of the limit that the error is about; 0 if it does not say
}

// readErrorBody reads the error of any provider, or whatever a proxy has sent instead.
func readErrorBody(body []byte, now time.Time) errorBody {
	var whole any
	if err := json.Unmarshal(body, &whole); err != nil {
		c := errorBody{text: strings.ToLower(string(body))}
		c.per = periodIn(c.text)
		return c
	}
	if list, ok := whole.([]any); ok && len(list) > 0 {
		whole = list[0] // an error of a Gemini stream
	}
	inner := member(whole, "error")
	if _, ok := inner.(map[string]any); !ok {
		inner = whole // Mistral's errors, and Ollama's, in which "error" is the message
	}
	c := errorBody{
		shape:  memberWord(whole, "type"),
		kind:   memberWord(inner, "type"),
		code:   memberWord(inner, "code"),
		status: memberWord(inner, "status"),
		text:   cmp.Or(memberWord(inner, "message"), memberWord(inner, "error")) + " ",
		header: http.Header{},
	}
	for _, d := range dialects {
		if d.readError != nil {
			d.readError(&c, inner, now)
		}
	}
	for _, w := range c.violated {
		c.per = max(c.per, w.Per)
	}
	c.per = cmp.Or(c.per, periodIn(c.text))
	return c
}

// periodIn returns the Per of the limit that a text is about, or 0. If the text names several, the
// first counts: the rest is advice.
func periodIn(text string) time.Duration {
	day := firstOf(text, "per day", "per-day", "(rpd)", "(tpd)", "daily")
	minute := firstOf(text, "per min", "per-min", "(rpm)", "(tpm)")
	switch {
	case day < minute:
		return llm.Day
	case minute < day:
		return time.Minute
	}
	return 0
}

// A fault is what the code or the type of an error means.
type fault uint8

const (
	faultUnpaid   fault = iota + 1 // the customer has to pay before the next call
	faultOverload                  // the provider has too much load
	faultLimit                     // a limit is reached, as the status says too, if there is one
	faultLoad                      // there is too much load, as the status says too, if there is one
)

// faults are the codes and types of all providers' errors that mean something, in lower case.
var faults = map[string]fault{}

// is reports whether the code or the type of the error is one of a fault.
func (c *errorBody) is(f fault) bool { return faults[c.code] == f || faults[c.kind] == f }

// unpaid reports whether the customer has to pay before the next call. With the type
// usage_limit_reached a used-up budget comes back by itself, whatever the code.
func (c *errorBody) unpaid() bool { return c.kind != "usage_limit_reached" && c.is(faultUnpaid) }

// overloaded reports whether the provider says that it has too much load.
func (c *errorBody) overloaded() bool {
	return c.is(faultOverload) || c.speaksOf("overloaded", "high demand")
}

// names reports whether the code or the type of the error is one of codes.
func (c *errorBody) names(codes ...string) bool {
	return slices.Contains(codes, c.code) || slices.Contains(codes, c.kind)
}

// speaksOf reports whether the message has one of the words.
func (c *errorBody) speaksOf(words ...string) bool {
	return firstOf(c.text, words...) < len(c.text)
}

// firstOf returns the index of the first of some words in a text, or the length of the text.
func firstOf(text string, words ...string) int {
	first := len(text)
	for _, w := range words {
		if i := strings.Index(text, w); i >= 0 {
			first = min(first, i)
		}
	}
	return first
}

// member returns a member of a JSON object, or nil.
func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

// memberText returns a member that is a string, or a number as it is written.
func memberText(value any, name string) string {
	switch v := member(value, name).(type) {
	case string:
		return v
	case float64:
		if math.Abs(v) <= maxCount {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return ""
}

// memberWord returns the text of a member in lower case.
func memberWord(value any, name string) string { return strings.ToLower(memberText(value, name)) }
