// Package gateway is the proxy in front of LLM providers: it finds out whose a request
// is, reserves what it may use, sends it on, meters the answer as it passes, and
// settles.
//
// Package server runs one with its listeners, and so does the command ratelimit serve.
// On its own it is a [http.Handler]:
//
//	cfg, err := config.Load("ratelimit.yaml", config.Overrides{})
//	…
//	g, err := gateway.New(cfg, gateway.Options{})
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/gateway/keys"
	"dappco.re/go/core/go-ratelimit/gateway/sigv4"
	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Options is what a gateway is given beside its configuration. The zero Options are
// good ones.
type Options struct {
	Log *slog.Logger // the default is one that writes nothing
}

// Gateway is a handler of clients' requests: it limits them, and sends them on to
// their providers. Make one with New.
type Gateway struct {
	setup      atomic.Pointer[setup]
	reloading  sync.Mutex // guards transports, signers and what is declared
	transports map[way]http.RoundTripper
	signers    map[sigv4.Account]*sigv4.Signer

	limits   call.Limits
	keys     *keys.Ring
	policies admit.Policies
	prune    func()
	log      *slog.Logger

	ids        *numbering
	recent     *recent
	access     *accessLog
	loss       *loss
	metrics    *metrics
	active     atomic.Int64
	serving    context.Context // ends when it drains
	drain      context.CancelFunc
	held       atomic.Int64 // bytes of bodies
	bodies     atomic.Int64 // bytes of memory that large bodies have
	collecting sync.Mutex   // held while the garbage of bodies is collected
	probed     probed
}

const (
	remembered  = 1024 // requests
	pruneEvery  = time.Minute
	readyWithin = time.Second
)

// New returns a gateway as the configuration describes it. It listens nowhere.
func New(cfg *config.Config, o Options) (*Gateway, error) {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	g := &Gateway{log: log, transports: map[way]http.RoundTripper{}, signers: map[sigv4.Account]*sigv4.Signer{}, ids: newNumbering(), recent: newRecent(remembered), access: newAccessLog(log, cfg.Log.Sample), loss: newLoss(log)}
	g.serving, g.drain = context.WithCancel(context.Background())
	g.metrics = newMetrics(func() []string { return g.setup.Load().names() }, g.Active)
	ready := g.newSetup(cfg)
	if err := g.open(ready); err != nil {
		return nil, err
	}
	g.setup.Store(ready)
	g.tellMissed()
	g.metrics.follow(g.limits.Models, g.named)
	g.prune = g.limits.Models.BackgroundPrune(pruneEvery)
	return g, nil
}

// open opens the state.
func (g *Gateway) open(s *setup) (err error) {
	if g.limits.Models, err = newModels(s, ratelimit.Observers{g.metrics.observer(), g.loss, pauses{g}}); err != nil {
		return err
	}
	if err = g.openProjects(s); err != nil {
		return errors.Join(err, g.limits.Models.Close())
	}
	return nil
}

func (g *Gateway) openProjects(s *setup) (err error) {
	g.limits.Projects, err = g.limits.Models.NewProjects(project.Config{Default: &s.cfg.Defaults.Limit})
	if err != nil {
		return err
	}
	keeper, _ := g.limits.Models.Store().(settings.Keeper)
	if g.keys, err = keys.Open(keeper, g.tellGone); err != nil {
		return errors.Join(err, g.limits.Projects.Close())
	}
	if err = g.declare(s, nil); err != nil {
		g.keys.Close()
		return errors.Join(err, g.limits.Projects.Close())
	}
	return nil
}

// Reload goes on with another configuration. Every counter stays, and requests under
// way are not disturbed. If it fails, the old one stays. Listeners, TLS and State
// cannot change: an error says so.
func (g *Gateway) Reload(cfg *config.Config) (err error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	defer func() { g.metrics.reloaded(err) }()
	old := g.setup.Load()
	if err := changeable(old.cfg, cfg); err != nil {
		return err
	}
	ready := g.newSetup(cfg)
	if err := g.declare(ready, old); err != nil {
		return errors.Join(err, g.declare(old, ready))
	}
	g.access.resample(cfg.Log.Sample)
	g.setup.Store(ready)
	g.metrics.tellApart()
	g.tellMissed()
	return nil
}

// tellMissed logs what went wrong while others' changes of keys were followed.
func (g *Gateway) tellMissed() {
	if err := g.keys.Missed(); err != nil {
		g.log.Warn("some virtual keys of the state may be missing", "error", err)
	}
}

// tellGone logs that the state has lost keys, as a Redis does that keeps nothing on disk.
func (g *Gateway) tellGone(n int) {
	g.log.Error("virtual keys have vanished from the state: clients that send them are refused", "keys", n)
}

// ReloadFailed counts a reload whose configuration could not be read.
func (g *Gateway) ReloadFailed(err error) { g.metrics.reloaded(err) }

// changeable returns an error if a gateway cannot go on with another configuration.
func changeable(old, new *config.Config) error {
	for _, c := range []struct {
		what    string
		changed bool
	}{
		{"listen", old.Listen != new.Listen},
		{"tls", old.TLS != new.TLS},
		{"admin.listen", old.Admin.Listen != new.Admin.Listen},
		{"admin.tls", old.Admin.TLS != new.Admin.TLS},
		{"admin.audit", old.Admin.Audit != new.Admin.Audit},
		{"state", old.State != new.State},
		{"on_store_loss", old.OnStoreLoss != new.OnStoreLoss},
	} {
		if c.changed {
			return fmt.Errorf("ratelimit: %s has changed: that takes a restart", c.what)
		}
	}
	return nil
}

// Config returns the configuration.
func (g *Gateway) Config() *config.Config { return g.setup.Load().cfg }

// Models returns the limiter of the models' quotas.
func (g *Gateway) Models() *ratelimit.RateLimiter { return g.limits.Models }

// Projects returns the limiter of the projects.
func (g *Gateway) Projects() *project.Limiter { return g.limits.Projects }

// Keys returns the virtual keys.
func (g *Gateway) Keys() *keys.Ring { return g.keys }

// Metrics returns what the gateway counts, for Prometheus.
func (g *Gateway) Metrics() prometheus.Gatherer { return g.metrics.gatherer() }

// Recent returns the last requests, the latest last: at most n of those after a
// sequence number, and of one project unless that is empty.
func (g *Gateway) Recent(project string, after uint64, n int) []Record {
	return g.recent.after(project, after, n)
}

// Active returns how many requests are being served.
func (g *Gateway) Active() int { return int(g.active.Load()) }

// Ready returns why the gateway cannot serve clients: the store that counts cannot be
// asked, or it drains. It is nil if it can.
func (g *Gateway) Ready() error {
	if g.serving.Err() != nil {
		return errors.New("ratelimit: the gateway is about to stop")
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	_, err := g.limits.Models.Store().Peek(ctx, question)
	return err
}

// StoreLost returns why Redis, or a part of a cluster, cannot be asked at the moment, or
// nil. What happens to clients meanwhile is what the configuration says: it may be that
// they are served.
func (g *Gateway) StoreLost() error { return g.loss.lost() }

// question is what the store is asked to see whether it answers. It charges nothing.
var question = []store.Charge{{Key: "gateway/ready", Limits: []limit.Limit{limit.PerMinute(1)}, N: 1}}

// Drain refuses new requests from now on, and those that wait, with 503.
func (g *Gateway) Drain() { g.drain() }

// Close releases everything. Call it when no request is being served any more.
func (g *Gateway) Close() error {
	g.prune()
	g.tellMissed()
	g.keys.Close()
	for _, t := range g.transports {
		if idle, ok := t.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	}
	err := g.limits.Projects.Close()
	if g.Config().State != config.Memory { // which is to leave nothing behind
		err = errors.Join(err, g.persist())
	}
	return errors.Join(err, g.limits.Models.Close())
}

// persist writes what is not written yet. The first time it is told what has gone wrong
// since the start, of which nobody was told: that may be over long since.
func (g *Gateway) persist() error {
	err := g.limits.Models.Persist()
	if err == nil {
		return nil
	}
	g.log.Warn("the state could not always be asked", "error", err)
	return g.limits.Models.Persist()
}
