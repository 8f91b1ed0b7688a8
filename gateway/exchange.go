package gateway

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// exchange is a request and its answer, on their straight line: route, identify, read,
// reserve, send, relay, settle.
type exchange struct {
	*Gateway
	setup   *setup
	cfg     *config.Config
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context
	control *http.ResponseController

	upstream *upstream
	target   url.URL      // the provider's own path and query
	endpoint llm.Endpoint // in whose shape errors are told
	rules    *config.Project

	call     call.Call
	body     []byte
	decision project.Decision
	sent     bool      // the provider may have got the request
	shared   bool      // the account is the gateway's, and no client's own
	deadline time.Time // until when the client must take what is written to it
	Record
}

// ServeHTTP serves a client's request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.active.Add(1)
	s := g.setup.Load()
	x := &exchange{
		Gateway: g, setup: s, cfg: s.cfg,
		w: w, r: r, ctx: r.Context(), control: http.NewResponseController(w),
		Record: Record{Time: time.Now(), Method: r.Method, Path: shortened(r.URL.Path), Outcome: Broken},
	}
	defer x.end()
	x.extend()
	if no := x.serve(); no != nil {
		x.refuse(no)
	}
}

// end settles what is still open, and records what became of the request. Whoever
// panics has left it open.
func (x *exchange) end() {
	x.call.Unanswered(x.sent)
	x.Took = time.Since(x.Time)
	x.recent.add(&x.Record)
	x.access.write(&x.Record)
	x.metrics.observe(&x.Record)
	x.active.Add(-1)
}

// serve answers the request, or returns why it is refused.
func (x *exchange) serve() *refusal {
	if x.draining.Load() {
		return x.busy("the gateway is about to stop: try again")
	}
	if no := x.route(); no != nil {
		return no
	}
	if no := x.identify(); no != nil {
		return no
	}
	endpoint, ok := llm.Recognize(x.r.Method, &x.target)
	if !ok || x.r.ContentLength == 0 {
		return x.pass()
	}
	if endpoint.API != llm.Messages { // which is Anthropic's, whoever serves it
		endpoint.Provider = x.upstream.Kind
	}
	x.endpoint = endpoint
	if no := x.read(); no != nil {
		return no
	}
	return x.callModel()
}

// callModel sends a call of a model, and again where the provider says that it may be.
func (x *exchange) callModel() *refusal {
	until := x.Time.Add(x.patience())
	for {
		d := x.choose()
		if no := x.acquire(time.Until(until)); no != nil {
			return no
		}
		rest, no := x.attempt(d, time.Until(until))
		if rest == over {
			return no
		}
		if !x.sleep(rest) {
			return x.leave()
		}
		x.Retries++
	}
}
