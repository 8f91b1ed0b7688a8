package config

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/llm"
)

// builtIn are the providers that need no configuration.
var builtIn = map[string]struct {
	kind llm.Provider
	url  string
}{
	"openai":    {dialect.OpenAI, "https://api.openai.com"},
	"anthropic": {dialect.Anthropic, "https://api.anthropic.com"},
	"gemini":    {dialect.Gemini, "https://generativelanguage.googleapis.com"},
	"local":     {dialect.Ollama, "http://127.0.0.1:11434"},
}

const (
	// defaultMargin is twice the largest difference that was measured between the times that
	// calls take from their admission to their arrival at the provider, while gateways were
	// killed all the time.
	defaultMargin = 2 * time.Second

	maxTimeout = 24 * time.Hour
	maxRetries = 10
	maxAmount  = 1 << 53 // the largest quota or limit
	maxName    = 256     // the most bytes of a model's name; with provider and deployment, a quota's name may have twice as many
	maxModels  = 1000    // the most models of a provider
)

var providerName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// readProviders reads the providers that the file names; other built-in providers stay.
func (c *Config) readProviders(p yamlValue) {
	p.Entries(func(name string, key, value yamlValue) {
		if !providerName.MatchString(name) {
			key.Fault("%s: the name of a provider must have 1 to 64 of a to z, 0 to 9 and -", message.Quote(name))
			return
		}
		if name == "healthz" || name == "readyz" {
			key.Fault("%s: a provider cannot have this name: /%s is where the gateway answers probes", message.Quote(name), name)
			return
		}
		c.Providers[name] = readProvider(name, value)
	})
}

// newProvider returns a provider with its defaults and without models.
func newProvider(name string) *Upstream {
	own := builtIn[name]
	p := &Upstream{Kind: own.kind, Timeout: 10 * time.Minute, MaxPause: ratelimit.DefaultMaxPause, Margin: defaultMargin, StreamUsage: StreamUsageOn}
	if p.Kind == "" {
		p.Kind = dialect.Compatible
	}
	p.Deployments = map[string]*Deployment{"": {BaseURL: own.url}}
	return p
}

func readProvider(name string, at yamlValue) *Upstream {
	p := newProvider(name)
	itself := p.Deployments[""]
	var kind llm.Provider
	at.Fields(
		field("kind", strictyaml.OneOf(&kind, dialect.Providers()...)),
		field("base_url", baseURL(&itself.BaseURL)),
		field("key", secret(&itself.Key)),
		field("region", region(&itself.Region)),
		field("aws", account(&itself.AWS)),
		field("timeout", strictyaml.Duration(&p.Timeout, time.Millisecond, maxTimeout)),
		field("max_pause", strictyaml.Duration(&p.MaxPause, time.Millisecond, maxTimeout)),
		field("retries", strictyaml.Count(&p.Retries, 0, maxRetries)),
		field("http2", strictyaml.Flag(&p.HTTP2)),
		field("stream_usage", strictyaml.OneOf(&p.StreamUsage, StreamUsageOn, StreamUsageOff)),
		field("margin", strictyaml.Duration(&p.Margin, 0, ratelimit.MaxMargin)),
		field("deployments", func(at yamlValue) { p.Deployments = readDeployments(at, *itself) }),
		field("models", func(at yamlValue) {
			p.setKind(kind, name) // names of models are read as those of the kind
			p.readModels(at)
		}),
		field("client_login", strictyaml.Flag(&p.ClientLogin)),
		field("allow_credentials", strictyaml.Flag(&p.AllowCredentials)),
		field("allow_management", strictyaml.Flag(&p.AllowManagement)),
		field("inference_gateway", strictyaml.Flag(&p.InferenceGateway)),
		field("unknown_endpoints", strictyaml.OneOf(&p.UnknownEndpoints, UnknownPass, UnknownCount, UnknownDeny)),
		field("endpoint_prices", p.readEndpointPrices),
		field("unnamed_model", strictyaml.Any(&p.Unnamed, "one of the provider's models")),
	)
	p.setKind(kind, name)
	for _, deployment := range slices.Sorted(maps.Keys(p.Deployments)) {
		p.Deployments[deployment].completeAWS(p.Kind, deploymentAt(at, deployment))
		if p.Deployments[deployment].BaseURL == "" && !at.Faulty() {
			deploymentAt(at, deployment).Fault("it has no base_url: it must be the address of the provider, such as https://api.example.com")
		}
	}
	p.addDefaults(name)
	if _, known := p.Find(p.Unnamed); p.Unnamed != "" && !known && !at.Faulty() {
		at.At("unnamed_model").Fault("%s is none of the provider's models: it must be one of models", message.Quote(p.Unnamed))
	}
	return p
}

// setKind sets the kind that the file names. Without one, the host of the first deployment that has a known
// host decides, then the provider's name, if it is built in.
func (p *Upstream) setKind(named llm.Provider, name string) {
	var guess llm.Provider
	for _, deployment := range slices.Sorted(maps.Keys(p.Deployments)) {
		if u, err := url.Parse(p.Deployments[deployment].BaseURL); err == nil {
			guess = cmp.Or(guess, dialect.ProviderAt(u.Hostname()))
		}
	}
	p.Kind = cmp.Or(named, guess, p.Kind)
	p.KindGuessed = named == "" && p.Kind != builtIn[name].kind
}

// readDeployments reads deployments. A field that a deployment does not have is the provider's.
func readDeployments(at yamlValue, itself Deployment) map[string]*Deployment {
	all := map[string]*Deployment{}
	at.Entries(func(name string, key, value yamlValue) {
		if !providerName.MatchString(name) {
			key.Fault("%s: the name of a deployment must have 1 to 64 of a to z, 0 to 9 and -", message.Quote(name))
			return
		}
		d := itself
		value.Fields(
			field("base_url", baseURL(&d.BaseURL)),
			field("key", secret(&d.Key)),
			field("region", region(&d.Region)),
			field("aws", account(&d.AWS)),
		)
		all[name] = &d
	})
	if len(all) == 0 && !at.Faulty() {
		at.Fault("there are no deployments: there must be one at least, or the field left out")
	}
	return all
}

// deploymentAt returns the value of a deployment, given that of its provider.
func deploymentAt(provider yamlValue, name string) yamlValue {
	if name == "" {
		return provider
	}
	return provider.At("deployments", name)
}

// baseURL reads an address. Faults do not show it, since it may hold a password.
func baseURL(to *string) func(yamlValue) {
	const want = "http:// or https://, a host, and what comes before the provider's own path"
	return func(p yamlValue) {
		text, ok := p.Text(want)
		if !ok {
			return
		}
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || !validAddress(u):
			p.Fault("it is not an address: it must be %s", want)
		case u.User != nil:
			p.Fault("it has a user or a password: it must be %s; keys go into key", want)
		case strings.ContainsAny(text, "?#"):
			p.Fault("it has a query or a fragment: it must be %s", want)
		default:
			*to = strings.TrimRight(u.String(), "/")
		}
	}
}

func validAddress(u *url.URL) bool {
	_, err := strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16)
	return u.Hostname() != "" && err == nil
}

// addDefaults adds the quotas that a provider has published, for models that the provider does
// not have yet. Quotas differ from account to account, so each is a guess that the provider's
// headers replace.
func (p *Upstream) addDefaults(name string) {
	profile := ratelimit.DefaultProfiles()[ratelimit.Provider(name)]
	for _, model := range slices.Sorted(maps.Keys(profile.Models)) {
		if _, known := p.find(model); !known {
			q := p.WithMargin(profile.Models[model])
			q.Auto = profile.Models[model] != ratelimit.ModelQuota{}
			p.Models = append(p.Models, Model{Name: model, Quota: q, IsDefault: true})
		}
	}
}
