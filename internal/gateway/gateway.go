// Package gateway is a proxy in front of LLM providers. It finds the project of a request,
// reserves what the request may use, forwards it, meters the answer as it passes, and settles.
//
// Package server, and the command ratelimit serve, run a gateway with its listeners. A
// [Gateway] alone is an [http.Handler]:
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
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/gateway/fleet"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/gateway/otlp"
	"dappco.re/go/core/go-ratelimit/internal/gateway/sigv4"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Options configures a gateway beside its configuration file. The zero Options are ready to
// use.
type Options struct {
	Log         *slog.Logger // nil: nothing is logged
	Name        string       // of this gateway among those that share its store; empty: the address at which it listens
	Version     string       // of the program
	MaxRequests int          // that are in progress at a time: others get a 503; 0: any number
}

// Gateway serves the requests of clients: it limits them, and forwards them to their
// providers. Make one with New.
type Gateway struct {
	setup      atomic.Pointer[setup]
	reloading  sync.Mutex // guards transports and signers, and is locked while quotas and limits are declared
	transports map[transportKind]http.RoundTripper
	signers    map[sigv4.Account]*sigv4.Signer

	limits     call.Limits
	keys       *keys.Ring
	accessFile *rotatedFile   // nil: requests are in the log
	tokens     *keys.Ring     // of the admin API
	spans      *otlp.Exporter // nil: no collector gets spans
	controls   *control.Board
	policies   admit.Policies
	books      *ledger
	reads      *limit.Limiter[*exchange, string] // how often clients have the books read
	batches    *openBatches
	users      *namesInUse
	runs       *namesInUse
	prune      func()
	now        func() time.Time // the clock by which the days of vector stores are counted
	log        *slog.Logger

	ids        *idSource
	recent     *recent
	figures    *figures.Figures
	fleet      *fleet.Fleet // nil: nobody answers here
	name       string
	said       providersWord
	followers  followers
	access     *accessLog
	loss       *loss
	alerts     alerts
	metrics    *metrics
	closed     atomic.Bool
	active     atomic.Int64
	maxActive  int64           // 0: any number
	serving    context.Context // ends when the gateway drains
	drain      context.CancelFunc
	bodyBytes  atomic.Int64 // bytes of the bodies of requests in progress, which count towards max_bodies
	bodyMemory atomic.Int64 // bytes of large bodies that the garbage collector has not freed yet
	collecting sync.Mutex   // locked during a garbage collection that a body has started
	probed     struct {     // the last result of Ready
		sync.Mutex
		at  time.Time
		err error
	}
}

const (
	maxRecent    = 1024 // requests that are kept, of those that were admitted and of all others
	pruneEvery   = time.Minute
	readyTimeout = time.Second
)

// New returns a gateway with a configuration. It does not listen.
func New(cfg *config.Config, o Options) (*Gateway, error) {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	g := &Gateway{log: log, maxActive: int64(o.MaxRequests), transports: map[transportKind]http.RoundTripper{}, signers: map[sigv4.Account]*sigv4.Signer{}, now: time.Now, ids: newIDSource(), recent: newRecent(maxRecent), access: newAccessLog(log, cfg.Log.Sample)}
	if cfg.Log.Requests != "" {
		file, err := openRotated(cfg.Log.Requests, log)
		if err != nil {
			return nil, err
		}
		g.accessFile, g.access = file, newAccessLog(slog.New(slog.NewJSONHandler(file, nil)), cfg.Log.Sample)
	}
	g.serving, g.drain = context.WithCancel(context.Background())
	g.name = cmp.Or(o.Name, cfg.Listen)
	g.metrics = newMetrics(g.Active)
	g.figures = figures.New(g.named)
	g.users, g.runs = newNamesInUse(), newNamesInUse()
	g.reads = limit.NewLimiter(readerOf, limit.PerMinute(readsPerMinute))
	g.alerts.g, g.loss = g, newLoss(log, &g.followers)
	ready := g.newSetup(cfg)
	if err := g.openState(ready); err != nil {
		return nil, err
	}
	g.alerts.send(cfg.Thresholds.Webhook)
	g.setup.Store(ready)
	g.logMissedKeys()
	g.logExposedState(cfg)
	g.metrics.follow(g.limits.Models, g.limits.Projects, g.namedProjects)
	g.spans = newExporter(cfg, o.Name, o.Version, g.metrics, log)
	g.prune = g.limits.Models.BackgroundPrune(pruneEvery)
	g.books = newLedger(g)
	g.batches = newOpenBatches(g)
	return g, nil
}

// openState opens the state: the limiters of models and projects, and the keys.
func (g *Gateway) openState(s *setup) (err error) {
	if g.limits.Models, err = newModels(s, event.Observers{g.metrics.limiter, g.loss, pauses{g}, &g.alerts}); err != nil {
		return err
	}
	if err = g.openProjects(s); err != nil {
		return errors.Join(err, g.limits.Models.Close())
	}
	return nil
}

func (g *Gateway) openProjects(s *setup) (err error) {
	g.limits.Projects, err = g.limits.Models.NewProjects(project.Config{Default: &s.cfg.Defaults.Limit, Limits: s.limits()})
	if err != nil {
		return err
	}
	keeper := hidden.Of[settings.Keeper](g.limits.Models.Store())
	if g.keys, err = keys.Open(keeper, g.logVanishedKeys); err != nil {
		return errors.Join(err, g.limits.Projects.Close())
	}
	g.keys.FollowLimits(g.limits.Projects.SetKeyLimits)
	if g.tokens, err = keys.OpenTokens(keeper, g.logVanishedTokens); err != nil {
		g.keys.Close()
		return errors.Join(err, g.limits.Projects.Close())
	}
	if g.controls, err = control.Open(keeper); err == nil {
		err = g.declare(s, &setup{cfg: &config.Config{}})
	}
	if err != nil {
		g.keys.Close()
		g.tokens.Close()
		if g.controls != nil {
			g.controls.Close()
		}
		return errors.Join(err, g.limits.Projects.Close())
	}
	return nil
}

// Reload replaces the configuration. Counters stay, and requests in progress go on with the
// configuration that they began with. Listeners, TLS and the state cannot change. After an
// error, the old configuration stays.
func (g *Gateway) Reload(cfg *config.Config) (err error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	defer func() { g.reloaded(err) }()
	old := g.setup.Load()
	if err := changeable(old.cfg, cfg); err != nil {
		return err
	}
	ready := g.newSetup(cfg)
	if err := g.declare(ready, old); err != nil {
		return errors.Join(err, g.declare(old, ready))
	}
	g.access.resample(cfg.Log.Sample)
	g.alerts.send(cfg.Thresholds.Webhook)
	g.setup.Store(ready)
	g.metrics.labelProjects()
	g.logMissedKeys()
	return nil
}

// logMissedKeys logs errors of following the keys in the store.
func (g *Gateway) logMissedKeys() {
	if err := g.keys.Missed(); err != nil {
		g.log.Warn("some virtual keys of the state may be missing", "error", err)
	}
	if err := g.tokens.Missed(); err != nil {
		g.log.Warn("some tokens of the admin API in the state may be missing", "error", err)
	}
	if err := g.controls.Missed(); err != nil {
		g.log.Warn("some pauses of the state may be missing", "error", err)
	}
}

// logExposedState logs that others than its owner may write to the file of the state.
func (g *Gateway) logExposedState(cfg *config.Config) {
	if cfg.State == config.Memory || cfg.Redis() {
		return
	}
	if err := statefile.CheckMode(cfg.State); err != nil {
		g.log.Warn("others may change the state", "error", err)
	}
}

// logVanishedKeys logs that keys have vanished from the state, as when a Redis without
// persistence restarts.
func (g *Gateway) logVanishedKeys(n int) {
	g.log.Error("virtual keys have vanished from the state: clients that send them are refused", "keys", n)
}

// logVanishedTokens does the same of tokens of the admin API.
func (g *Gateway) logVanishedTokens(n int) {
	g.log.Error("tokens of the admin API have vanished from the state: requests with them are refused", "tokens", n)
}

// ReloadFailed counts a reload whose configuration could not be read.
func (g *Gateway) ReloadFailed(err error) { g.reloaded(err) }

// reloaded counts a reload of the configuration, or one that failed, and sends it to the followers.
func (g *Gateway) reloaded(err error) {
	g.metrics.reloaded(err)
	g.Publish(&Event{Kind: EventReload, Err: err})
}

// changeable returns an error if a field has changed that only a restart can change.
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
		{"log.requests", old.Log.Requests != new.Log.Requests},
		{"otlp", !reflect.DeepEqual(old.OTLP, new.OTLP)},
		{"on_store_loss", old.OnStoreLoss != new.OnStoreLoss},
	} {
		if c.changed {
			return fmt.Errorf("ratelimit: %s has changed, which needs a restart", c.what)
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

// Tokens returns the tokens of the admin API.
func (g *Gateway) Tokens() *keys.Ring { return g.tokens }

// Controls returns what an operator has switched at run time, such as pauses.
func (g *Gateway) Controls() *control.Board { return g.controls }

// JoinFleet makes the gateway one of those that share its store, and ask each other what they know. answer answers
// their questions.
func (g *Gateway) JoinFleet(answer func(question []byte) []byte) (joined *fleet.Fleet, err error) {
	g.fleet, err = fleet.Join(g.limits.Models.Store(), g.name, answer)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return g.fleet, err
}

// Metrics returns the gateway's metrics, for Prometheus.
func (g *Gateway) Metrics() prometheus.Gatherer { return g.metrics }

// Recent returns the first n of the last requests after a sequence number, oldest first. If
// project is not empty, it returns only the requests of the project and of those below it.
func (g *Gateway) Recent(project string, after uint64, n int) []Record {
	return g.RecentBy(Filter{Project: project}, after, n)
}

// RecentBy returns the first n of the last requests after a sequence number that match a filter,
// oldest first.
func (g *Gateway) RecentBy(f Filter, after uint64, n int) []Record {
	return g.recent.after(&f, after, n)
}

// Active returns how many requests are in progress.
func (g *Gateway) Active() int { return int(g.active.Load()) }

// Ready returns nil if the gateway can serve clients. The error says that it drains, or that
// its store does not answer.
func (g *Gateway) Ready() error {
	if g.serving.Err() != nil {
		return errors.New("ratelimit: the gateway is about to stop")
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	_, err := g.limits.Models.Store().Peek(ctx, readinessCheck)
	return err
}

// StoreLost returns why Redis, or a part of a cluster, does not answer, or nil. Clients may be
// served meanwhile, if on_store_loss of the configuration says so.
func (g *Gateway) StoreLost() error { return g.loss.lost() }

// readinessCheck is a charge that Ready peeks at, to find out whether the store answers.
var readinessCheck = []store.Charge{{Key: "gateway/ready", Limits: []limit.Limit{limit.PerMinute(1)}, N: 1}}

// Drain refuses new requests, and requests that wait, with 503 from now on.
func (g *Gateway) Drain() { g.drain() }

// Closed reports whether Close was called.
func (g *Gateway) Closed() bool { return g.closed.Load() }

// Close releases everything. Call it when no request is in progress any more.
func (g *Gateway) Close() error {
	g.closed.Store(true)
	g.fleet.Close()
	if g.spans != nil {
		g.spans.Close()
	}
	if g.accessFile != nil {
		g.accessFile.Close()
	}
	g.prune()
	g.batches.close()
	g.books.close()
	g.logMissedKeys()
	g.keys.Close()
	g.tokens.Close()
	g.controls.Close()
	for _, t := range g.transports {
		if idle, ok := t.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	}
	err := g.limits.Projects.Close()
	if g.Config().State != config.Memory { // memory has nothing to write
		err = errors.Join(err, g.persist())
	}
	err = errors.Join(err, g.limits.Models.Close()) // which sends the rest of the thresholds
	g.alerts.close()
	return err
}

// persist writes the state. The first call of Persist may return an error that has occurred at
// any time since the start and is over by now. So that error is only logged, and Persist is
// called again.
func (g *Gateway) persist() error {
	err := g.limits.Models.Persist()
	if err == nil {
		return nil
	}
	g.log.Warn("the state did not always answer", "error", err)
	return g.limits.Models.Persist()
}
