package gateway

import (
	"bytes"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// usageRefusedFor is how long a deployment gets no requests for the usage of streams like
// one that it has refused because of such a request.
const usageRefusedFor = 10 * time.Minute

// streamHash returns a hash of what decides whether a deployment accepts requests for the
// usage of a stream: the model, since one server may pass calls on to several, and Azure's
// api-version. So no client switches metering off for other models, or makes the gateway send
// its streams twice by a query that is always new.
func (x *exchange) streamHash() uint64 {
	version := ""
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		if name, value := parameter(pair); name == "api-version" {
			version = value
		}
	}
	return maphash.String(hashSeed, x.call.Request.Model+"?"+version)
}

// askUsage returns the body that is sent to a deployment. If the request is for a stream
// that would not report its usage, the body asks for it, and hideUsage is true: the client
// has not asked for usage, and must not see it.
func (x *exchange) askUsage(d *deployment) (body wire.Pieces, hideUsage bool) {
	pieces, ok := x.call.Request.AskUsage(x.body)
	if !ok || x.signed || x.upstream.StreamUsage == config.StreamUsageOff || d.usageRefused.has(x.streamHash()) {
		return x.sentBody(), false
	}
	return pieces, true
}

// sendUnasked sends a stream again, as the client has sent it, after the provider has refused
// the request for usage. The provider has got two requests, so the model is charged one more.
// If the provider accepts this one, and the account is the gateway's, the deployment gets no
// such requests for a while. A client's own account, or a body that is refused either way,
// must not switch metering off for others.
func (x *exchange) sendUnasked(d *deployment) (*http.Response, error) {
	x.g.limits.Models.RecordUsage(x.Quota, 0, 0)
	body := x.sentBody()
	response, err := x.send(d, &body, body.Len())
	if err == nil && response.StatusCode/100 == 2 && x.gatewayAccount {
		d.usageRefused.add(x.streamHash(), usageRefusedFor)
	}
	return response, err
}

// refusedForUsage reports whether the provider has refused a stream because of the request
// for usage, which the gateway has added.
func refusedForUsage(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, call.MaxErrorBody))
	response.Body = call.Rewound(text, response.Body)
	return bytes.Contains(text, []byte("stream_options")) || bytes.Contains(text, []byte("include_usage"))
}
