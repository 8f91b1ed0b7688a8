package config

import (
	"maps"
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/loopback"
)

// minToken is how many bytes a token needs so that nobody can guess it.
const minToken = 16

// check finds fields that are valid by themselves, but contradict each other.
func (c *Config) check(r *reader) {
	if c.State == "" {
		r.at("state").Fault("there is no home directory for the default: it must be set")
	}
	if c.OnStoreLoss != "deny" && !c.Redis() {
		r.at("on_store_loss").Fault("%s is for a state in Redis: it must be deny, or left out", c.OnStoreLoss)
	}
	if collide(c.Admin.Listen, c.Listen) {
		r.at("admin", "listen").Fault("clients connect at %s: it must be another port, or off", c.Listen)
	}
	if c.Admin.Listen != "" && !loopback.Is(c.Admin.Listen) && c.Admin.Token == (Secret{}) {
		r.at("admin", "listen").Fault("other machines can reach %s: admin.token must be set, or it must be a loopback address", c.Admin.Listen)
	}
	if c.Server.MaxBodies < c.Server.MaxBody {
		r.at("server", "max_bodies").Fault("one body may have %s: it must be at least that", sizeText(c.Server.MaxBody))
	}
	if token := c.Admin.Token.Reveal(); token != "" && len(token) < minToken {
		r.at("admin", "token").Warn("it could be guessed: it should have %d characters or more", minToken)
	}
	if c.Keys == KeysRequired && c.Admin.Listen == "" {
		r.at("admin", "listen").Warn("keys are made through the admin API: it should be on, here or at another gateway that shares the state")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		c.checkQuotas(r, name)
		c.checkPrices(r, name)
		c.checkLogins(r, name)
		c.checkKeys(r, name)
	}
	c.checkIssuers(r)
	c.checkAllowed(r)
	if len(c.Providers) == 0 {
		r.at("providers").Warn("no provider is served: with keys %s, providers must list each of them, with its key", KeysRequired)
	}
}

// checkKeys finds deployments that clients would call without a key, and those that strangers
// could call with the operator's key. With keys required, a built-in provider that the file does
// not name is not served, whatever its kind: nobody has decided that clients may reach it.
func (c *Config) checkKeys(r *reader, name string) {
	at, p := r.at("providers", name), c.Providers[name]
	named := r.at("providers").Has(name)
	for _, deployment := range slices.Sorted(maps.Keys(p.Deployments)) {
		keyed := p.Deployments[deployment].Key != Secret{} || p.Deployments[deployment].Signed()
		own := dialect.IsOwnServer(p.Kind) // a server of the operator's own may need no key
		switch {
		case c.Keys == KeysRequired && !keyed && !named:
			delete(c.Providers, name)
		case c.Keys == KeysRequired && !keyed && !own && !p.ClientLogin:
			deploymentAt(at, deployment).Fault("it has no key, which clients with keys of the gateway need: key must be %s", wantSecret)
		case c.Keys == KeysOff && keyed && !loopback.Is(c.Listen):
			deploymentAt(at, deployment).Warn("anybody who can reach %s can call it with your key: keys should be %s", c.Listen, KeysRequired)
		}
	}
}

// checkQuotas warns of models that the file names for something else than a quota, which lifts
// their default quota.
func (c *Config) checkQuotas(r *reader, provider string) {
	defaults := ratelimit.DefaultProfiles()[ratelimit.Provider(provider)].Models
	models := r.at("providers", provider, "models")
	for _, m := range c.Providers[provider].Models {
		at := models.At(m.Name)
		rest := m.Quota
		rest.MaxConcurrent, rest.MaxTokensInFlight, rest.MaxEnqueuedTokens, rest.DayResetsAt, rest.Margin, rest.Reserve, rest.Pace, rest.PaceBurst = 0, 0, 0, "", 0, 0, "", 0
		rest.ReserveTokens, rest.OnOverrun = "", ""
		rest.Count = ratelimit.TokenWeights{}
		named := len(m.Aliases) > 0 || m.Quota != rest // {} says that the model is without limits
		if named && !at.Has("max_rpm") && rest == (ratelimit.ModelQuota{}) && defaults[m.Name] != rest {
			at.Warn("it sets neither requests nor tokens, which lifts the default quota: set them, or max_rpm: 0 if that is meant")
		}
	}
}
