// Package admin is the gateway's admin API: JSON over HTTP, described by the OpenAPI
// document that it serves. docs/admin.md is the guide to it.
package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// Options configures the API.
type Options struct {
	Reload  func(dryRun bool) ([]gateway.Changed, error) // reads the configuration again, and returns which limits change; nil: the gateway has no file
	Version string
	Log     *slog.Logger // nil: nothing is logged
	Pages   http.Handler // serves / and /assets/, to everyone: they contain no data; nil: there are no pages
}

// Admin is the handler of a gateway's admin API. Make one with New.
type Admin struct {
	gateway  *gateway.Gateway
	reload   func(dryRun bool) ([]gateway.Changed, error)
	version  string
	log      *slog.Logger
	started  time.Time
	mux      *http.ServeMux
	origins  *http.CrossOriginProtection
	audit    *audit
	sessions *sessions
	pages    http.Handler // nil: there are none
	changing sync.Mutex   // locked during a change

	lookout    *lookout
	live       *live
	streaming  context.Context // ends when the server stops
	endStreams context.CancelFunc
	streams    atomic.Int64 // that are open
	maxStreams int64
}

// New returns the handler of a gateway's admin API. The gateway's configuration has the
// token and the path of the audit log.
func New(g *gateway.Gateway, o Options) (*Admin, error) {
	a := &Admin{
		gateway: g,
		reload:  o.Reload,
		version: o.Version,
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		started: time.Now(),
		mux:     http.NewServeMux(),
		origins: http.NewCrossOriginProtection(),

		sessions: newSessions(g.Controls()),
		pages:    o.Pages,

		maxStreams: maxStreams,
	}
	a.lookout, a.live = newLookout(a), newLive(a)
	a.streaming, a.endStreams = context.WithCancel(context.Background())
	var err error
	if a.audit, err = openAudit(auditFile(g.Config()), a.log); err != nil {
		return nil, err
	}
	a.mux.Handle("GET /metrics", promhttp.HandlerFor(g.Metrics(), promhttp.HandlerOpts{}))
	for _, r := range a.routes() {
		a.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { a.serve(w, req, &r) })
	}
	return a, nil
}

// routes returns all routes but /metrics.
func (a *Admin) routes() []route {
	return []route{
		{"GET /healthz", http.StatusOK, a.health},
		{"GET /readyz", http.StatusOK, a.ready},
		{"GET /openapi.json", http.StatusOK, a.document},
		{"GET /session", http.StatusOK, a.session},
		{"POST /session", http.StatusOK, a.signIn},
		{"DELETE /session", http.StatusNoContent, a.signOut},
		{"GET /v1/state", http.StatusOK, a.state},
		{"GET /v1/config", http.StatusOK, a.config},
		{"POST /v1/reload", http.StatusOK, a.reloadConfig},
		{"POST /v1/reset", http.StatusNoContent, a.reset},
		{"GET /v1/quotas", http.StatusOK, a.quotas},
		{"GET /v1/quotas/{model...}", http.StatusOK, a.quota},
		{"PUT /v1/quotas/{model...}", http.StatusOK, a.setQuota},
		{"PATCH /v1/quotas/{model...}", http.StatusOK, a.changeQuota},
		{"GET /v1/projects", http.StatusOK, a.projects},
		{"GET /v1/projects/{project...}", http.StatusOK, a.project},
		{"PUT /v1/projects/{project...}", http.StatusOK, a.setLimit},
		{"PATCH /v1/projects/{project...}", http.StatusOK, a.changeProject},
		{"DELETE /v1/projects/{project...}", http.StatusOK, a.unsetLimit},
		{"GET /v1/gateway", http.StatusOK, a.gatewaySettings},
		{"PATCH /v1/gateway", http.StatusOK, a.changeGateway},
		{"GET /v1/keys", http.StatusOK, a.keys},
		{"POST /v1/keys", http.StatusCreated, a.createKey},
		{"PATCH /v1/keys/{id}", http.StatusOK, a.changeKey},
		{"POST /v1/keys/{id}/rotate", http.StatusOK, a.rotateKey},
		{"DELETE /v1/keys/{id}", http.StatusNoContent, a.revokeKey},
		{"GET /v1/overview", http.StatusOK, a.overview},
		{"GET /v1/overview/live", http.StatusOK, a.overviewLive},
		{"GET /v1/overview/projects", http.StatusOK, a.overviewProjects},
		{"GET /v1/matrix", http.StatusOK, a.matrix},
		{"GET /v1/history", http.StatusOK, a.history},
		{"GET /v1/usage", http.StatusOK, a.usage},
		{"GET /v1/decisions", http.StatusOK, a.decisions},
		{"GET /v1/decisions/{id}", http.StatusOK, a.explain},
		{"POST /v1/decide", http.StatusOK, a.decide},
		{"GET /v1/waiting", http.StatusOK, a.waiting},
		{"GET /v1/events", http.StatusOK, a.events},
		{"GET /v1/audit", http.StatusOK, a.auditLog},
	}
}

// route is a method, a path, and the function that answers requests to it.
type route struct {
	pattern string
	status  int // the status of every answer that is no error
	answer  func(r *http.Request) (any, error)
}

// serve answers a request to a route.
func (a *Admin) serve(w http.ResponseWriter, r *http.Request, to *route) {
	answer, err := to.answer(r)
	if err != nil {
		problemOf(err).send(w)
		return
	}
	if s, ok := answer.(stream); ok {
		leave, err := a.openStream()
		if err != nil {
			problemOf(err).send(w)
			return
		}
		defer leave()
		a.serveStream(w, r, s)
		return
	}
	if with, ok := answer.(withCookie); ok {
		http.SetCookie(w, with.cookie)
		answer = with.answer
	}
	sendJSON(w, to.status, answer)
}

// ServeHTTP serves a request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer a.isolate(w)
	if a.pages != nil && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/assets/")) {
		a.pages.ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	p := a.checkAccess(r)
	slowed := a.slowGuesses(r, p == nil)
	if p != nil && publicPaths[r.URL.Path] {
		p = nil
	}
	if p := cmp.Or(slowed, p); p != nil {
		if p.Status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Bearer realm="ratelimit"`)
		}
		p.send(w)
		return
	}
	if !a.serves(r, r.Method) {
		a.refuseRoute(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// serves reports whether there is a route for a method and the path of a request.
func (a *Admin) serves(r *http.Request, method string) bool {
	_, pattern := a.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
	return pattern != ""
}

// refuseRoute answers a request that matches no route: its path or its method is wrong.
func (a *Admin) refuseRoute(w http.ResponseWriter, r *http.Request) {
	methods := []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut}
	allowed := slices.DeleteFunc(methods, func(method string) bool { return !a.serves(r, method) })
	if len(allowed) == 0 {
		problemf(http.StatusNotFound, "there is nothing at %.80q: GET /openapi.json says what there is", r.URL.Path).send(w)
		return
	}
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	problemf(http.StatusMethodNotAllowed, "the method is %.20q: it must be one of %s", r.Method, list).send(w)
}

// isolate recovers from a panic, so that it ends only its own request.
func (a *Admin) isolate(w http.ResponseWriter) {
	fault := recover()
	if fault == nil {
		return
	}
	if fault == http.ErrAbortHandler {
		panic(fault)
	}
	a.logPanic(fault)
	problemf(http.StatusInternalServerError, "the gateway has made a mistake: its log says which").send(w)
}

// logPanic logs the kind of a panic, and not its text, which may have secrets.
func (a *Admin) logPanic(fault any) {
	a.log.Error("admin: the API has panicked", "panic", fmt.Sprintf("%T", fault), "stack", string(debug.Stack()))
}
