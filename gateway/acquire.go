package gateway

import (
	"strconv"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
)

// Headers in which SDKs tell how many seconds they wait for an answer.
var timeouts = []string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout", "X-Server-Timeout"}

// patience returns how long a call may wait for its turn: as long as its project lets
// it, and no longer than its client waits.
func (x *exchange) patience() time.Duration { return x.clientWaits(x.rules.MaxWait) }

// clientWaits returns for how long the client waits for an answer, as far as it tells,
// but no longer than most.
func (x *exchange) clientWaits(most time.Duration) time.Duration {
	for _, field := range timeouts {
		value := x.r.Header[field]
		if value == nil {
			continue
		}
		if seconds, err := strconv.ParseFloat(value[0], 64); err == nil && seconds > 0 && seconds < most.Seconds() {
			most = time.Duration(seconds * float64(time.Second))
		}
	}
	return most
}

// acquire reserves what the call is thought to use, in its turn if it may wait for
// that.
func (x *exchange) acquire(wait time.Duration) *refusal {
	ask := x.call.Try
	if wait > 0 && x.rules.MaxWait > 0 {
		ask, x.call.MaxWait = x.call.Acquire, wait
	}
	began := time.Now()
	ctx := &inLine{Context: x.ctx, serving: x.g.serving}
	defer ctx.leave()
	var err error
	x.decision, err = ask(ctx)
	x.Waited += time.Since(began)
	switch {
	case err == nil && x.decision.Allowed:
		return nil
	case x.ctx.Err() != nil:
		return x.leave()
	case ctx.Err() != nil:
		return x.busy()
	case x.decision.Code == ratelimit.DecisionStoreLost:
		return x.lost()
	case err == nil, call.Denied(x.ctx, err):
		return x.denied(err)
	}
	return x.failed(err)
}

// sleep waits before a call is tried again. It reports whether the client does, too.
func (x *exchange) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.ctx.Done():
		return false
	}
}
