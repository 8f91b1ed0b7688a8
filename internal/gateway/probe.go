package gateway

import (
	"net/http"
	"time"
)

// Paths on which the client listener answers probes of load balancers, as the admin listener
// does. Probes need no key, cost nothing, and are not in the access log.
const (
	pathHealth = "/healthz"
	pathReady  = "/readyz"
)

// probe answers a request that is a probe, and reports whether it was one. The answer has no
// reasons, because anybody may send a probe.
func (g *Gateway) probe(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != pathHealth && r.URL.Path != pathReady {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	status, body := http.StatusOK, `{"status":"ok"}`
	if r.URL.Path == pathReady && g.Readiness() != nil {
		status, body = http.StatusServiceUnavailable, `{"status":"not ready"}`
	}
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = []string{"application/json"}, []string{"no-store"}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.Config().Server.WriteTimeout))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write([]byte(body))
	}
	return true
}

// Readiness is Ready for probes that anybody may send: it asks the store at most once a second, and one
// caller does so for all.
func (g *Gateway) Readiness() error {
	if g.serving.Err() != nil {
		return g.Ready()
	}
	g.probed.Lock()
	defer g.probed.Unlock()
	if now := time.Now(); now.Sub(g.probed.at) > readyTimeout {
		g.probed.err = g.Ready()
		g.probed.at = now
	}
	return g.probed.err
}
