package llm

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// What a gateway needs to know of a provider, beside its calls.

// SetKey sets a key of the provider in the header in which it expects the key for a call of the endpoint.
func (p Provider) SetKey(h http.Header, e Endpoint, path, key string) {
	own, protocol := p.dialect().keyHeader, e.API.protocol()
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
func (a API) SetLimit(h http.Header, unit string, w Window, now time.Time) {
	a.protocol().setLimit(h, unit, w, now)
}

// ErrorAPI returns the API that gives errors their form where a request is no call of a model.
func (p Provider) ErrorAPI() API { return p.dialect().errorAPI }

// IsOwnServer reports whether the provider is a server that people run by themselves: it may need no key, and whoever
// can reach it may change its models.
func (p Provider) IsOwnServer() bool { return p.dialect().ownServer }

// UsesNoTokens reports whether a path of the provider certainly uses no tokens, although something is posted there.
func (p Provider) UsesNoTokens(path string) bool {
	return slices.ContainsFunc(p.dialect().freeEnds, func(end string) bool { return strings.HasSuffix(path, end) })
}

// QuotesAnswers reports whether an error of the provider with this status may quote an answer that has cost tokens.
func (p Provider) QuotesAnswers(status int) bool {
	return p.dialect().quotesAnswers && status == http.StatusBadRequest
}

// BaseURL returns what the provider's SDKs expect behind the address of a server, and the environment variable in which
// they look for both together; they are empty if there is none.
func (p Provider) BaseURL() (path, variable string) {
	d := p.dialect()
	return d.basePath, d.baseVariable
}
