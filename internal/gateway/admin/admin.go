// Package admin is the gateway's admin API: JSON over HTTP, described by the OpenAPI
// document that it serves. docs/admin.md is the guide to it.
package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/fleet"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/settings"
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
	provider provider // of users' identities
	fleet    *fleet.Fleet
	asked    map[string]func(q url.Values) (any, error) // what gateways ask each other
	pages    http.Handler                               // nil: there are none
	changing sync.Mutex                                 // locked during a change

	uses       *keyUses
	expiry     expiry
	remotes    remotes
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
	a.uses = &keyUses{admin: a}
	a.lookout, a.live = newLookout(a), newLive(a)
	a.streaming, a.endStreams = context.WithCancel(context.Background())
	a.asked = a.questions()
	var err error
	if a.audit, err = openAudit(auditFile(g.Config()), a.log); err != nil {
		return nil, err
	}
	if a.fleet, err = g.JoinFleet(a.answer); err != nil {
		return nil, err
	}
	a.audit.journal = hidden.Of[settings.Journal](g.Models().Store())
	a.audit.shared = a.audit.journal != nil || storeOf(g.Config()) == "sqlite"
	if a.audit.journal != nil {
		a.audit.gateway = a.fleet.Name()
	}
	metrics := promhttp.HandlerFor(g.Metrics(), promhttp.HandlerOpts{})
	g.Controls().Watch(a.watchTerms)
	a.mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if p := a.permit(r, &route{role: keys.RoleMetrics, reach: forAll}); p != nil {
			p.send(w)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	for _, r := range a.routes() {
		a.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { a.serve(w, req, &r) })
	}
	return a, nil
}

// routes returns all routes but /metrics.
func (a *Admin) routes() []route {
	return []route{
		{"GET /healthz", http.StatusOK, "", forAll, a.health},
		{"GET /readyz", http.StatusOK, "", forAll, a.ready},
		{"GET /openapi.json", http.StatusOK, keys.RoleMetrics, checked, a.document},
		{"GET /session", http.StatusOK, "", forAll, a.session},
		{"POST /session", http.StatusOK, "", forAll, a.signIn},
		{"DELETE /session", http.StatusNoContent, "", forAll, a.signOut},
		{"GET /v1/state", http.StatusOK, keys.RoleViewer, forAll, a.state},
		{"GET /v1/config", http.StatusOK, keys.RoleViewer, forAll, a.config},
		{"POST /v1/reload", http.StatusOK, keys.RoleAdmin, forAll, a.reloadConfig},
		{"POST /v1/reset", http.StatusNoContent, keys.RoleAdmin, forAll, a.reset},
		{"GET /v1/quotas", http.StatusOK, keys.RoleViewer, forAll, a.quotas},
		{"GET /v1/quotas/{model...}", http.StatusOK, keys.RoleViewer, forAll, a.quota},
		{"PUT /v1/quotas/{model...}", http.StatusOK, keys.RoleOperator, forAll, a.setQuota},
		{"PATCH /v1/quotas/{model...}", http.StatusOK, keys.RoleOperator, forAll, a.changeQuota},
		{"GET /v1/projects", http.StatusOK, keys.RoleViewer, ofBelow, a.projects},
		{"GET /v1/projects/{project...}", http.StatusOK, keys.RoleViewer, ofPath, a.project},
		{"PUT /v1/projects/{project...}", http.StatusOK, keys.RoleOperator, ofPath, a.setLimit},
		{"PATCH /v1/projects/{project...}", http.StatusOK, keys.RoleOperator, ofPath, a.changeProject},
		{"DELETE /v1/projects/{project...}", http.StatusOK, keys.RoleOperator, ofPath, a.unsetLimit},
		{"GET /v1/gateway", http.StatusOK, keys.RoleViewer, forAll, a.gatewaySettings},
		{"PATCH /v1/gateway", http.StatusOK, keys.RoleAdmin, forAll, a.changeGateway},
		{"GET /v1/keys", http.StatusOK, keys.RoleViewer, checked, a.keys},
		{"POST /v1/keys", http.StatusCreated, keys.RoleOperator, checked, a.createKey},
		{"GET /v1/tokens", http.StatusOK, keys.RoleAdmin, forAll, a.tokens},
		{"POST /v1/tokens", http.StatusCreated, keys.RoleAdmin, forAll, a.createToken},
		{"POST /v1/tokens/{id}/rotate", http.StatusOK, keys.RoleAdmin, forAll, a.rotate(Token)},
		{"DELETE /v1/tokens/{id}", http.StatusNoContent, keys.RoleAdmin, forAll, a.revoke(Token)},
		{"PATCH /v1/keys/{id}", http.StatusOK, keys.RoleOperator, ofKey, a.changeKey},
		{"POST /v1/keys/{id}/rotate", http.StatusOK, keys.RoleOperator, ofKey, a.rotate(VirtualKey)},
		{"DELETE /v1/keys/{id}", http.StatusNoContent, keys.RoleOperator, ofKey, a.revoke(VirtualKey)},
		{"GET /v1/overview", http.StatusOK, keys.RoleViewer, forAll, a.overview},
		{"GET /v1/overview/live", http.StatusOK, keys.RoleViewer, forAll, a.overviewLive},
		{"GET /v1/overview/projects", http.StatusOK, keys.RoleViewer, ofBelow, a.overviewProjects},
		{"GET /v1/matrix", http.StatusOK, keys.RoleViewer, forAll, a.matrix},
		{"GET /v1/history", http.StatusOK, keys.RoleViewer, ofProject, a.history},
		{"GET /v1/usage", http.StatusOK, keys.RoleViewer, ofProject, a.usage},
		{"GET /v1/decisions", http.StatusOK, keys.RoleViewer, ofProject, a.decisions},
		{"GET /v1/decisions/{id}", http.StatusOK, keys.RoleViewer, checked, a.explain},
		{"POST /v1/decide", http.StatusOK, keys.RoleViewer, checked, a.decide},
		{"GET /v1/waiting", http.StatusOK, keys.RoleViewer, ofProject, a.waiting},
		{"GET /v1/events", http.StatusOK, keys.RoleViewer, ofProject, a.events},
		{"GET /v1/audit", http.StatusOK, keys.RoleViewer, forAll, a.auditLog},
	}
}

// route is a method, a path, and the function that answers requests to it.
type route struct {
	pattern string
	status  int       // the status of every answer that is no error
	role    keys.Role // that a caller needs; empty: everybody may
	reach   reach     // how a caller that is bound to a project may use it
	answer  func(r *http.Request) (any, error)
}

// serve answers a request to a route.
func (a *Admin) serve(w http.ResponseWriter, r *http.Request, to *route) {
	if p := a.permit(r, to); p != nil {
		p.send(w)
		return
	}
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
	if f, ok := answer.(csvFile); ok {
		f.send(w)
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
	if strings.HasPrefix(r.URL.Path, loginPath) {
		a.serveLogin(w, r)
		return
	}
	c, p := a.checkAccess(r)
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
	a.mux.ServeHTTP(w, withCaller(r, c))
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
		problemf(http.StatusNotFound, "there is nothing at %.80q: GET /openapi.json lists all paths", r.URL.Path).send(w)
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
	problemf(http.StatusInternalServerError, "internal error: see the log of the gateway").send(w)
}

// logPanic logs the kind of a panic, and not its text, which may have secrets.
func (a *Admin) logPanic(fault any) {
	a.log.Error("admin: the API has panicked", "panic", fmt.Sprintf("%T", fault), "stack", string(debug.Stack()))
}
