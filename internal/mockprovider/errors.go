package mockprovider

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// failure is an error that a client receives.
type failure struct {
	status  int
	code    string // empty: the provider's usual code
	message string
	retry   time.Duration // the wait that the provider asks for; 0: none
	model   string
}

// body returns the body of an error in the provider's format.
func (f failure) body(p llm.Provider) object {
	switch p {
	case llm.Anthropic:
		return object{"type": "error", "error": object{"type": cmp.Or(f.code, f.codes().anthropic), "message": f.message}, "request_id": "req_mock"}
	case llm.Gemini, llm.Vertex:
		return object{"error": f.gemini()}
	case llm.OpenRouter:
		return object{"error": object{"code": f.status, "message": f.message, "metadata": object{"provider_name": "mock", "raw": f.message}}, "user_id": "user_mock"}
	case llm.Azure:
		return object{"error": object{"code": cmp.Or(f.code, strconv.Itoa(f.status)), "message": f.message}}
	case llm.Mistral:
		return object{"object": "error", "message": f.message, "type": cmp.Or(f.code, f.codes().openAI), "param": nil, "code": strconv.Itoa(f.status)}
	case llm.Ollama:
		return object{"error": f.message}
	case llm.Bedrock:
		return object{"message": f.message}
	case llm.Cohere:
		return object{"id": "mock", "message": f.message}
	default:
		return object{"error": object{"message": f.message, "type": f.openAIType(), "param": nil, "code": cmp.Or(f.code, f.codes().openAI)}}
	}
}

func (f failure) openAIType() string {
	switch {
	case f.code == "insufficient_quota" || f.code == "credit_balance_exhausted":
		return f.code
	case f.status == http.StatusTooManyRequests:
		return "requests"
	case f.status >= 500:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

// codes are the providers' codes for one status.
type codes struct {
	status                            int
	openAI, anthropic, google, amazon string
}

// statusCodes has the codes by status. The last row is for all other statuses.
var statusCodes = []codes{
	{http.StatusBadRequest, "invalid_request", "invalid_request_error", "INVALID_ARGUMENT", "ValidationException"},
	{http.StatusUnauthorized, "invalid_api_key", "authentication_error", "UNAUTHENTICATED", "ValidationException"},
	{http.StatusForbidden, "invalid_request", "permission_error", "PERMISSION_DENIED", "AccessDeniedException"},
	{http.StatusNotFound, "model_not_found", "not_found_error", "NOT_FOUND", "ResourceNotFoundException"},
	{http.StatusRequestEntityTooLarge, "invalid_request", "request_too_large", "INTERNAL", "ValidationException"},
	{http.StatusTooManyRequests, "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", "ThrottlingException"},
	{http.StatusInternalServerError, "server_error", "api_error", "INTERNAL", "InternalServerException"},
	{http.StatusServiceUnavailable, "server_is_overloaded", "api_error", "UNAVAILABLE", "ServiceUnavailableException"},
	{llm.StatusOverloaded, "invalid_request", "overloaded_error", "INTERNAL", "ValidationException"},
	{0, "invalid_request", "api_error", "INTERNAL", "ValidationException"},
}

// codes returns the providers' codes for the failure.
func (f failure) codes() codes {
	for _, c := range statusCodes {
		if c.status == f.status {
			return c
		}
	}
	return statusCodes[len(statusCodes)-1]
}

func (f failure) gemini() object {
	e := object{"code": f.status, "message": f.message, "status": f.codes().google}
	if f.status == http.StatusTooManyRequests {
		e["details"] = f.geminiDetails()
	}
	return e
}

// geminiDetails names the violated quota, and how long to wait.
func (f failure) geminiDetails() []object {
	details := []object{{
		"@type": "type.googleapis.com/google.rpc.QuotaFailure",
		"violations": []object{{
			"quotaMetric":     "generativelanguage.googleapis.com/generate_content_free_tier_requests",
			"quotaId":         cmp.Or(f.code, "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
			"quotaDimensions": object{"location": "global", "model": f.model},
			"quotaValue":      "60",
		}},
	}}
	if f.retry > 0 {
		details = append(details, object{
			"@type":      "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": fmt.Sprintf("%ds", seconds(f.retry)),
		})
	}
	return details
}
