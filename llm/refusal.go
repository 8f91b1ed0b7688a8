package llm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an answer of the limiter's own in place of the provider's.
type Refusal struct {
	Status     int // 429, 413 for a call that can never pass, or the status of any other error
	Message    string
	RetryAfter time.Duration // 0: unknown
	Retry      bool          // whether the client's SDK should try again by itself
	LeaveRetry bool          // the answer says nothing about that, so that the SDK follows its own rule
	Tokens     bool          // of a 429: tokens were short, not requests
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
	if e.Provider == Bedrock {
		h["X-Amzn-Errortype"] = []string{r.amazonCode()}
	}
	return h, body
}

// refusal returns the body of a refusal. Its form depends on the API, not on the server, since that
// is what the SDK reads.
func (e Endpoint) refusal(r Refusal) any {
	type object = map[string]any
	words := wordsOf(r.Status)
	if r.Tokens && r.Status == http.StatusTooManyRequests {
		words.openAI = "tokens" // OpenAI's type names what was short
	}
	switch e.API {
	case Messages:
		body := object{"type": "error", "error": object{"type": words.anthropic, "message": r.Message}}
		if r.ID != "" {
			body["request_id"] = r.ID
		}
		return body
	case Generate:
		fault := object{"code": r.Status, "message": r.Message, "status": words.google}
		if r.RetryAfter > 0 {
			fault["details"] = []object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retryDelay(r.RetryAfter)}}
		}
		return object{"error": fault}
	case OllamaChat, OllamaGenerate:
		return object{"error": r.Message}
	case CohereChat, CohereEmbed, CohereRerank:
		return object{"message": r.Message}
	case Converse, Invoke:
		return object{"message": r.Message, "__type": r.amazonCode()}
	}
	body := object{"error": object{"message": r.Message, "type": words.openAI, "param": nil, "code": words.code}}
	if e.Provider == Mistral || e.Provider == Cohere || e.Provider == Bedrock { // their own SDKs read the top level, OpenAI's the error
		body["message"], body["type"], body["code"] = r.Message, words.openAI, words.code
	}
	return body
}

// words are the providers' codes for a refusal.
type words struct {
	status       int
	openAI, code string
	anthropic    string
	google       string
}

var refusals = []words{
	{http.StatusBadRequest, "invalid_request_error", "invalid_request", "invalid_request_error", "INVALID_ARGUMENT"},
	{http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"},
	{http.StatusForbidden, "invalid_request_error", "permission_denied", "permission_error", "PERMISSION_DENIED"},
	{http.StatusNotFound, "invalid_request_error", "not_found", "not_found_error", "NOT_FOUND"},
	{http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large", "request_too_large", "INVALID_ARGUMENT"},
	{http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"},
	{http.StatusServiceUnavailable, "server_error", "server_is_overloaded", "overloaded_error", "UNAVAILABLE"},
}

// wordsOf returns the codes for a refusal with a status.
func wordsOf(status int) words {
	for _, w := range refusals {
		if w.status == status {
			return w
		}
	}
	if status >= http.StatusInternalServerError {
		return words{status, "server_error", "bad_gateway", "api_error", "UNAVAILABLE"}
	}
	return refusals[0]
}

// amazonCode returns the code by which Amazon's SDKs know an error. They try again by themselves
// after a ThrottlingException, and not after a ServiceQuotaExceededException.
func (r Refusal) amazonCode() string {
	switch {
	case r.Status == http.StatusUnauthorized:
		return "UnrecognizedClientException"
	case r.Status == http.StatusForbidden:
		return "AccessDeniedException"
	case r.Status == http.StatusNotFound:
		return "ResourceNotFoundException"
	case r.Status == http.StatusTooManyRequests && r.Retry:
		return "ThrottlingException"
	case r.Status == http.StatusTooManyRequests:
		return "ServiceQuotaExceededException"
	case r.Status == http.StatusServiceUnavailable:
		return "ServiceUnavailableException"
	case r.Status >= http.StatusInternalServerError:
		return "InternalServerException"
	}
	return "ValidationException"
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
