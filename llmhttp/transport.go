package llmhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// transport limits the calls of models that are sent through it.
type transport struct {
	base   http.RoundTripper
	limits call.Limits
	prices *call.Prices // nil: calls have no project, so that nothing limits dollars

	projectOf    func(*http.Request) string
	quotaOf      func(provider llm.Provider, model string) string // nil: each model has its own quota
	tokenizer    func(model, text string) int
	maxWait      time.Duration
	reject       bool
	leaveStreams bool
	chargeSeen   bool
	fitMin       int // to how few tokens an answer may be fitted; 0: calls are not fitted
}

// New returns a transport that keeps calls of models inside the limiter's quotas, and
// sends them with base. A nil base is [http.DefaultTransport]. New panics if the limiter is
// nil.
func New(base http.RoundTripper, limiter *ratelimit.RateLimiter, options ...Option) http.RoundTripper {
	if limiter == nil {
		panic("ratelimit: New needs a limiter: it is nil")
	}
	t := &transport{base: cmp.Or(base, http.DefaultTransport), limits: call.Limits{Models: limiter}, maxWait: defaultMaxWait}
	for _, option := range options {
		option(t)
	}
	if t.limits.Projects != nil && t.limits.Projects != limiter.Projects() {
		panic("ratelimit: Projects: they must be those of the limiter that New is given: see RateLimiter.NewProjects")
	}
	if t.limits.Projects != nil && t.prices == nil {
		t.prices = &call.Prices{Table: price.Known()}
	}
	return t
}

// CloseIdleConnections does what [http.Client.CloseIdleConnections] expects.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// RoundTrip sends a call of a model when its limits let it pass, and any other request at
// once.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	endpoint, ok := dialect.Recognize(req.Method, req.URL)
	if !ok || req.Body == nil || req.Body == http.NoBody {
		return t.base.RoundTrip(req)
	}
	text, err := readAll(req)
	if err != nil {
		return nil, err
	}
	if encoding := req.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, fmt.Errorf("ratelimit: the body has Content-Encoding %.20q: it is not sent, because the transport has to read it", encoding)
	}
	x := &exchange{Call: calls.Get().(*call.Call), transport: t, httpRequest: req, body: outgoing{text: text}}
	x.Limits, x.Prices, x.MaxWait, x.ChargeSeen = &t.limits, t.prices, t.maxWait, t.chargeSeen
	x.Request, err = endpoint.ReadAs(req.Header.Get("Content-Type"), text)
	if err != nil {
		return nil, err
	}
	x.Request.ReadTier(req.Header)
	if t.fitMin > 0 && !call.Signed(req.Header, req.URL.RawQuery) {
		x.Fit = call.Fit{Body: text, Min: t.fitMin}
	}
	return x.run()
}
