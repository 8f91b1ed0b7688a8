package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/call"
)

// hopFields are hop-by-hop headers: they are meant for the next server only.
var hopFields = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// gatewayFields are headers that a provider does not get: they are for the gateway, browsers and
// proxies describe the client in them, or some servers take the method, the path or the host of the
// request from them, so that they would serve another request than the gateway has read.
var gatewayFields = []string{
	fieldProject, fieldUser, fieldRun, fieldGatewayKey, "Cookie", "Expect", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip", "Via",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Method", "X-Forwarded-Method",
	"X-Original-Url", "X-Rewrite-Url", "X-Original-Uri", "X-Rewrite-Uri", "X-Override-Url", "X-Forwarded-Uri", "X-Forwarded-Url",
	"X-Forwarded-Path", "X-Forwarded-Prefix", "X-Original-Path", "X-Original-Host", "X-Host", "X-Http-Host-Override", "X-Http-Destinationurl",
}

// accountFields are headers in which a client chooses the account that is billed, and a
// provider names it.
var accountFields = []string{"Openai-Organization", "Openai-Project", "X-Goog-User-Project", "Anthropic-Organization-Id"}

// partialFields are headers that ask for an answer whose usage the gateway cannot read: a
// compressed one, a part of one, or one to be fetched later.
var partialFields = []string{"Accept-Encoding", "Range", "If-Range", "Prefer"}

// hostFields are headers of answers that concern the provider's own host, or would have a browser do something
// to the gateway's.
var hostFields = []string{"Alt-Svc", "Clear-Site-Data", "Nel", "Refresh", "Report-To", "Reporting-Endpoints", "Service-Worker-Allowed", "Strict-Transport-Security"}

// limitFields are headers in which the gateway says how its own limits stand. A provider's limits are in others.
var limitFields = []string{fieldShadow, fieldFit, "Ratelimit", "Ratelimit-Policy"}

// prefixOwn is how the names of all other headers begin in which the gateway speaks for itself.
const prefixOwn = "X-Gateway-"

// Headers of every forwarded answer. In a browser, the answer is a page of the gateway's own origin: a sandbox
// keeps its scripts from running, and its type is the one that it claims.
var (
	fieldPolicy, sandboxed = "Content-Security-Policy", []string{"sandbox"}
	fieldType, unsniffed   = "X-Content-Type-Options", []string{"nosniff"}
)

var (
	// notForwarded are headers of requests that no provider gets.
	notForwarded = setOf(gatewayFields, hopFields)

	// clientCredentials are headers that do not go with the gateway's account: the client's
	// keys and account, a signature, which would not cover the gateway's key, and
	// Accept-Encoding, since the gateway could not redact its key in a compressed answer.
	clientCredentials = setOf(keyFields, accountFields, call.SignatureFields, []string{"Accept-Encoding"})

	// notReturned are headers of answers that clients do not get. notReturnedOfGateway are those
	// of answers to a request with the gateway's account.
	notReturned          = setOf(hostFields, hopFields, limitFields)
	notReturnedOfGateway = setOf(hostFields, hopFields, limitFields, accountFields, []string{"Set-Cookie"})
)

func setOf(lists ...[]string) map[string]bool {
	all := map[string]bool{}
	for _, name := range slices.Concat(lists...) {
		all[name] = true
	}
	return all
}

// deleteFields deletes the headers in a set. A request has few headers and the set has many:
// it is faster to look up the few.
func deleteFields(h http.Header, unwanted map[string]bool) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return unwanted[name] })
}

// Headers by which inference gateways of Kubernetes share their servers (Gateway API Inference Extension): whose a call is,
// and the name of the InferenceObjective that has its priority.
const (
	fieldFairness  = "X-Gateway-Inference-Fairness-Id"
	fieldObjective = "X-Gateway-Inference-Objective"
)

// classify sets the project of the call and its priority for a provider that is an inference gateway, in place of what the
// client says of them. It does not set the user: whoever invents names would have a share for each. A call of priority 0
// has no objective, which is priority 0 there too.
func (x *exchange) classify(h http.Header) {
	if !x.upstream.InferenceGateway {
		return
	}
	h[fieldFairness] = []string{x.Project}
	delete(h, fieldObjective)
	if priority := x.g.limits.Projects.Limit(x.Project).Priority; priority != 0 {
		h[fieldObjective] = []string{fmt.Sprintf("priority-%d", priority)}
	}
}

// deleteConnectionFields deletes the headers that the Connection header names: they are meant
// for the next server only.
func deleteConnectionFields(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
}

// copyHeaders copies the headers of a provider's answer to the client's, without those that
// the client must not get, and adds the gateway's.
func (x *exchange) copyHeaders(from http.Header) {
	deleteConnectionFields(from)
	unwanted := notReturned
	if x.gatewayAccount {
		unwanted = notReturnedOfGateway
	}
	to := x.w.Header()
	for name, values := range from {
		if !unwanted[name] && !strings.HasPrefix(name, prefixOwn) {
			to[name] = values
		}
	}
	to[fieldPolicy], to[fieldType] = sandboxed, unsniffed
	x.setRequestID(to)
	x.setLimitHeaders(to)
}
