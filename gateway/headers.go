package gateway

import (
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/llm"
)

// hopFields are hop-by-hop headers: they are meant for the next server only.
var hopFields = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// gatewayFields are headers that a provider does not get: they are for the gateway, or
// browsers and proxies describe the client in them.
var gatewayFields = []string{
	fieldProject, "Cookie", "Expect", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip", "Via",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
}

// accountFields are headers in which a client chooses the account that is billed, and a
// provider names it.
var accountFields = []string{"Openai-Organization", "Openai-Project", "X-Goog-User-Project", "Anthropic-Organization-Id"}

// partialFields are headers that ask for an answer whose usage the gateway cannot read: a
// compressed one, a part of one, or one to be fetched later.
var partialFields = []string{"Accept-Encoding", "Range", "If-Range", "Prefer"}

// hostFields are headers of answers that concern the provider's own host.
var hostFields = []string{"Alt-Svc", "Strict-Transport-Security"}

// kinds is a set of kinds of headers. A request has few headers, and many are not forwarded:
// looking up each of the few is faster than looking for each of the many, and every request
// does this.
type kinds uint8

const (
	kindHop       kinds = 1 << iota // hopFields
	kindGateway                     // gatewayFields
	kindAccount                     // accountFields
	kindSignature                   // [call.SignatureFields]
	kindKey                         // keyFields
	kindLeak                        // any other header with a virtual key in it
)

// kindOf has the kind of each header that is not always forwarded.
var kindOf = func() map[string]kinds {
	all := map[string]kinds{}
	for kind, names := range map[kinds][]string{kindHop: hopFields, kindGateway: gatewayFields, kindAccount: accountFields, kindSignature: call.SignatureFields, kindKey: keyFields} {
		for _, name := range names {
			all[name] |= kind
		}
	}
	return all
}()

// kindsOf returns the kinds of headers that a request has.
func kindsOf(h http.Header) (all kinds) {
	for name, values := range h {
		kind := kindOf[name]
		if kind&kindKey == 0 && fieldHoldsKey(name, values) {
			kind |= kindLeak
		}
		all |= kind
	}
	return all
}

// dropKinds deletes the headers of unwanted kinds.
func dropKinds(h http.Header, unwanted kinds) {
	for name := range h {
		if kindOf[name]&unwanted != 0 {
			delete(h, name)
		}
	}
}

// deleteHops deletes the hop-by-hop headers, and those that the Connection header names.
func deleteHops(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopFields {
		delete(h, name)
	}
}

// setKey sets the provider's key in the header that the provider expects.
func (x *exchange) setKey(h http.Header, key string) {
	switch {
	case x.upstream.Kind == llm.Azure:
		h["Api-Key"] = []string{key}
		return
	case x.upstream.Kind == llm.Vertex:
	case x.endpoint.API == llm.Messages && x.upstream.Kind == llm.Anthropic:
		h["X-Api-Key"] = []string{key}
		return
	case x.endpoint.API == llm.Messages: // other providers of this API may expect either header
		h["X-Api-Key"] = []string{key}
	case x.endpoint.API == llm.Generate && !strings.Contains(x.target.Path, "/openai/"):
		h["X-Goog-Api-Key"] = []string{key}
		return
	}
	h["Authorization"] = []string{"Bearer " + key}
}

// copyHeaders copies the headers of a provider's answer to the client's, without those that
// the client must not get, and adds the gateway's.
func (x *exchange) copyHeaders(from http.Header) {
	deleteHops(from)
	to := x.w.Header()
	for name, values := range from {
		to[name] = values
	}
	for _, name := range hostFields {
		delete(to, name)
	}
	if x.gatewayAccount {
		delete(to, "Set-Cookie")
		for _, name := range accountFields {
			delete(to, name)
		}
	}
	x.setRequestID(to)
	x.setLimitHeaders(to)
}
