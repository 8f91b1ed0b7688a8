package gateway

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
)

// Headers in which SDKs tell how many seconds they wait for an answer.
var timeouts = []string{"X-Stainless-Timeout", "X-Server-Timeout"}

// patience returns how long a call may wait for its turn: as long as its project lets
// it, and no longer than its client waits.
func (x *exchange) patience() time.Duration {
	most := x.rules.MaxWait
	for _, field := range timeouts {
		value := x.r.Header[field]
		if value == nil {
			continue
		}
		if seconds, err := strconv.ParseFloat(value[0], 64); err == nil && seconds > 0 {
			most = min(most, time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2)))
		}
	}
	return most
}

// choose returns the deployment that has most left of the model's quota, or, where none
// has enough, the one that has it soonest.
func (x *exchange) choose() *deployment {
	all := x.upstream.deployments
	best := all[0]
	if len(all) > 1 {
		best = x.roomiest(all)
	}
	x.Deployment = best.name
	x.Quota = x.upstream.quota(x.call.Asks.Model, best.name)
	x.call.Quota = x.Quota
	return best
}

func (x *exchange) roomiest(all []*deployment) (best *deployment) {
	var most ratelimit.Decision
	for _, d := range all {
		said := x.limits.Models.Decide(x.upstream.quota(x.call.Asks.Model, d.name), x.call.Asks.Prompt)
		if best == nil || roomier(&said, &most) {
			best, most = d, said
		}
	}
	return best
}

// roomier reports whether there is more room at a than at b.
func roomier(a, b *ratelimit.Decision) bool {
	if a.Allowed != b.Allowed {
		return a.Allowed
	}
	if !a.Allowed {
		return a.RetryAfter < b.RetryAfter
	}
	return room(&a.Stats) > room(&b.Stats)
}

// room returns which part of a model's quota is left, of whatever is scarcest.
func room(s *ratelimit.ModelStats) float64 {
	least := 1.0
	for _, of := range [...]struct{ used, most int }{
		{s.RPM, s.MaxRPM}, {s.TPM, s.MaxTPM}, {s.RPD, s.MaxRPD}, {s.TPD, s.MaxTPD},
		{s.InputTPM, s.MaxInputTPM}, {s.OutputTPM, s.MaxOutputTPM}, {s.Concurrent, s.MaxConcurrent},
	} {
		if of.most > 0 {
			least = min(least, 1-float64(of.used)/float64(of.most))
		}
	}
	return least
}

// acquire reserves what the call is thought to use, in its turn if it may wait for
// that.
func (x *exchange) acquire(wait time.Duration) *refusal {
	ask := x.call.Try
	if wait > 0 && x.rules.MaxWait > 0 {
		ask, x.call.MaxWait = x.call.Acquire, wait
	}
	began := time.Now()
	var err error
	x.decision, err = ask(x.ctx)
	x.Waited += time.Since(began)
	switch {
	case err == nil && x.decision.Allowed:
		return nil
	case x.ctx.Err() != nil:
		return x.leave()
	case x.decision.Model != nil && x.decision.Model.Code == ratelimit.DecisionStoreLost:
		return x.lost()
	case err == nil, call.Denied(x.ctx, err):
		return x.denied(err)
	case errors.Is(err, context.Canceled):
		return x.leave()
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
