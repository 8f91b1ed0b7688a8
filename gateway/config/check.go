package config

import (
	"maps"
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// leastToken is how many bytes a token has that nobody guesses.
const leastToken = 16

// check finds what is wrong between fields that are right by themselves.
func (c *Config) check(r *reader) {
	if c.State == "" {
		r.at("state").fault("there is no home directory for the default: it must be set")
	}
	if c.OnStoreLoss != "deny" && !c.Redis() {
		r.at("on_store_loss").fault("%s is for a state in Redis: it must be deny, or left out", c.OnStoreLoss)
	}
	if collide(c.Admin.Listen, c.Listen) {
		r.at("admin.listen").fault("clients connect at %s: it must be another port, or off", c.Listen)
	}
	if c.Admin.Listen != "" && !Loopback(c.Admin.Listen) && c.Admin.Token == (Secret{}) {
		r.at("admin.listen").fault("others than this machine can reach %s: admin.token must be set, or it must be a loopback address", c.Admin.Listen)
	}
	if c.Server.MaxBodies < c.Server.MaxBody {
		r.at("server.max_bodies").fault("one body may have %s: it must be at least that", sizeText(c.Server.MaxBody))
	}
	if token := c.Admin.Token.Reveal(); token != "" && len(token) < leastToken {
		r.at("admin.token").warn("it could be guessed: it should have %d characters or more", leastToken)
	}
	if c.Keys == KeysRequired && c.Admin.Listen == "" {
		r.at("admin.listen").warn("keys are made through the admin API: it should be on, here or at another gateway that shares the state")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		c.checkQuotas(r, name)
		c.checkKeys(r, name)
	}
	if len(c.Providers) == 0 && !r.faulty("providers") {
		r.at("providers").warn("no provider is served: with keys %s, providers must name each, and its key", KeysRequired)
	}
}

// checkKeys sees to it that nobody's calls go without a key, nor on somebody else's. With
// keys required, a built-in provider that the file does not name is not served, of whatever
// kind it is: nobody has decided that clients may reach it.
func (c *Config) checkKeys(r *reader, name string) {
	at, p := r.at("providers."+name), c.Providers[name]
	_, named := r.said["providers."+name]
	for _, deployment := range slices.Sorted(maps.Keys(p.Deployments)) {
		keyed := p.Deployments[deployment].Key != Secret{} || p.Deployments[deployment].Signed()
		own := p.Kind == llm.Ollama || p.Kind == llm.Compatible // a server of one's own may need none
		switch {
		case c.Keys == KeysRequired && !keyed && !named:
			delete(c.Providers, name)
		case c.Keys == KeysRequired && !keyed && !own:
			at.deployment(deployment).fault("it has no key, which clients with keys of the gateway need: key must be %s", wantSecret)
		case c.Keys == KeysOff && keyed && !Loopback(c.Listen):
			at.deployment(deployment).warn("whoever can reach %s calls it with your key: keys should be %s", c.Listen, KeysRequired)
		}
	}
}

// checkQuotas warns of models that are named for something else than a quota, which
// lifts the one that they have by default.
func (c *Config) checkQuotas(r *reader, provider string) {
	defaults := ratelimit.DefaultProfiles()[ratelimit.Provider(provider)].Models
	for _, m := range c.Providers[provider].Models {
		at := r.at(join("providers."+provider+".models", m.Name))
		_, meant := r.said[at.path+".max_rpm"]
		rest := m.Quota
		rest.MaxConcurrent, rest.DayResetsAt, rest.Margin = 0, "", 0
		named := len(m.Aliases) > 0 || m.Quota != rest // {} says that it is without limits
		if named && !meant && rest == (ratelimit.ModelQuota{}) && defaults[m.Name] != rest {
			at.warn("it says nothing of requests and tokens, which lifts the default quota: they should be said; max_rpm: 0 if that is meant")
		}
	}
}
