package gateway

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/gateway/sigv4"
	"dappco.re/go/core/go-ratelimit/internal/wire"
	"dappco.re/go/core/go-ratelimit/llm"
)

// setup is a configuration made ready. A request keeps the one that it began with.
type setup struct {
	cfg       *config.Config
	upstreams map[string]*upstream
	declared  map[string]quota // all quotas, by their names
}

// upstream is a provider made ready.
type upstream struct {
	*config.Provider
	name        string
	deployments []*deployment // in the order of their names
	accounts    accounts      // of clients
	found       found
}

// deployment is one account of a provider.
type deployment struct {
	name      string
	base      *url.URL
	key       string        // empty: the client's own
	hides     *hider        // of the secrets with which calls are sent
	signer    *sigv4.Signer // nil: calls are not signed
	session   sessionHider  // of the token with which calls are signed
	transport http.RoundTripper
	unaskable lately // streams that it has refused because they were asked for their usage
	health
}

func (g *Gateway) newSetup(cfg *config.Config) *setup {
	s := &setup{cfg: cfg, upstreams: map[string]*upstream{}}
	for name, p := range cfg.Providers {
		s.upstreams[name] = g.newUpstream(name, p)
	}
	s.declared = s.quotas()
	return s
}

func (g *Gateway) newUpstream(name string, p *config.Provider) *upstream {
	u := &upstream{Provider: p, name: name}
	for _, name := range slices.Sorted(maps.Keys(p.Deployments)) {
		d := p.Deployments[name]
		base, _ := url.Parse(d.BaseURL) // the configuration is valid
		base.Path = strings.TrimRight(base.Path, "/")
		u.deployments = append(u.deployments, &deployment{name: name, base: base, key: d.Key.Reveal(), hides: newHider(d.Key.Reveal()), signer: g.signerOf(d), transport: g.transportTo(base, p)})
	}
	return u
}

// quota returns the name of the quota that a model is charged to at a deployment: its
// own, or that of the pattern that it matches, behind the provider's. Models that have
// a quota at one of the big providers go by their bare names, under which other
// programs that share the state count them too.
func (u *upstream) quota(model, deployment string) string {
	m, known := u.Find(model)
	if known {
		model = m.Name
	} else {
		model = llm.BaseName(u.Kind, model)
	}
	if !known || !big[u.name] || strings.Contains(model, "*") {
		model = u.name + "/" + model
	}
	if deployment != "" {
		model += "@" + deployment
	}
	return model
}

var big = map[string]bool{"openai": true, "anthropic": true, "gemini": true}

// dialect returns the API in whose shape errors are told where a request is no call of
// a model.
func (u *upstream) dialect() llm.API {
	switch u.Kind {
	case llm.Anthropic:
		return llm.Messages
	case llm.Gemini, llm.Vertex:
		return llm.Generate
	case llm.Ollama:
		return llm.OllamaChat
	case llm.Cohere:
		return llm.CohereChat
	case llm.Bedrock:
		return llm.Converse
	}
	return llm.Chat
}

// way is what tells transports apart.
type way struct {
	timeout  time.Duration
	standard bool
}

// transportTo returns how to send requests to a server: over HTTP/1.1 on connections of
// our own, or, where it is to be HTTP/2 or a proxy stands between, with net/http.
// Transports outlive a configuration, and so do their connections.
func (g *Gateway) transportTo(base *url.URL, p *config.Provider) http.RoundTripper {
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: base})
	w := way{p.Timeout, p.HTTP2 || proxy != nil}
	if t := g.transports[w]; t != nil {
		return t
	}
	g.transports[w] = newTransport(w)
	return g.transports[w]
}

func newTransport(w way) http.RoundTripper {
	if !w.standard {
		return &wire.Transport{HeaderTimeout: w.timeout}
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout, t.DisableCompression = w.timeout, true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 512
	return t
}
