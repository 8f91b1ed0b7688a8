package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/price"
)

// pass forwards a request that is no call of a model. It counts as one request of the
// project.
func (x *exchange) pass() *refusal {
	if namesIn(x.target.Path).is(1, "invoke-with-bidirectional-stream") {
		return refusalf(http.StatusBadRequest, "streams in both directions are not supported: the gateway could not count their tokens")
	}
	if (x.upstream.Kind == dialect.Gemini || x.upstream.Kind == dialect.Vertex) && wrapsCalls(x.target.Path) {
		return refusalf(http.StatusBadRequest, "batches of requests and remote procedure calls are not supported: the gateway could not see which models they call")
	}
	if owner, models := x.forbids(); models != nil && !callsNoModel(x.r.Method, x.target.Path) {
		return refusalf(http.StatusForbidden, "%s may only call %s: the gateway cannot tell which model this request is for", owner, strings.Join(models, ", "))
	}
	if refused := firstRefusal(x.checkCredentials, x.checkManagement, x.checkUnknown); refused != nil {
		return refused
	}
	if x.r.ContentLength > maxPassed {
		return passedTooLong()
	}
	d := x.upstream.deployments[0]
	x.Deployment = d.name
	// A client that says this instead of a proxy misleads itself alone.
	x.overTLS = x.r.TLS != nil || strings.EqualFold(x.r.Header.Get("X-Forwarded-Proto"), "https")
	read := x.batchAnswer()
	body := newUpload(x)
	defer body.end()
	x.firstAlone = true
	if refused := x.readMentioned(); refused != nil {
		return refused
	}
	sent, length, refused := x.passBody(d, body)
	if refused != nil {
		return refused
	}
	paid, refused := x.charge()
	if refused != nil {
		return refused
	}
	sent, uploaded := x.readUpload(sent)
	response, err := x.sendPassed(d, sent, length, read != nil)
	uploaded(response)
	x.settlePassed(paid, response)
	switch {
	case err != nil && body.timedOut():
		return refusalf(http.StatusRequestTimeout, "nothing of the body has come for %v", x.cfg.Server.BodyTimeout)
	case err != nil && body.exceeded():
		return passedTooLong()
	case err != nil:
		return x.unreached(err)
	}
	defer response.Body.Close()
	answer := io.Reader(response.Body)
	if read != nil {
		answer = read(response)
	}
	switch answer.(type) {
	case *resultsReader, *responseReader: // they settle something; nothing is left if the client has got everything
		defer call.ReadOn(answer, response.Body, readRestFor, maxPassed, nil)
	}
	x.forward(response, answer)
	return nil
}

// readRestFor is how long the gateway reads an answer that settles something after its client has left.
const readRestFor = 10 * time.Second

// sendPassed sends a request that is no call of a model. If the gateway reads the answer, the request goes on for
// readRestFor when the client leaves.
func (x *exchange) sendPassed(d *deployment, body io.ReadCloser, length int64, reads bool) (*http.Response, error) {
	client := x.ctx
	defer func() { x.ctx = client }()
	if reads {
		x.ctx = lingering(client, readRestFor)
	}
	return x.send(d, body, length)
}

// charge charges one request to the project. If the request may wait, it waits for its turn. A request
// that costs something is reserved for: paid is to be settled.
func (x *exchange) charge() (paid *call.Batch, refused *refusal) {
	x.setOwners()
	c := x.call.Call
	c.Dollars, c.MaxWait = x.passedPrice(), x.maxWait()
	if c.Dollars > 0 {
		paid = &call.Batch{Limits: &x.g.limits, Owner: x.owner()}
		paid.ExpectPriced(c.Dollars)
	}
	return paid, x.decide(func(ctx context.Context) (err error) {
		c.Asked, c.Tag = &x.answers.limits, x
		if paid != nil {
			x.decision, err = paid.Acquire(ctx, c)
			return err
		}
		d, err := x.g.limits.Projects.Spend(ctx, c)
		x.decision = ratelimit.Decision{Decision: d}
		return err
	}, func() {
		if paid != nil {
			paid.Cancel()
		}
	})
}

// settlePassed settles a request that may cost something: it costs nothing if it was not sent, or if the
// provider refuses it. response is nil if there is none.
func (x *exchange) settlePassed(paid *call.Batch, response *http.Response) {
	switch {
	case paid == nil:
	case !x.sent:
		paid.Cancel()
	case response == nil:
		paid.Unknown()
	default:
		paid.Failed(response.StatusCode)
	}
}

// passedPrice returns what a request costs that is no call of a model: its endpoint's price, if the configuration has
// one. Without that, a request that may cost something has the price of models without one, because nothing says what
// it costs: what costs something must not be free where dollars are limited.
func (x *exchange) passedPrice() price.Amount {
	unpriced := x.setup.prices.Unpriced
	each, priced := x.upstream.EndpointPrice(x.r.Method, x.target.Path)
	switch {
	case priced:
		return each
	case x.usesNoTokens(), x.upstream.UnknownEndpoints == config.UnknownPass:
		return 0
	case unpriced == nil:
		return price.Unknown
	}
	now := time.Now()
	each = unpriced.Most(0, 0, "", now)
	if each == 0 && unpriced.Most(1, 1, "", now) > 0 {
		return price.Unknown // it has a price for tokens, and none for requests
	}
	return each
}

// wrapsCalls reports whether a path is one on which all of Google's APIs take calls in another
// form: many HTTP requests in one body, gRPC, or gRPC for browsers.
func wrapsCalls(path string) bool {
	first, rest, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(path, "/")), "/")
	method := strings.HasPrefix(first, "google.") && rest != "" // google.ai.generativelanguage.v1.GenerativeService/GenerateContent
	return method || first == "$rpc" || first == "batch"
}
