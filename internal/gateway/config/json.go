package config

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// MarshalJSON writes the configuration in the shape of the file, with all defaults and without
// secrets.
func (c *Config) MarshalJSON() ([]byte, error) {
	type fields Config
	shown := fields(*c)
	shown.State = c.RedactedState()
	if shown.Admin.Listen == "" {
		shown.Admin.Listen = "off"
	}
	var unpriced any = "deny"
	switch {
	case c.Unpriced == free:
		unpriced = "free"
	case c.Unpriced != nil:
		unpriced = c.Unpriced
	}
	return json.Marshal(struct {
		fields
		Prices   priceFields `json:"prices,omitempty"`
		Unpriced any         `json:"unpriced"`
	}{shown, c.Prices.Overrides(), unpriced})
}

// priceFields marshal as a mapping in the order of the file, since the first pattern that matches
// counts.
type priceFields []price.Override

func (all priceFields) MarshalJSON() ([]byte, error) {
	entries := make([]string, len(all))
	for i, o := range all {
		name, _ := json.Marshal(o.Model) // texts and numbers can always be written
		terms, _ := json.Marshal(o.Price)
		maxima, _ := json.Marshal(o.Maxima)
		switch {
		case o.Price == nil:
			terms = maxima
		case o.Maxima != llm.Maxima{}: // the price is no list
			terms = slices.Concat(terms[:len(terms)-1], []byte(","), maxima[1:])
		}
		entries[i] = string(name) + ":" + string(terms)
	}
	return []byte("{" + strings.Join(entries, ",") + "}"), nil
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

// MarshalJSON writes sizes and durations as the file has them.
func (s Server) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		MaxBody       string   `json:"max_body"`
		MaxBodies     string   `json:"max_bodies"`
		MaxHeader     string   `json:"max_header"`
		HeaderTimeout string   `json:"header_timeout"`
		BodyTimeout   string   `json:"body_timeout"`
		WriteTimeout  string   `json:"write_timeout"`
		ReadOn        string   `json:"read_on"`
		IdleTimeout   string   `json:"idle_timeout"`
		Drain         string   `json:"drain"`
		WhileWaiting  string   `json:"while_waiting"`
		RetryAfterMax string   `json:"retry_after_max"`
		Hosts         []string `json:"hosts,omitempty"`
	}{
		sizeText(s.MaxBody), sizeText(s.MaxBodies), sizeText(int64(s.MaxHeader)), short(s.HeaderTimeout), short(s.BodyTimeout),
		short(s.WriteTimeout), short(s.ReadOn), short(s.IdleTimeout), short(s.Drain), s.WhileWaiting, short(s.RetryAfterMax), s.Hosts,
	})
}

// MarshalJSON writes the fields of the only deployment among those of the provider, as the file
// may have them.
func (p *Upstream) MarshalJSON() ([]byte, error) {
	itself, deployments := p.Deployments[""], p.Deployments
	if itself != nil {
		deployments = nil
	}
	return json.Marshal(struct {
		Kind llm.Provider `json:"kind"`
		*Deployment
		Timeout     string                 `json:"timeout"`
		MaxPause    string                 `json:"max_pause"`
		Retries     int                    `json:"retries"`
		HTTP2       bool                   `json:"http2"`
		StreamUsage string                 `json:"stream_usage"`
		Margin      string                 `json:"margin"`
		Deployments map[string]*Deployment `json:"deployments,omitempty"`
		Models      modelFields            `json:"models,omitempty"`
		Unnamed     string                 `json:"unnamed_model,omitempty"`

		ClientLogin      bool `json:"client_login"`
		AllowCredentials bool `json:"allow_credentials"`
		AllowManagement  bool `json:"allow_management"`
		InferenceGateway bool `json:"inference_gateway"`

		UnknownEndpoints string         `json:"unknown_endpoints,omitempty"`
		EndpointPrices   endpointFields `json:"endpoint_prices,omitempty"`
	}{
		p.Kind, itself, short(p.Timeout), short(p.MaxPause), p.Retries, p.HTTP2, p.StreamUsage, short(p.Margin),
		deployments, p.Models, p.Unnamed, p.ClientLogin, p.AllowCredentials, p.AllowManagement, p.InferenceGateway, p.UnknownEndpoints, p.EndpointPrices,
	})
}

// endpointFields marshal as a mapping in the order of the file, since the first match counts.
type endpointFields []EndpointPrice

func (all endpointFields) MarshalJSON() ([]byte, error) {
	entries := make([]string, len(all))
	for i, e := range all {
		name, _ := json.Marshal(e.Endpoint) // a text can always be written
		entries[i] = string(name) + ":" + e.Price.Decimal()
	}
	return []byte("{" + strings.Join(entries, ",") + "}"), nil
}

// modelFields marshal as a mapping in the order of the models, since the first match counts.
type modelFields []Model

func (all modelFields) MarshalJSON() ([]byte, error) {
	entries := make([]string, len(all))
	for i, m := range all {
		margin := short(m.Quota.Margin)
		if m.Quota == (ratelimit.ModelQuota{}) {
			margin = "" // a model without limits has no windows
		}
		name, _ := json.Marshal(m.Name) // texts and numbers can always be written
		quota, _ := json.Marshal(struct {
			ratelimit.ModelQuota
			Margin  string   `json:"margin,omitempty"`
			Aliases []string `json:"aliases,omitempty"`
			Mode    string   `json:"mode,omitempty"`
		}{m.Quota, margin, m.Aliases, m.Mode})
		entries[i] = string(name) + ":" + string(quota)
	}
	return []byte("{" + strings.Join(entries, ",") + "}"), nil
}

// MarshalJSON writes the limits among the other fields.
func (pr *Project) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		project.Limit
		MaxWait      string   `json:"max_wait"`
		UnknownUsage string   `json:"unknown_usage"`
		FailedCalls  string   `json:"failed_calls"`
		Fit          bool     `json:"fit"`
		FitMin       int      `json:"fit_min"`
		Models       []string `json:"models,omitempty"`
		Mode         string   `json:"mode,omitempty"`
	}{pr.Limit, short(pr.MaxWait), pr.UnknownUsage, pr.FailedCalls, pr.Fit, pr.FitMin, pr.Models, pr.Mode})
}
