package dialect

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// What a gateway needs to know of a provider, beside its calls.

// SetKey sets a key of the provider in the header in which it expects the key for a call of the endpoint.
func SetKey(p llm.Provider, h http.Header, e Endpoint, path, key string) {
	own, protocol := dialectOf(p).keyHeader, e.API.protocol()
	switch {
	case own == authorization:
	case own != "":
		h[own] = []string{key}
		return
	case protocol.keyHeader == "" || protocol.keyUnless != "" && strings.Contains(path, protocol.keyUnless):
	default:
		h[protocol.keyHeader] = []string{key}
		if p == protocol.owner.provider || !protocol.always { // other providers of an API may expect either header
			return
		}
	}
	h[authorization] = []string{"Bearer " + key}
}

const authorization = "Authorization"

// KeyHeaders returns the headers in which SDKs send a key.
func KeyHeaders() []string {
	all := []string{authorization}
	add := func(name string) {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, d := range dialects {
		add(d.keyHeader)
		for i := range d.protocols {
			add(d.protocols[i].keyHeader)
		}
	}
	return all
}

// usualRequestID is the header with the id of a request that most providers have.
const usualRequestID = "X-Request-Id"

// RequestIDHeader returns the header of a response in which SDKs look for the id of a request.
func (a API) RequestIDHeader() string { return a.protocol().requestID }

// RequestIDHeaders returns the headers in which providers name the id of a request.
func RequestIDHeaders() []string {
	all := []string{usualRequestID}
	for _, d := range dialects {
		for i := range d.protocols {
			if name := d.protocols[i].requestID; !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// SetLimit sets the headers with the state of a limit that SDKs of the API read. unit is "requests" or "tokens".
func (a API) SetLimit(h http.Header, unit string, w llm.Window, now time.Time) {
	a.protocol().setLimit(h, unit, w, now)
}

// ErrorAPI returns the API that gives errors their form where a request is no call of a model.
func ErrorAPI(p llm.Provider) API { return dialectOf(p).errorAPI }

// IsOwnServer reports whether the provider is a server that people run by themselves: it may need no key, and whoever
// can reach it may change its models.
func IsOwnServer(p llm.Provider) bool { return dialectOf(p).ownServer }

// UsesNoTokens reports whether a path of the provider certainly uses no tokens, although something is posted there.
func UsesNoTokens(p llm.Provider, path string) bool {
	return slices.ContainsFunc(dialectOf(p).freeEnds, func(end string) bool { return strings.HasSuffix(path, end) })
}

// QuotesAnswers reports whether an error of the provider with this status may quote an answer that has cost tokens.
func QuotesAnswers(p llm.Provider, status int) bool {
	return dialectOf(p).quotesAnswers && status == http.StatusBadRequest
}

// BaseURL returns what the provider's SDKs expect behind the address of a server, and the environment variable in which
// they look for both together; they are empty if there is none.
func BaseURL(p llm.Provider) (path, variable string) {
	d := dialectOf(p)
	return d.basePath, d.baseVariable
}
