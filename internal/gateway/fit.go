package gateway

import (
	"strconv"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// fieldFit is the header that says to how many tokens of each answer the gateway has lowered the call's max_tokens.
const fieldFit = "X-Ratelimit-Fit"

// setFit marks a call that may be fitted. A request that its client has signed cannot be changed.
func (x *exchange) setFit() {
	if x.rules.Fit && !x.signed {
		x.call.Fit = call.Fit{Body: x.body, Min: x.rules.FitMin}
	}
}

// sayFit records whether the call was fitted, and says so in a header.
func (x *exchange) sayFit() {
	if x.call.Fit.Min == 0 {
		return
	}
	delete(x.w.Header(), fieldFit) // of an earlier attempt
	x.Fit = x.call.Fitted()
	if x.Fit > 0 {
		x.w.Header()[fieldFit] = []string{strconv.Itoa(x.Fit)}
	}
}

// sentBody returns the body that is sent to the provider: that of the client, or as it was fitted.
func (x *exchange) sentBody() wire.Pieces {
	if pieces, ok := x.call.Request.Edited(x.body); ok {
		return pieces
	}
	return wire.Pieces{x.body}
}
