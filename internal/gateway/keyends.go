package gateway

import (
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// checkKey refuses a request whose virtual key was valid when the request came and is not any more: it was
// revoked, it has expired, or its secret was replaced.
func (x *exchange) checkKey() *refusal {
	if !x.keyEnded() {
		return nil
	}
	return refusalf(http.StatusUnauthorized, "not sent: the virtual key is not valid any more")
}

// keyEnded reports whether the virtual key of the request is not valid any more.
func (x *exchange) keyEnded() bool {
	return x.virtualKey != (keys.Sent{}) && x.g.keys.Ended(x.virtualKey)
}

// watchKey calls ended once the virtual key of the request is not valid any more, until stop is called.
func (x *exchange) watchKey(ended func()) (stop func()) {
	if x.virtualKey == (keys.Sent{}) {
		return func() {}
	}
	check := func() {
		if x.keyEnded() {
			ended()
		}
	}
	unwatch := x.g.keys.Watch(check)
	until := x.g.keys.End(x.virtualKey)
	if until.IsZero() {
		return unwatch
	}
	timer := time.AfterFunc(time.Until(until), check)
	return func() {
		timer.Stop()
		unwatch()
	}
}
