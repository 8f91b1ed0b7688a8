package config

import (
	"bytes"
	"encoding/json"
	"net/url"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Redacted returns the configuration in the shape of the file, with all defaults and without
// secrets, to be marshalled as JSON.
func (c *Config) Redacted() any {
	providers := map[string]providerFields{}
	for name, p := range c.Providers {
		providers[name] = p.redacted()
	}
	projects := map[string]projectFields{}
	for id, p := range c.Projects {
		projects[id] = p.redacted()
	}
	admin := adminFields{c.Admin.Listen, tlsFields(c.Admin.TLS), c.Admin.Token, c.Admin.Audit}
	if admin.Listen == "" {
		admin.Listen = "off"
	}
	s := c.Server
	return fileFields{
		c.Listen, tlsFields(c.TLS), admin, c.RedactedState(), c.OnStoreLoss, c.Keys,
		providers, c.Defaults.redacted(), projects,
		serverFields{
			sizeText(s.MaxBody), sizeText(s.MaxBodies), sizeText(int64(s.MaxHeader)), short(s.HeaderTimeout), short(s.BodyTimeout),
			short(s.WriteTimeout), short(s.IdleTimeout), short(s.Drain), s.Hosts,
		},
		logFields(c.Log),
	}
}

type fileFields struct {
	Listen      string                    `json:"listen"`
	TLS         tlsFields                 `json:"tls,omitzero"`
	Admin       adminFields               `json:"admin"`
	State       string                    `json:"state"`
	OnStoreLoss string                    `json:"on_store_loss"`
	Keys        string                    `json:"keys"`
	Providers   map[string]providerFields `json:"providers"`
	Defaults    projectFields             `json:"defaults"`
	Projects    map[string]projectFields  `json:"projects"`
	Server      serverFields              `json:"server"`
	Log         logFields                 `json:"log"`
}

type tlsFields struct {
	Cert string `json:"cert"`
	Key  string `json:"key"` // the path of the file
}

type adminFields struct {
	Listen string    `json:"listen"`
	TLS    tlsFields `json:"tls,omitzero"`
	Token  Secret    `json:"token,omitzero"`
	Audit  string    `json:"audit,omitempty"`
}

type serverFields struct {
	MaxBody       string `json:"max_body"`
	MaxBodies     string `json:"max_bodies"`
	MaxHeader     string `json:"max_header"`
	HeaderTimeout string `json:"header_timeout"`
	BodyTimeout   string `json:"body_timeout"`
	WriteTimeout  string `json:"write_timeout"`
	IdleTimeout   string `json:"idle_timeout"`
	Drain         string `json:"drain"`

	Hosts []string `json:"hosts,omitempty"`
}

type logFields struct {
	Level  string `json:"level"`
	Sample int    `json:"sample"`
}

// RedactedState returns the State without parts that may hold a password.
func (c *Config) RedactedState() string {
	if !c.Redis() {
		return c.State
	}
	u, err := url.Parse(c.State)
	if err != nil {
		return "redis"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

type providerFields struct {
	Kind        llm.Provider                `json:"kind"`
	BaseURL     string                      `json:"base_url,omitempty"`
	Key         Secret                      `json:"key,omitzero"`
	Region      string                      `json:"region,omitempty"`
	AWS         *awsFields                  `json:"aws,omitempty"`
	Timeout     string                      `json:"timeout"`
	MaxPause    string                      `json:"max_pause"`
	Retries     int                         `json:"retries"`
	HTTP2       bool                        `json:"http2"`
	StreamUsage string                      `json:"stream_usage"`
	Margin      string                      `json:"margin"`
	Deployments map[string]deploymentFields `json:"deployments,omitempty"`
	Models      modelFields                 `json:"models,omitempty"`
	Unnamed     string                      `json:"unnamed_model,omitempty"`
}

type deploymentFields struct {
	BaseURL string     `json:"base_url"`
	Key     Secret     `json:"key,omitzero"`
	Region  string     `json:"region,omitempty"`
	AWS     *awsFields `json:"aws,omitempty"`
}

type awsFields struct {
	Profile string `json:"profile,omitempty"`
	RoleARN string `json:"role_arn,omitempty"`
}

func (p *Upstream) redacted() providerFields {
	f := providerFields{Kind: p.Kind, Timeout: short(p.Timeout), MaxPause: short(p.MaxPause), Retries: p.Retries, HTTP2: p.HTTP2, StreamUsage: p.StreamUsage, Margin: short(p.Margin), Models: p.Models, Unnamed: p.Unnamed}
	if itself := p.Deployments[""]; itself != nil {
		f.BaseURL, f.Key, f.Region, f.AWS = itself.BaseURL, itself.Key, itself.Region, (*awsFields)(itself.AWS)
		return f
	}
	f.Deployments = map[string]deploymentFields{}
	for name, d := range p.Deployments {
		f.Deployments[name] = deploymentFields{d.BaseURL, d.Key, d.Region, (*awsFields)(d.AWS)}
	}
	return f
}

// modelFields marshal as a mapping in the order of the models, since the first match counts.
type modelFields []Model

func (all modelFields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range all {
		b.WriteByte("{,"[min(i, 1)])
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		quota, err := json.Marshal(struct {
			ratelimit.ModelQuota
			Margin  string   `json:"margin,omitempty"`
			Aliases []string `json:"aliases,omitempty"`
		}{m.Quota, m.margin(), m.Aliases})
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(quota)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// margin returns the margin of a model's quota as text, or "" for a model without limits.
func (m *Model) margin() string {
	if m.Quota == (ratelimit.ModelQuota{}) {
		return ""
	}
	return short(m.Quota.Margin)
}

type projectFields struct {
	project.Limit
	MaxWait      string   `json:"max_wait"`
	UnknownUsage string   `json:"unknown_usage"`
	Models       []string `json:"models,omitempty"`
}

func (pr *Project) redacted() projectFields {
	return projectFields{pr.Limit, short(pr.MaxWait), pr.UnknownUsage, pr.Models}
}
