package mockprovider

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// failure is an error as a client is told it.
type failure struct {
	status  int
	code    string // the provider's usual one if empty
	message string
	retry   time.Duration // 0: not said
	model   string
}

// statusOverloaded is Anthropic's.
const statusOverloaded = 529

// body returns the body of an error as a provider writes it.
func (p Provider) body(f failure) object {
	switch p {
	case Anthropic:
		return object{"type": "error", "error": object{"type": f.anthropicType(), "message": f.message}, "request_id": "req_mock"}
	case Gemini, Vertex:
		return object{"error": f.gemini()}
	case OpenRouter:
		return object{"error": object{"code": f.status, "message": f.message, "metadata": object{"provider_name": "mock", "raw": f.message}}, "user_id": "user_mock"}
	case Azure:
		return object{"error": object{"code": cmp.Or(f.code, strconv.Itoa(f.status)), "message": f.message}}
	case Mistral:
		return object{"object": "error", "message": f.message, "type": cmp.Or(f.code, f.openAICode()), "param": nil, "code": strconv.Itoa(f.status)}
	case Ollama:
		return object{"error": f.message}
	case Bedrock:
		return object{"message": f.message}
	case Cohere:
		return object{"id": "mock", "message": f.message}
	default:
		return object{"error": object{"message": f.message, "type": f.openAIType(), "param": nil, "code": cmp.Or(f.code, f.openAICode())}}
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

func (f failure) openAICode() string {
	switch f.status {
	case http.StatusUnauthorized:
		return "invalid_api_key"
	case http.StatusNotFound:
		return "model_not_found"
	case http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case http.StatusServiceUnavailable:
		return "server_is_overloaded"
	case http.StatusInternalServerError:
		return "server_error"
	default:
		return "invalid_request"
	}
}

func (f failure) anthropicType() string {
	if f.code != "" {
		return f.code
	}
	switch f.status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case statusOverloaded:
		return "overloaded_error"
	case http.StatusBadRequest:
		return "invalid_request_error"
	default:
		return "api_error"
	}
}

func (f failure) gemini() object {
	e := object{"code": f.status, "message": f.message, "status": f.geminiStatus()}
	if f.status == http.StatusTooManyRequests {
		e["details"] = f.geminiDetails()
	}
	return e
}

func (f failure) geminiStatus() string {
	switch f.status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	default:
		return "INTERNAL"
	}
}

// geminiDetails says which quota was violated, and for how long.
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
