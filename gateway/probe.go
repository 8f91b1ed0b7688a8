package gateway

import (
	"net/http"
	"sync"
	"time"
)

// Paths on which the client listener answers probes of load balancers, as the admin
// listener does: without a key, uncharged, and not in the access log.
const (
	pathHealth = "/healthz"
	pathReady  = "/readyz"
)

// probe answers a probe, if the request is one. It tells strangers no reason.
func (g *Gateway) probe(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != pathHealth && r.URL.Path != pathReady {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	status, body := http.StatusOK, `{"status":"ok"}`
	if r.URL.Path == pathReady && g.readiness() != nil {
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

// readiness returns why clients are not served, or nil. Whoever reaches the listener may
// ask, so the store is asked once a second at most.
func (g *Gateway) readiness() error {
	if g.serving.Err() != nil {
		return g.Ready()
	}
	g.probed.Lock()
	defer g.probed.Unlock()
	if now := time.Now(); now.Sub(g.probed.at) > readyWithin {
		g.probed.err = g.Ready()
		g.probed.at = now
	}
	return g.probed.err
}

// probed is the store's answer to the last health probe.
type probed struct {
	sync.Mutex
	at  time.Time
	err error
}
