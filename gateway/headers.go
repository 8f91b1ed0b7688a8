package gateway

import (
	"net/http"
	"strings"

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
