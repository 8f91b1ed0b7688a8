package main

import (
	"context"
	"net/http"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"github.com/go-chi/httprate"
	golimiterhttp "github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	ulule "github.com/ulule/limiter/v3"
	ululehttp "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
)

const (
	// headerProject is in the form in which net/http keeps it, so that nobody pays for finding that.
	headerProject = "X-Project-Id"

	nameBare       = "the bare handler"
	nameMiddleware = "httplimit, three windows"
	nameOneMinute  = "httplimit, one window"
	namePlain      = "httplimit.Limit"
	nameHTTPRate   = "httprate"
)

// wrapping is one way of limiting requests before a handler sees them.
type wrapping struct {
	name string
	kind kind
	wrap func(quota, http.Handler) wrapped
}

// wrapped is a handler behind its limiter.
type wrapped struct {
	http.Handler
	close func() // may be nil
}

// handler is what they all protect: it costs as little as a handler can.
var handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

// middlewares all tell the client what is left, as is their default. Ours has one window, as peers
// do, and three; without projects it is a plain limit.Limiter.
func middlewares() []wrapping {
	return []wrapping{
		{nameBare, floor, func(_ quota, next http.Handler) wrapped { return wrapped{Handler: next} }},
		{nameOneMinute, ours, func(q quota, next http.Handler) wrapped { return projectMiddleware(q.minute(), next) }},
		{nameMiddleware, ours, func(q quota, next http.Handler) wrapped { return projectMiddleware(q.windows(), next) }},
		{namePlain, ours, plainMiddleware},
		{nameHTTPRate, peer, httprateMiddleware},
		{"go-limiter", peer, goLimiterMiddleware},
		{"throttled", peer, throttledMiddleware},
		{"ulule/limiter", peer, ululeMiddleware},
	}
}

func projectOf(r *http.Request) string { return r.Header.Get(headerProject) }

func projectKey(r *http.Request) (string, error) { return projectOf(r), nil }

func projectMiddleware(limit *project.Limit, next http.Handler) wrapped {
	l := project.New(limit)
	return wrapped{httplimit.Middleware(l)(next), func() { _ = l.Close() }}
}

func plainMiddleware(q quota, next http.Handler) wrapped {
	l := limit.NewLimiter(projectOf, limit.New(q.count, q.period))
	return wrapped{Handler: httplimit.Limit(l)(next)}
}

func httprateMiddleware(q quota, next http.Handler) wrapped {
	return wrapped{Handler: httprate.LimitBy(int(q.count), q.period, projectKey)(next)}
}

func goLimiterMiddleware(q quota, next http.Handler) wrapped {
	s := must(memorystore.New(&memorystore.Config{Tokens: uint64(q.count), Interval: q.period}))
	m := must(golimiterhttp.NewMiddleware(s, projectKey))
	return wrapped{m.Handle(next), func() { _ = s.Close(context.Background()) }}
}

// varyByProject is throttled's key of a request.
type varyByProject struct{}

func (varyByProject) Key(r *http.Request) string { return projectOf(r) }

func throttledMiddleware(q quota, next http.Handler) wrapped {
	m := throttled.HTTPRateLimiterCtx{RateLimiter: newThrottled(q), VaryBy: varyByProject{}}
	return wrapped{Handler: m.RateLimit(next)}
}

func ululeMiddleware(q quota, next http.Handler) wrapped {
	l := ulule.New(ululememory.NewStore(), ulule.Rate{Period: q.period, Limit: q.count})
	return wrapped{Handler: ululehttp.NewMiddleware(l, ululehttp.WithKeyGetter(projectOf)).Handler(next)}
}
