package gateway

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/gateway/otlp"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// exchange is one request and its answer: route, identify, read, reserve, send, relay,
// settle.
type exchange struct {
	g       *Gateway
	setup   *setup
	cfg     *config.Config
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context
	control *http.ResponseController

	upstream   *upstream
	target     url.URL           // the provider's own path and query
	endpoint   dialect.Endpoint  // gives refusals their form
	path       string            // the project and its user
	rules      *config.Project   // of the path: the last of levels
	keyModels  []string          // the models that the key may call; empty: all
	virtualKey keys.Sent         // zero where keys are off, and with a token of an issuer
	tokenUser  string            // the user that a token of the issuer names; empty: none
	tokenFault error             // why such a token is not taken; nil: there is none, or it is
	levels     []*config.Project // what the configuration says of the path and of all above it

	models         []string // that the request calls
	modelRoom      [1]string
	mentioned      []string // models that it names elsewhere, while one is paused: see mention
	pausedUser     string   // the path of a user that is named in the body and paused, or empty
	firstAlone     bool     // only the first deployment may serve it
	call           call.Call
	body           []byte
	file           *batchFile    // with the calls of a batch of Gemini's; nil: there is none, or nothing is known of it
	coding         string        // in which the body has come, and is to be decompressed; empty: none
	bodyBytes      int64         // see [Gateway]
	chosen         *deployment   // the deployment whose limits were asked last
	tried          []*deployment // the deployments that the call was sent to; empty if the provider has only one
	fallback       *fallback     // nil before the first attempt that is repeated
	decision       ratelimit.Decision
	answers        *answers       // nil before the limits are asked
	sent           bool           // the provider may have got the request
	throttled      bool           // the provider's last answer throttles the call
	gatewayAccount bool           // the account at the provider is the gateway's, and not the client's
	overTLS        bool           // the client has reached the gateway, or the proxy before it, by TLS; set for what is no call
	begun          bool           // the answer has begun while the call waited: see begin
	signed         bool           // the client has signed the request, so it is sent unchanged
	hider          *hider         // redacts the secrets that the request was sent with; nil: they are the client's
	deadline       time.Time      // the deadline of the next write to the client
	meter          *dialect.Meter // reads the answer of a call; nil before there is one
	ended          bool           // the client has got the whole stream, though the body may go on
	complete       bool           // the body of the answer has come to its end
	span           *otlp.Span     // of the request; nil: no collector gets it
	levelRoom      [project.MaxNames]*config.Project
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
		Record: Record{ID: g.ids.next(), Time: time.Now(), Client: r.RemoteAddr, Method: shortened(r.Method), Path: shortened(r.URL.Path), Outcome: Failed},
	}
	x.startSpan()
	defer x.end()
	x.extendWriteDeadline()
	if r.ContentLength != 0 {
		x.control.SetReadDeadline(x.Time.Add(x.cfg.Server.BodyTimeout)) // bounds the time of bodies that are not read, too
	}
	if refused := x.serve(); refused != nil {
		x.refuse(refused)
	}
}

// end settles the call if nothing has settled it, as after a panic, and records the
// request.
func (x *exchange) end() {
	x.call.Unanswered(x.sent)
	x.release()
	x.Took = time.Since(x.Time)
	x.g.recent.add(&x.Record, x.answers).free()
	x.g.followers.publishRecord(&x.Record)
	x.g.access.write(&x.Record)
	x.g.metrics.observe(&x.Record)
	x.endSpan()
	x.observeCall()
	x.count()
	if x.Outcome == Denied {
		x.g.books.denied(x.owner())
	}
	x.g.active.Add(-1)
	if x.r.ProtoMajor > 1 { // net/http writes the rest of the answer after this, as far as the client takes it
		x.control.SetWriteDeadline(time.Now().Add(x.cfg.Server.WriteTimeout))
	}
}

// methods are the methods that the gateway forwards. The answer to a TRACE would have the
// provider's key.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// serve answers the request, or returns why it is refused.
func (x *exchange) serve() *refusal {
	if x.g.serving.Err() != nil {
		return x.stopping()
	}
	if most := x.g.maxActive; most > 0 && x.g.active.Load() > most {
		return retryLater("too many requests are in progress: try again", Refused)
	}
	if !slices.Contains(methods, x.r.Method) {
		x.w.Header().Set("Allow", strings.Join(methods, ", "))
		return refusalf(http.StatusMethodNotAllowed, "the method must be one of %s", strings.Join(methods, ", "))
	}
	if holdsKey(x.r.URL.Path) {
		return refusalf(http.StatusBadRequest, "the path has a virtual key in it: the key must be in a header, in place of the provider's key")
	}
	if x.ownPath() {
		return x.serveOwn()
	}
	refused := x.route()
	if refused := cmp.Or(x.checkOrigin(), refused); refused != nil { // a page of another site must not learn the providers' names from route
		return refused
	}
	if websocket(x.r.Header) {
		return x.refuseWebSocket()
	}
	if refused := x.identify(); refused != nil {
		return refused
	}
	path := x.providerPath()
	endpoint, ok := dialect.RecognizeAt(x.upstream.Kind, x.r.Method, path)
	if x.ambiguous(path, endpoint, ok) {
		return refusalf(http.StatusBadRequest, "the path is escaped where it need not be: it can be read in two ways")
	}
	if refused := x.checkMethod(path); refused != nil {
		return refused
	}
	if submit := x.submitsBatch(); submit != nil && !ok {
		return submit()
	}
	if !ok || x.r.ContentLength == 0 {
		return x.pass()
	}
	passed := x.endpoint
	x.endpoint = endpoint
	refused = firstRefusal(x.read, x.callModel)
	if refused != notRead {
		return refused
	}
	x.endpoint, x.call = passed, call.Call{}
	return x.pass()
}

// callModel sends a call of a model, and sends it again as long as an attempt may be repeated.
func (x *exchange) callModel() *refusal {
	x.models = append(x.modelRoom[:0], x.call.Request.Model)
	if x.call.Request.Fallbacks {
		if err := x.mention(x.body); err != nil {
			return refusalf(http.StatusBadRequest, "the body: %s", message.Plain(err))
		}
	}
	until := x.Time.Add(x.maxWait())
	for again := false; ; again = true {
		if refused := x.acquire(time.Until(until)); refused != nil {
			return x.orFallback(refused)
		}
		if again {
			x.Retries++
		}
		delay, refused := x.attempt(x.chosen)
		if refused != nil {
			return x.orFallback(refused)
		}
		if delay == noRetry {
			return nil
		}
		if !x.sleep(delay) {
			return clientLeft()
		}
	}
}
