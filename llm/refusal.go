package llm

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
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
	Retry      bool          // the answer tells the client's SDK to try again by itself; otherwise, not to
	LeaveRetry bool          // the answer tells the SDK neither, so that the SDK follows its own rule
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
	if field := e.API.stop().reasonHeader; field != "" && r.final() {
		h[field] = []string{headerText(r.Message)}
	}
	if e.Provider == Bedrock {
		h["X-Amzn-Errortype"] = []string{r.words(e.API).amazon}
	}
	return h, body
}

// object is a JSON object.
type object = map[string]any

// refusal returns the body of a refusal. Its form depends on the API, not on the server, since that
// is what the SDK reads.
func (e Endpoint) refusal(r Refusal) object {
	words := r.words(e.API)
	fault := object{"message": r.Message}
	if !r.ResetsAt.IsZero() {
		fault["resets_at"] = r.ResetsAt.Unix()
	}
	switch e.API {
	case Messages:
		fault["type"] = words.anthropic
		body := object{"type": "error", "error": fault}
		if r.ID != "" {
			body["request_id"] = r.ID
		}
		return body
	case Generate, Interactions:
		fault["code"], fault["status"] = r.Status, words.google
		if r.RetryAfter > 0 {
			fault["details"] = []object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retryDelay(r.RetryAfter)}}
		}
		return object{"error": fault}
	case OllamaChat, OllamaGenerate:
		fault["error"] = r.Message
		delete(fault, "message")
		return fault
	case CohereChat, CohereEmbed, CohereRerank:
		return fault
	case Converse, Invoke:
		fault["__type"] = words.amazon
		return fault
	}
	fault["type"], fault["param"], fault["code"] = words.openAI, nil, words.code
	if e.Provider != Mistral && e.Provider != Cohere && e.Provider != Bedrock {
		return object{"error": fault}
	}
	body := maps.Clone(fault) // their own SDKs read the top level, OpenAI's the error
	body["object"], body["error"] = "error", fault
	return body
}

// words are the providers' codes for a refusal.
type words struct {
	status                                  int
	openAI, code, anthropic, google, amazon string
}

// refusals has the codes by status. The last row but one is for other errors of the server, and the
// last for other errors of the client.
var refusals = []words{
	{http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED", "UnrecognizedClientException"},
	{http.StatusPaymentRequired, "insufficient_quota", "insufficient_quota", "billing_error", "FAILED_PRECONDITION", "ServiceQuotaExceededException"},
	{http.StatusForbidden, "invalid_request_error", "permission_denied", "permission_error", "PERMISSION_DENIED", "AccessDeniedException"},
	{http.StatusNotFound, "invalid_request_error", "not_found", "not_found_error", "NOT_FOUND", "ResourceNotFoundException"},
	{http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large", "request_too_large", "INVALID_ARGUMENT", "ValidationException"},
	{http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", "ThrottlingException"},
	{http.StatusServiceUnavailable, "server_error", "server_is_overloaded", "overloaded_error", "UNAVAILABLE", "ServiceUnavailableException"},
	{http.StatusInternalServerError, "server_error", "bad_gateway", "api_error", "UNAVAILABLE", "InternalServerException"},
	{http.StatusBadRequest, "invalid_request_error", "invalid_request", "invalid_request_error", "INVALID_ARGUMENT", "ValidationException"},
}

// words returns the codes for the refusal, in an API.
func (r Refusal) words(a API) words {
	last := len(refusals) - 1
	i := slices.IndexFunc(refusals, func(w words) bool { return w.status == r.Status })
	switch {
	case i < 0 && r.Status >= http.StatusInternalServerError:
		i = last - 1
	case i < 0:
		i = last
	}
	w := refusals[i]
	if r.Status == http.StatusTooManyRequests {
		if r.Tokens {
			w.openAI = "tokens" // OpenAI's type names what was short
		}
		if !r.Retry {
			w.amazon = "ServiceQuotaExceededException" // after a ThrottlingException, Amazon's SDKs try again by themselves
		}
	}
	if s := a.stop(); r.final() && s.kind != "" {
		w.openAI, w.code = s.kind, s.code
	}
	w.code = cmp.Or(r.Code, w.code)
	if r.Code == CodeNever {
		w.anthropic = "invalid_request_error" // whatever the status: other calls may pass
	}
	return w
}

// retryDelay returns a wait in Google's form: 22s, 0.5s.
func retryDelay(d time.Duration) string {
	seconds := float64(ceilDiv(d, time.Millisecond)) / 1000
	return strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
}

// ceilDiv returns the number of units in d, rounded up.
func ceilDiv(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
