package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/llm"
)

// exchange is a request and its answer, on their straight line: route, identify, read,
// reserve, send, relay, settle.
type exchange struct {
	g       *Gateway
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
	has      kinds // of headers

	call      call.Call
	body      []byte
	holds     int64         // bytes of bodies that count as held
	tried     []*deployment // of several
	kept      *kept         // the answer to the attempt before, if there was one
	decision  ratelimit.Decision
	sent      bool      // the provider may have got the request
	throttled bool      // the provider's last answer says that it is too much
	shared    bool      // the account is the gateway's, and no client's own
	signed    bool      // the client has signed the request, which is sent as it is
	hides     *hider    // of the secrets with which it was sent; nil: none of the gateway's
	ids       [1]string // its id, as the value of a header
	deadline  time.Time // until when the client must take what is written to it
	Record
}

// ServeHTTP serves a client's request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.probe(w, r) {
		return
	}
	g.active.Add(1)
	s := g.setup.Load()
	x := &exchange{
		g: g, setup: s, cfg: s.cfg,
		w: w, r: r, ctx: r.Context(), control: http.NewResponseController(w),
		Record: Record{Time: time.Now(), Client: r.RemoteAddr, Method: shortened(r.Method), Path: shortened(r.URL.Path), Outcome: Failed},
	}
	x.ID = g.ids.next()
	x.ids[0] = x.ID
	defer x.end()
	x.extend()
	if r.ContentLength != 0 {
		x.control.SetReadDeadline(x.Time.Add(x.cfg.Server.BodyTimeout)) // also for a body that nobody wants
	}
	if no := x.serve(); no != nil {
		x.refuse(no)
	}
}

// end settles what is still open, and records what became of the request. Whoever
// panics has left it open.
func (x *exchange) end() {
	x.call.Unanswered(x.sent)
	x.release()
	x.Took = time.Since(x.Time)
	x.g.recent.add(&x.Record)
	x.g.access.write(&x.Record)
	x.g.metrics.observe(&x.Record)
	x.g.active.Add(-1)
}

// methods are those that are handed on. TRACE would tell the client the provider's key.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// serve answers the request, or returns why it is refused.
func (x *exchange) serve() *refusal {
	if x.g.serving.Err() != nil {
		return x.busy()
	}
	if !slices.Contains(methods, x.r.Method) {
		x.w.Header().Set("Allow", strings.Join(methods, ", "))
		return x.bad(http.StatusMethodNotAllowed, fmt.Sprintf("the method must be one of %s", strings.Join(methods, ", ")))
	}
	if holdsKey(x.r.URL.Path) {
		return x.bad(http.StatusBadRequest, "a virtual key stands in the path: it must be in a header, in the place of the provider's key")
	}
	no := x.route()
	if stranger := x.checkOrigin(); stranger != nil { // which learns nothing of the providers
		return stranger
	}
	if no != nil {
		return no
	}
	if websocket(x.r.Header) {
		return x.refuseWebSocket()
	}
	x.has = kindsOf(x.r.Header)
	if no := x.identify(); no != nil {
		return no
	}
	path := x.path()
	endpoint, ok := llm.Recognize(x.r.Method, path)
	if x.ambiguous(path, endpoint, ok) {
		return x.bad(http.StatusBadRequest, "the path is escaped where it need not be: it can be read in two ways")
	}
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
	for again := false; ; again = true {
		d := x.choose()
		if no := x.acquire(time.Until(until)); no != nil {
			return x.orKept(no)
		}
		if again {
			x.Retries++
		}
		rest, no := x.attempt(d)
		if no != nil {
			return x.orKept(no)
		}
		if rest == over {
			return nil
		}
		if !x.sleep(rest) {
			return x.leave()
		}
	}
}
