package gateway

import (
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/issuer"
	"dappco.re/go/core/go-ratelimit/internal/gateway/sigv4"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// setup is a configuration made ready for requests. A request keeps the setup that it began
// with.
type setup struct {
	cfg       *config.Config
	upstreams map[string]*upstream
	tree      *config.Tree
	issuer    *issuer.Issuer   // of tokens that clients may send in place of virtual keys; nil: there is none
	declared  map[string]quota // all quotas of the configuration, by their names
	prices    call.Prices
	modes     bool // something is in shadow
}

// upstream is a provider of a setup.
type upstream struct {
	*config.Upstream
	name        string
	deployments []*deployment // in the order of their names
	accounts    accounts
	cache       modelCache
	usage       quotaUsage
}

// deployment is one of several accounts or servers of a provider.
type deployment struct {
	name         string
	base         *url.URL
	key          string        // empty: clients send their own
	hider        *hider        // redacts key
	signer       *sigv4.Signer // nil: calls are not signed
	session      sessionHider  // redacts the token that signs calls
	transport    http.RoundTripper
	usageRefused expiringSet // hashes of streams that the deployment has refused because of the request for usage
	health
}

func (g *Gateway) newSetup(cfg *config.Config) *setup {
	s := &setup{cfg: cfg, upstreams: map[string]*upstream{}, tree: config.NewTree(cfg), issuer: g.issuerOf(cfg), prices: call.Prices{Table: cfg.Prices, Unpriced: cfg.Unpriced}}
	for name, p := range cfg.Providers {
		s.upstreams[name] = g.newUpstream(name, p, cfg.Server.ReadOn)
	}
	s.declared = s.quotas()
	s.modes = s.hasModes()
	return s
}

func (g *Gateway) newUpstream(name string, p *config.Upstream, linger time.Duration) *upstream {
	u := &upstream{Upstream: p, name: name}
	for _, name := range slices.Sorted(maps.Keys(p.Deployments)) {
		d := p.Deployments[name]
		base, _ := url.Parse(d.BaseURL) // the configuration is valid
		base.Path = strings.TrimRight(base.Path, "/")
		u.deployments = append(u.deployments, &deployment{name: name, base: base, key: d.Key.Reveal(), hider: newHider(d.Key.Reveal()), signer: g.signerOf(d), transport: g.transportTo(base, p, linger)})
	}
	return u
}

// quotaName returns the name of the quota that a call of a model at a deployment is charged
// to: PROVIDER/MODEL, with the pattern in place of the model if the model matches one. Models
// of the big providers that the configuration names have no PROVIDER, because other programs
// that share the state count them by their bare names.
func (u *upstream) quotaName(model, deployment string) string {
	m, known := u.Find(model)
	if known {
		model = m.Name
	} else {
		model = dialect.BaseName(u.Kind, model)
	}
	if !known || !bigProviders[u.name] || strings.Contains(model, "*") {
		model = u.name + "/" + model
	}
	if deployment != "" {
		model += "@" + deployment
	}
	return model
}

var bigProviders = map[string]bool{"openai": true, "anthropic": true, "gemini": true}

// transportKind is the options of a transport. Deployments with the same options share one.
type transportKind struct {
	timeout time.Duration
	linger  time.Duration
	netHTTP bool
}

// transportTo returns the transport of requests to a server: package wire's for HTTP/1.1, and
// net/http's for HTTP/2 or a proxy on the way. Transports and their connections outlive a
// configuration.
func (g *Gateway) transportTo(base *url.URL, p *config.Upstream, linger time.Duration) http.RoundTripper {
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: base})
	k := transportKind{p.Timeout, linger, p.HTTP2 || proxy != nil}
	if g.transports[k] == nil {
		g.transports[k] = newTransport(k)
	}
	return g.transports[k]
}

func newTransport(k transportKind) http.RoundTripper {
	if !k.netHTTP {
		return &wire.Transport{HeaderTimeout: k.timeout, Linger: k.linger}
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableCompression: true,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: k.timeout,
		MaxIdleConnsPerHost: 512, IdleConnTimeout: 90 * time.Second,
	}
}
