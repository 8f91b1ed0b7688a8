package gateway

import (
	"bytes"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// askAgainAfter is for how long streams like one that a deployment has refused are not
// asked for their usage.
const askAgainAfter = 10 * time.Minute

// stream returns a hash of what decides whether the stream's usage may be asked for: its
// model, since one server may lead to several, and Azure's api-version. So no client
// switches metering off for other models, and none has streams sent twice by a query that
// is always another.
func (x *exchange) stream() uint64 {
	version := ""
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		if name, value := parameter(pair); name == "api-version" {
			version = value
		}
	}
	return maphash.String(seed, x.call.Request.Model+"?"+version)
}

// askUsage returns the body that is sent to a deployment: that of a stream which would not
// tell its usage asks for it. veiled is whether it does: then the client, who has not asked,
// is not to see the answer to that.
func (x *exchange) askUsage(d *deployment) (body wire.Pieces, veiled bool) {
	if x.signed || x.upstream.StreamUsage == config.StreamUsageOff || d.unaskable.any() && d.unaskable.has(x.stream()) {
		return wire.Pieces{x.body}, false
	}
	if asking, ok := x.asking(); ok {
		return asking, true
	}
	return wire.Pieces{x.body}, false
}

// sendUnasked sends a stream again that the provider has refused because it was asked for
// usage. The provider has had two requests then, so the model is charged one more. If it
// takes this one, and the account is the gateway's, that is remembered: a client's
// own account, or a body that is refused either way, must not switch metering off for others.
func (x *exchange) sendUnasked(d *deployment, body []byte) (*http.Response, error) {
	x.g.limits.Models.RecordUsage(x.Quota, 0, 0)
	response, err := x.send(d, (*wire.Bytes)(&body), int64(len(body)))
	if err == nil && response.StatusCode/100 == 2 && x.shared {
		d.unaskable.note(x.stream(), askAgainAfter)
	}
	return response, err
}

// refusesUsage reports whether a provider refuses a stream because it is asked to tell
// usage, which its client has not done.
func refusesUsage(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, call.MaxErrorBody))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), response.Body), response.Body}
	return bytes.Contains(text, []byte("stream_options")) || bytes.Contains(text, []byte("include_usage"))
}
