package llm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an answer that a limiter gives in place of a provider.
type Refusal struct {
	Status     int // 429, or 413 for a call that can never pass
	Message    string
	RetryAfter time.Duration // 0: not said
	Retry      bool          // whether the client's SDK should try again by itself
}

// Refuse returns the headers and the body of a refusal as the endpoint's provider
// would write them, so that its SDKs understand it.
func (e Endpoint) Refuse(r Refusal) (h http.Header, body []byte) {
	body, _ = json.Marshal(e.refusal(r)) // strings and numbers alone: it cannot fail
	h = http.Header{
		"Content-Type":   {"application/json"},
		"Content-Length": {strconv.Itoa(len(body))},
		"X-Should-Retry": {strconv.FormatBool(r.Retry)},
	}
	if r.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(roundedUp(r.RetryAfter, time.Second), 10)}
		h["Retry-After-Ms"] = []string{strconv.FormatInt(roundedUp(r.RetryAfter, time.Millisecond), 10)}
	}
	return h, body
}

// refusal returns the body of a refusal: by the API, not by who serves it, for that is
// what the SDK reads.
func (e Endpoint) refusal(r Refusal) any {
	type object = map[string]any
	tooLarge := r.Status == http.StatusRequestEntityTooLarge
	switch e.API {
	case Messages:
		kind := "rate_limit_error"
		if tooLarge {
			kind = "request_too_large"
		}
		return object{"type": "error", "error": object{"type": kind, "message": r.Message}}
	case Generate:
		fault := object{"code": r.Status, "message": r.Message, "status": "RESOURCE_EXHAUSTED"}
		if tooLarge {
			fault["status"] = "INVALID_ARGUMENT"
		}
		if r.RetryAfter > 0 {
			fault["details"] = []object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retryDelay(r.RetryAfter)}}
		}
		return object{"error": fault}
	case OllamaChat, OllamaGenerate:
		return object{"error": r.Message}
	}
	// OpenAI's type is what there was too much of. With tokens, some clients would
	// shorten the prompt; with requests they wait.
	fault := object{"message": r.Message, "type": "requests", "param": nil, "code": "rate_limit_exceeded"}
	if tooLarge {
		fault["type"], fault["code"] = "invalid_request_error", "request_too_large"
	}
	return object{"error": fault}
}

// retryDelay returns a wait as Google writes it: 22s, 0.5s.
func retryDelay(d time.Duration) string {
	seconds := float64(roundedUp(d, time.Millisecond)) / 1000
	return strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
}

// roundedUp returns how many units d is.
func roundedUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
