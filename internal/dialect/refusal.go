package dialect

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an error that the limiter answers with in place of the provider: a denial, or the
// refusal of a request that is not valid.
type Refusal struct {
	Status     int // 429, [API.NeverStatus] for a call that can never pass, 402 for a budget that is used up for good, or the status of any other error
	Message    string
	RetryAfter time.Duration // how long the client should wait; 0: unknown
	ResetsAt   time.Time     // when a call may pass, for bodies; zero: the body does not say
	Retry      bool          // the answer asks the client's SDK to try again by itself; otherwise, not to
	LeaveRetry bool          // the answer asks the SDK for neither, so that the SDK follows its own rule
	Tokens     bool          // a 429 is due to a limit of tokens, not of requests
	Code       string        // in place of the status's code, in bodies that have one: OpenAI's and those like it
	ID         string        // the request's id, for bodies that have one: Anthropic's
}

// Refuse returns the headers and the body of a refusal in the form of the endpoint's provider, so
// that its SDKs understand it.
func (e Endpoint) Refuse(r Refusal) (h http.Header, body []byte) {
	body, _ = json.Marshal(e.refusal(r)) // cannot fail: only strings and numbers
	h = http.Header{
		"Content-Type":   {"application/json"},
		"Content-Length": {strconv.Itoa(len(body))},
	}
	if !r.LeaveRetry {
		h["X-Should-Retry"] = []string{strconv.FormatBool(r.Retry)}
	}
	if r.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(ceilDiv(r.RetryAfter, time.Second), 10)}
		h["Retry-After-Ms"] = []string{strconv.FormatInt(ceilDiv(r.RetryAfter, time.Millisecond), 10)}
	}
	if field := e.API.protocol().stop.reasonHeader; field != "" && r.final() {
		h[field] = []string{headerText(r.Message)}
	}
	if d := dialectOf(e.Provider); d.refusalHeader != "" {
		h[d.refusalHeader] = []string{d.refusalCode(r)}
	}
	return h, body
}

// object is a JSON object.
type object = map[string]any

// refusal returns the body of a refusal. Its form depends on the API, not on the server, since that
// is what the SDK reads.
func (e Endpoint) refusal(r Refusal) object {
	fault := object{"message": r.Message}
	if !r.ResetsAt.IsZero() {
		fault["resets_at"] = r.ResetsAt.Unix()
	}
	return e.API.protocol().refuse(e, r, fault)
}

// statusWords are a provider's words for errors, by status. Those of 500 and 400 are for all other errors of the server
// and of the client.
type statusWords map[int]string

func (w statusWords) of(status int) string {
	if word, ok := w[status]; ok {
		return word
	}
	if status >= http.StatusInternalServerError {
		return w[http.StatusInternalServerError]
	}
	return w[http.StatusBadRequest]
}

// ceilDiv returns the number of units in d, rounded up.
func ceilDiv(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
