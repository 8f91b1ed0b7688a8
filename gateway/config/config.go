// Package config reads the gateway's configuration: one YAML file, of which every
// field has a default. See example.yaml.
package config

import (
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Config is a configuration with all of its defaults filled in, that is valid.
// Whoever has one must not change it.
type Config struct {
	Listen      string // where clients connect
	TLS         TLS    // of clients; zero: none
	Admin       Admin
	State       string // a path of a SQLite file, a redis:// or rediss:// URL, or [Memory]
	OnStoreLoss string // "deny", "allow" or "share", while Redis does not answer
	Keys        string // [KeysOff] or [KeysRequired]
	Providers   map[string]*Provider
	Projects    map[string]*Project
	Defaults    *Project // of projects that are not among them
	Server      Server
	Log         Log
	Blank       bool     // there is a file, and it says nothing
	Warnings    []string // what is valid, but hardly meant
}

// Memory is the State that is lost when the gateway stops.
const Memory = "memory"

// Whether clients need a virtual key.
const (
	KeysOff      = "off"      // a client's own key of the provider passes through, its project is in X-Project-ID
	KeysRequired = "required" // its virtual key tells its project, and the provider's key is put in
)

// TLS is the files of a certificate and its key, in PEM.
type TLS struct{ Cert, Key string }

// Admin is the listener of the admin API.
type Admin struct {
	Listen string // empty: there is none
	TLS    TLS
	Token  Secret // required unless Listen is a loopback address
	Audit  string // the file to which changes are written; empty: beside the state, or else only to the log
}

// Provider is who serves models, under its name as the first part of the path.
type Provider struct {
	Kind        llm.Provider           // whose headers, errors and way to send a key it has
	Deployments map[string]*Deployment // at least one; "" is the name of the one that the provider itself describes
	Models      []Model                // in the order of the file: the first that matches counts
	Unnamed     string                 // the model to which calls that name none are charged; empty: the pattern "*", if there is one
	Retries     int                    // how often a call is tried again before the first byte, where the provider says that it may be
	Timeout     time.Duration          // until the response begins
	MaxPause    time.Duration          // of a model, after the provider has refused a call
	HTTP2       bool                   // talk HTTP/2 where the server does
	StreamUsage string                 // [StreamUsageOn] or [StreamUsageOff]
	Margin      time.Duration          // by how much windows of quotas are longer that do not say so themselves: see [ratelimit.ModelQuota]
}

// Whether streams of OpenAI's API are asked to tell their usage (stream_options).
const (
	StreamUsageOn  = "on"
	StreamUsageOff = "off" // for servers that refuse the field
)

// Deployment is one account or server that serves a provider's models.
type Deployment struct {
	BaseURL string // scheme and host, and what stands before the provider's own path
	Key     Secret // empty: the client's own passes through, unless the calls are signed
	Region  string // of Bedrock; empty: calls are not signed
	AWS     *AWS   // nil: credentials of the default chain
}

// Model is a model, or those that match a pattern and share a quota.
type Model struct {
	Name    string // or a pattern, in which * stands for any characters
	Quota   ratelimit.ModelQuota
	Usual   bool     // the file does not name it: it is a quota that the provider has published
	Aliases []string // other names that clients may use for it; a pattern has none
}

// Project is what a project may do.
type Project struct {
	Limit   project.Limit
	MaxWait time.Duration // how long a call may wait for its turn; 0: not at all
	Models  []string      // names or patterns of models that it may call; empty: all

	UnknownUsage string // [UsageReserved] or [UsageSeen]
}

// What a call is charged that was sent, and whose response has not told its usage.
const (
	UsageReserved = "reserved" // what was reserved for it, or what was seen if that is more
	UsageSeen     = "seen"     // what was seen; where nothing was, what was reserved
)

// Server is what keeps clients in bounds.
type Server struct {
	MaxBody       int64         // bytes of the body of a call of a model, which is read before it is sent
	MaxBodies     int64         // bytes of all of these that are held at a time: while they wait, and until their answers begin
	MaxHeader     int           // bytes of the headers of a request
	HeaderTimeout time.Duration // in which the headers must come
	BodyTimeout   time.Duration // in which the body of a call must come
	WriteTimeout  time.Duration // in which a client must take what was written to it
	IdleTimeout   time.Duration // of connections between requests
	Drain         time.Duration // that streams get to finish when the gateway stops
	Hosts         []string      // names, with or without a port, by which clients reach a gateway with keys off; see [Config.ServesHost]
}

// Log is the access log.
type Log struct {
	Level  string // "debug", "info", "warn", "error" or "off"
	Sample int    // one of how many requests that passed is logged; those that did not all are
}
