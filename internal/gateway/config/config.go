// Package config reads the gateway's configuration: one YAML file, of which every
// field has a default. See example.yaml.
package config

import (
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Config is a valid configuration, with all of its defaults filled in. It must not be changed.
// As JSON it has the shape of the file, and no secrets.
type Config struct {
	Listen      string               `json:"listen"`       // where clients connect
	TLS         TLS                  `json:"tls,omitzero"` // zero: clients connect without TLS
	Admin       Admin                `json:"admin"`
	State       string               `json:"state"`         // a path of a SQLite file, a redis:// or rediss:// URL, or [Memory]
	OnStoreLoss string               `json:"on_store_loss"` // "deny", "allow" or "share", while Redis does not answer
	Keys        string               `json:"keys"`          // [KeysOff] or [KeysRequired]
	JWT         *JWT                 `json:"jwt,omitempty"` // tokens that clients may send in place of virtual keys; nil: none
	Mode        string               `json:"mode"`          // [ModeEnforce] or [ModeShadow], of all limits
	Providers   map[string]*Upstream `json:"providers"`
	Defaults    *Project             `json:"defaults"` // the rules for projects below no other that Projects does not name
	Projects    map[string]*Project  `json:"projects"` // by their paths, and templates such as acme/*
	Users       Users                `json:"users,omitzero"`
	Runs        Runs                 `json:"runs,omitzero"`
	Books       Books                `json:"usage"`
	Thresholds  Thresholds           `json:"thresholds"`
	Prices      *price.Table         `json:"-"` // those of the file, and the embedded ones; see MarshalJSON
	Unpriced    *price.Price         `json:"-"` // what models without a price cost; nil: their calls are denied where dollars are limited
	Server      Server               `json:"server"`
	OTLP        *OTLP                `json:"otlp,omitempty"` // nil: no collector gets traces and metrics
	Log         Log                  `json:"log"`
	Included    []string             `json:"-"` // the files that the file includes, whose projects are among Projects
	Blank       bool                 `json:"-"` // the file exists and has no field
	Warnings    []string             `json:"-"` // about fields that are valid, but hardly meant so
}

// Memory is the State that is lost when the gateway stops.
const Memory = "memory"

// Config.Keys says whether clients need a virtual key.
const (
	KeysOff      = "off"      // the client's own key of the provider passes through, and X-Project-ID names its project
	KeysRequired = "required" // the client's virtual key identifies its project, and the gateway sends the provider's key instead
)

// Config.Mode, Project.Mode and Model.Mode say what limits do to calls.
const (
	ModeEnforce = "enforce" // they deny calls, or let them wait
	ModeShadow  = "shadow"  // they count calls, deny none, and say which they would have denied
)

// Server.WhileWaiting says what a client gets while its call waits.
const (
	WaitComments   = "comments"    // streams get comments, other calls nothing
	WaitEarlyHints = "early_hints" // streams get comments, other calls 103 Early Hints
	WaitNothing    = "nothing"
)

// TLS has the paths of a certificate and of its private key, in PEM.
type TLS struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Admin says where the admin API listens, and whom it serves.
type Admin struct {
	Listen string `json:"listen"` // empty: there is no admin API
	TLS    TLS    `json:"tls,omitzero"`
	Token  Secret `json:"token,omitzero"`  // required unless Listen is a loopback address
	OIDC   *OIDC  `json:"oidc,omitempty"`  // with which users sign in to the dashboard; nil: with tokens alone
	Audit  string `json:"audit,omitempty"` // the file to which changes are written; empty: a file beside the state, or the log alone
}

// Upstream is a service that has models. The first part of a request's path is its name.
type Upstream struct {
	Kind        llm.Provider           // whose API it has: headers, errors, and how a key is sent
	KindGuessed bool                   // the file does not name the kind, and neither does the name of a built-in provider
	Deployments map[string]*Deployment // at least one; "" is the name of the one that the provider itself describes
	Models      []Model                // in the order of the file: the first that matches counts
	Unnamed     string                 // the model that calls without a model are charged to; empty: the pattern "*", if there is one
	Retries     int                    // how often a failed call is sent again before the answer begins, where the provider allows it
	Timeout     time.Duration          // how long the gateway waits for an answer to begin
	MaxPause    time.Duration          // the longest pause of a model after the provider has throttled a call
	HTTP2       bool                   // use HTTP/2 where the server does
	StreamUsage string                 // [StreamUsageOn] or [StreamUsageOff]
	Margin      time.Duration          // the margin of quotas that have none of their own: see [ratelimit.ModelQuota]

	AllowCredentials bool // clients may create keys and tokens with which they can call the provider past the gateway
	ClientLogin      bool // clients bring a login of their own to the provider, and the gateway's key in X-Gateway-Key
	AllowManagement  bool // clients may load, change and delete the models of a server of one's own
	InferenceGateway bool // the provider is an inference gateway of Kubernetes, which gets the project of each call and its priority

	// UnknownEndpoints says what becomes of requests that the gateway forwards without reading them, and that may cost
	// something: [UnknownPass], [UnknownCount] or [UnknownDeny]. Empty is deny where what they use is limited in tokens
	// or in dollars, unless unpriced has a price for them, and pass everywhere else.
	UnknownEndpoints string
	EndpointPrices   []EndpointPrice // what such requests cost, in the order of the file: the first that matches counts
}

// What becomes of a request to an endpoint that the gateway does not read.
const (
	UnknownPass  = "pass"  // it passes and costs nothing
	UnknownCount = "count" // it passes and costs what unpriced says of a request
	UnknownDeny  = "deny"  // it gets a 403
)

// EndpointPrice is what each request to an endpoint costs.
type EndpointPrice struct {
	Endpoint string // a method and a path, such as "POST /v1/whatever", in which * stands for any characters
	Price    price.Amount
}

// EndpointPrice returns what a request costs by [Upstream.EndpointPrices], if they have it.
func (p *Upstream) EndpointPrice(method, path string) (each price.Amount, ok bool) {
	for _, e := range p.EndpointPrices {
		if match(e.Endpoint, method+" "+path) {
			return e.Price, true
		}
	}
	return 0, false
}

// Upstream.StreamUsage says whether the gateway asks streams of OpenAI's API to report their usage
// (stream_options).
const (
	StreamUsageOn  = "on"
	StreamUsageOff = "off" // for servers that refuse the field
)

// Deployment is one account or server that serves a provider's models.
type Deployment struct {
	BaseURL string `json:"base_url"`         // the scheme, the host, and the path before the provider's own
	Key     Secret `json:"key,omitzero"`     // empty: the client's own key passes through, unless calls are signed
	Region  string `json:"region,omitempty"` // the region of Bedrock; empty: calls are not signed
	AWS     *AWS   `json:"aws,omitempty"`    // nil: the credentials of the default chain
}

// Model is one model, or all models that match a pattern and share a quota.
type Model struct {
	Name      string // the name of a model, or a pattern in which * stands for any characters
	Quota     ratelimit.ModelQuota
	IsDefault bool     // the file does not name the model, and the provider has published the quota
	Aliases   []string // other names that clients may use for the model; a pattern has none
	Mode      string   // [ModeEnforce] or [ModeShadow]; empty: enforce
}

// Project is what a project may do.
type Project struct {
	Limit   project.Limit
	MaxWait time.Duration // how long a call may wait for its turn; 0: not at all
	Models  []string      // names or patterns of the models that the project may call; empty: all that those above it may

	UnknownUsage string // [UsageReserved] or [UsageSeen]
	FailedCalls  string // [FailedFree] or [FailedReserved]

	// Fit lowers max_tokens of a call to what is left of the limits that reserve the most of it, but not below
	// FitMin tokens for each answer.
	Fit    bool
	FitMin int

	// Mode is [ModeEnforce] or [ModeShadow], for the limits of the project, of all below it, and of
	// their keys and runs; empty: enforce.
	Mode string
}

// Project.FailedCalls says what a call costs that the provider has answered with an error of its own.
const (
	FailedFree     = "free"     // nothing, up to a number of calls in a minute
	FailedReserved = "reserved" // the dollars that were reserved
)

// Project.UnknownUsage says what a call is charged whose response did not report its usage.
const (
	UsageReserved = "reserved" // the tokens that were reserved for the call, or those that were seen in its answer if they are more
	UsageSeen     = "seen"     // the tokens that were seen in the answer; if none were, those that were reserved
)

// Books says for how long the gateway keeps what calls have used, by project, model and key.
type Books struct {
	Off   bool
	Hours time.Duration // for how long by the hour
	Days  time.Duration // for how long by the day
}

// Server bounds what clients may send, and how long they may take.
type Server struct {
	MaxBody       int64         // the most bytes of the body of one call, which the gateway reads before it sends the call
	MaxBodies     int64         // the most bytes of all bodies in memory at a time; a body is in memory until the answer begins
	MaxHeader     int           // the most bytes of the headers of a request
	HeaderTimeout time.Duration // how long the headers of a request may take to arrive
	BodyTimeout   time.Duration // how long the body of a call may take to arrive
	WriteTimeout  time.Duration // how long a client may take to read what was written to it
	ReadOn        time.Duration // how long the gateway reads the answer of a client that has left
	IdleTimeout   time.Duration // how long a connection stays open between two requests
	Drain         time.Duration // how long streams may take to finish when the gateway stops
	WhileWaiting  string        // what a client gets while its call waits: WaitComments, WaitEarlyHints or WaitNothing
	RetryAfterMax time.Duration // the longest wait that Retry-After asks a client for; of a longer one only the body says when it ends
	Hosts         []string      // names, with or without a port, by which clients reach a gateway with keys off; names that are never in the public DNS need not be here
}

// Log is the access log.
type Log struct {
	Level  string `json:"level"`  // "debug", "info", "warn", "error" or "off"
	Sample int    `json:"sample"` // one in this many requests that passed is logged; all others are

	Requests string `json:"requests,omitempty"` // the file to which requests are logged; empty: they are in the log
}
