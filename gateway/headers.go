package gateway

import (
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/llm"
)

// hops are headers that are meant for the next server, and not for those behind it.
var hops = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ours are headers of requests that are no business of a provider's: what is for the
// gateway, and what browsers and proxies before it tell of the client.
var ours = []string{
	fieldProject, "Cookie", "Expect", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip", "Via",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
}

// ofAccount are headers in which a client chooses who is billed, and a provider tells.
var ofAccount = []string{"Openai-Organization", "Openai-Project", "X-Goog-User-Project", "Anthropic-Organization-Id"}

// ofPart are headers by which a client may get an answer whose usage the gateway cannot read:
// compressed, a part of it, or to be fetched later.
var ofPart = []string{"Accept-Encoding", "Range", "If-Range", "Prefer"}

// ofHost are headers of answers that speak of the provider's own host.
var ofHost = []string{"Alt-Svc", "Strict-Transport-Security"}

// kinds is a set of kinds of headers. A request has few headers, and there are many that
// are not sent on: to look at each of the few once is faster than to look for the many.
// Every request pays for it.
type kinds uint8

const (
	kindHop       kinds = 1 << iota // see hops
	kindOurs                        // see ours
	kindAccount                     // see ofAccount
	kindSignature                   // see [call.SignatureFields]
	kindKey                         // see fieldsOfKeys
	kindLeak                        // any other header that holds a virtual key
)

// kindOf has the kind of each header that is not always sent on.
var kindOf = func() map[string]kinds {
	all := map[string]kinds{}
	for kind, names := range map[kinds][]string{kindHop: hops, kindOurs: ours, kindAccount: ofAccount, kindSignature: call.SignatureFields, kindKey: fieldsOfKeys} {
		for _, name := range names {
			all[name] |= kind
		}
	}
	return all
}()

// kindsOf returns which kinds of headers there are.
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

// drop deletes headers of some kinds.
func drop(h http.Header, unwanted kinds) {
	for name := range h {
		if kindOf[name]&unwanted != 0 {
			delete(h, name)
		}
	}
}

// deleteHops deletes headers that are meant for the next server.
func deleteHops(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hops {
		delete(h, name)
	}
}

// putKey puts a key where the provider wants it.
func (x *exchange) putKey(h http.Header, key string) {
	switch {
	case x.upstream.Kind == llm.Azure:
		h["Api-Key"] = []string{key}
		return
	case x.upstream.Kind == llm.Vertex:
	case x.endpoint.API == llm.Messages && x.upstream.Kind == llm.Anthropic:
		h["X-Api-Key"] = []string{key}
		return
	case x.endpoint.API == llm.Messages: // who else has that API may want either
		h["X-Api-Key"] = []string{key}
	case x.endpoint.API == llm.Generate && !strings.Contains(x.target.Path, "/openai/"):
		h["X-Goog-Api-Key"] = []string{key}
		return
	}
	h["Authorization"] = []string{"Bearer " + key}
}

// answer copies the headers of a provider's answer.
func (x *exchange) answer(from http.Header) {
	deleteHops(from)
	to := x.w.Header()
	for name, values := range from {
		to[name] = values
	}
	for _, name := range ofHost {
		delete(to, name)
	}
	if x.shared {
		delete(to, "Set-Cookie")
		for _, name := range ofAccount {
			delete(to, name)
		}
	}
	x.identifyAnswer(to)
	x.tell(to)
}
