package llm

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errorBody is what the body of an error says. Its strings are in lower case.
type errorBody struct {
	shape    string // the type of the whole body; Anthropic's is "error"
	kind     string // the type of the error
	code     string
	status   string        // Google's
	text     string        // the message; the whole body where that is not JSON
	delay    time.Duration // from Google's RetryInfo, or 0
	violated []Window      // from Google's QuotaFailure; a Unit may be empty
	header   http.Header   // from OpenRouter's metadata.headers
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
	metadata := member(inner, "metadata")
	c := errorBody{
		shape:  memberWord(whole, "type"),
		kind:   memberWord(inner, "type"),
		code:   cmp.Or(memberWord(inner, "code"), bareCode(memberWord(inner, "__type"))),
		status: memberWord(inner, "status"),
		text:   cmp.Or(memberWord(inner, "message"), memberWord(inner, "error")) + " " + memberWord(metadata, "limit_source"),
		header: http.Header{},
	}
	headers, _ := member(metadata, "headers").(map[string]any)
	for name := range headers {
		c.header.Add(name, memberText(headers, name))
	}
	details, _ := member(inner, "details").([]any)
	for _, detail := range details {
		c.readDetail(detail, now)
	}
	for _, w := range c.violated {
		c.per = max(c.per, w.Per)
	}
	c.per = cmp.Or(c.per, periodIn(c.text))
	return c
}

// readDetail reads one of the details of Google's errors.
func (c *errorBody) readDetail(detail any, now time.Time) {
	kind := memberWord(detail, "@type")
	switch kind[strings.LastIndexByte(kind, '.')+1:] {
	case "retryinfo":
		c.delay = max(c.delay, parseWait(memberText(detail, "retryDelay"), now))
	case "quotafailure":
		violations, _ := member(detail, "violations").([]any)
		for _, v := range violations {
			c.violated = append(c.violated, violatedWindow(v, now))
		}
	}
}

// violatedWindow returns the window of a violated quota, which has nothing left. The quota's name
// says what it limits, as in GenerateRequestsPerDayPerProjectPerModel-FreeTier. The Unit is empty
// where it is none of ours, such as images.
func violatedWindow(violation any, now time.Time) Window {
	w := Window{Limit: max(strictestCount([]string{memberText(violation, "quotaValue")}, 1), 0)}
	id := memberWord(violation, "quotaId")
	switch what := id + " " + memberWord(violation, "quotaMetric"); {
	case strings.Contains(what, "token") && strings.Contains(what, "output"):
		w.Unit = OutputTokens
	case strings.Contains(what, "token") && strings.Contains(what, "input"):
		w.Unit = InputTokens
	case strings.Contains(what, "token"):
		w.Unit = AllTokens
	case strings.Contains(what, "request"):
		w.Unit = Requests
	}
	switch {
	case strings.Contains(id, "perday"):
		w.Per, w.Reset = Day, untilMidnight(now, pacific())
	case strings.Contains(id, "perminute"):
		w.Per = time.Minute
	case strings.Contains(id, "persecond"):
		w.Per = time.Second
	}
	return w
}

// periodIn returns the Per of the limit that a text is about, or 0. If the text names several, the
// first counts: the rest is advice.
func periodIn(text string) time.Duration {
	day := firstOf(text, "per day", "per-day", "(rpd)", "(tpd)", "daily")
	minute := firstOf(text, "per min", "per-min", "(rpm)", "(tpm)")
	switch {
	case day < minute:
		return Day
	case minute < day:
		return time.Minute
	}
	return 0
}

// bareCode returns the code of an Amazon error without the text around it, as in
// com.amazon.coral.service#ThrottlingException:http://internal.amazon.com/.
func bareCode(code string) string {
	code = code[strings.LastIndexByte(code, '#')+1:]
	code, _, _ = strings.Cut(code, ":")
	return code
}

// googleQuota reports whether the error is about one of Google's quotas.
func (c *errorBody) googleQuota() bool {
	return c.status == "resource_exhausted" || len(c.violated) > 0
}

// unpaid reports whether the customer has to pay before the next call. With the type
// usage_limit_reached a used-up budget comes back by itself, whatever the code.
func (c *errorBody) unpaid() bool {
	return c.kind != "usage_limit_reached" && c.names("insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active")
}

// spendCapped reports whether an error of Anthropic's, which has no code for that, is about money.
func (c *errorBody) spendCapped() bool {
	return c.shape == "error" && c.speaksOf("spend", "credit", "usage limit")
}

// overloaded reports whether the provider says that it has too much load.
func (c *errorBody) overloaded() bool {
	return c.names("server_is_overloaded", "slow_down", "overloaded_error", "serviceunavailableexception", "modelnotreadyexception") || c.speaksOf("overloaded", "high demand")
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
