package gateway

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// unaskable is for how long a deployment is not asked for the usage of its streams, once it
// has refused a stream for that.
type unaskable struct{ until atomic.Int64 } // Unix nanoseconds

// askAgainAfter is how long a deployment is taken to refuse stream_options.
const askAgainAfter = 10 * time.Minute

func (u *unaskable) note() { u.until.Store(time.Now().Add(askAgainAfter).UnixNano()) }
func (u *unaskable) holds() bool {
	return u.until.Load() != 0 && time.Now().UnixNano() < u.until.Load()
}

// askUsage returns the body that is sent to a deployment: that of a stream which would not
// tell its usage asks for it. veiled is whether it does: then the client, who has not asked,
// is not to see the answer to that.
func (x *exchange) askUsage(d *deployment) (body wire.Pieces, veiled bool) {
	if x.signed || x.upstream.StreamUsage == config.StreamUsageOff || d.unaskable.holds() {
		return wire.Pieces{x.body}, false
	}
	if asking, ok := x.asking(); ok {
		return asking, true
	}
	return wire.Pieces{x.body}, false
}

// sendUnasked sends a stream again that the provider has refused because it was asked for
// usage. The provider has had two requests then, so the model is charged one more. If it
// takes this one, and the account is the gateway's, the deployment is remembered: a client's
// own account, or a body that is refused either way, must not switch metering off for others.
func (x *exchange) sendUnasked(d *deployment, body []byte) (*http.Response, error) {
	x.g.limits.Models.RecordUsage(x.Quota, 0, 0)
	response, err := x.send(d, (*wire.Bytes)(&body), int64(len(body)))
	if err == nil && response.StatusCode/100 == 2 && x.shared {
		d.unaskable.note()
	}
	return response, err
}

// refusesUsage reports whether a provider refuses a stream because it is asked to tell
// usage, which its client has not done.
func refusesUsage(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, call.MostOfError))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), response.Body), response.Body}
	return bytes.Contains(text, []byte("stream_options")) || bytes.Contains(text, []byte("include_usage"))
}
