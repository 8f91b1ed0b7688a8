package gateway

import (
	"cmp"
	"context"
	"strconv"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
)

// timeoutFields are the headers in which SDKs say how many seconds they wait for an answer.
var timeoutFields = []string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout", "X-Server-Timeout"}

// maxWait returns how long a call may wait for its turn: as long as its project allows, and
// no longer than its client waits.
func (x *exchange) maxWait() time.Duration {
	return x.clientTimeout(x.rules.MaxWait)
}

// clientTimeout returns how long the client says that it waits for an answer, but no longer
// than timeout.
func (x *exchange) clientTimeout(timeout time.Duration) time.Duration {
	for _, field := range timeoutFields {
		value := x.r.Header[field]
		if value == nil {
			continue
		}
		if seconds, err := strconv.ParseFloat(value[0], 64); err == nil && seconds > 0 && seconds < timeout.Seconds() {
			timeout = time.Duration(seconds * float64(time.Second))
		}
	}
	return timeout
}

// acquire chooses a deployment, and reserves there what the call is estimated to use. If the
// call may wait, it waits for its turn.
func (x *exchange) acquire(wait time.Duration) *refusal {
	x.call.MaxWait = max(wait, 0)
	refused := x.decide(x.choose, func() { x.call.Unanswered(false) })
	x.sayFit()
	return refused
}

// decide asks the limits about the request, and returns why it is refused, or nil. A request that is
// paused while it waits, or whose virtual key ends, is refused at once, and one that was admitted at that
// moment gives back what it has taken: cancel does that. ask sets x.decision.
func (x *exchange) decide(ask func(context.Context) error, cancel func()) *refusal {
	if refused := x.checkPaused(); refused != nil {
		return refused
	}
	began := time.Now()
	if x.answers == nil {
		x.answers = newAnswers()
	}
	x.call.Asked, x.call.Tag = &x.answers.limits, x
	err := x.ask(ask)
	took := time.Since(began)
	if x.maxWait() > 0 { // otherwise the decision has taken that long, and the call has not waited
		x.Waited += took
	}
	x.answers.at = began.Add(took)
	allowed, stopped := err == nil && x.decision.Allowed, cmp.Or(x.checkKey(), x.checkPaused())
	if !allowed && stopped == nil && x.passesUncounted(err) {
		return nil
	}
	x.overlook()
	switch {
	case allowed && stopped == nil:
		x.useNames()
		return nil
	case allowed:
		cancel()
		return stopped
	case x.ctx.Err() != nil:
		return clientLeft()
	case stopped != nil:
		return stopped
	case x.g.serving.Err() != nil:
		return x.stopping()
	case x.decision.Code == ratelimit.DecisionStoreLost:
		return storeLost()
	case err == nil, call.Denied(x.ctx, err):
		return x.denied(err)
	}
	return x.undecided(err)
}

// ask asks the limits about the request. When it returns, nothing is being written to the client any more.
func (x *exchange) ask(limits func(context.Context) error) error {
	ctx := &waitContext{Context: x.ctx, x: x}
	defer ctx.end()
	return limits(ctx)
}

// sleep waits before the call is sent again. It returns false if the client leaves.
func (x *exchange) sleep(d time.Duration) bool {
	defer x.sendSigns()()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.ctx.Done():
		return false
	}
}
