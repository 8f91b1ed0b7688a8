package config

import (
	"maps"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/issuer"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/project"
)

// JWT says which tokens of an identity provider clients may send in place of virtual keys, and what their claims mean.
type JWT struct {
	Issuer     string   `json:"issuer"`
	Audience   []string `json:"audience"`
	JWKS       string   `json:"jwks,omitempty"`       // the URL of its keys; empty: the issuer's configuration names it
	Algorithms []string `json:"algorithms,omitempty"` // empty: issuer.DefaultAlgorithms
	Claims     Claims   `json:"claims"`
	Project    string   `json:"project,omitempty"` // of tokens without the claim; empty: they are refused
}

// Claims are the names of the claims that say whose a call is. A dot leads to a member of a claim.
type Claims struct {
	Project string `json:"project"`          // the path of the project
	User    string `json:"user,omitempty"`   // empty: no claim names the user
	Models  string `json:"models,omitempty"` // names or patterns of the models that may be called; empty: no claim does
}

// Verifier returns what the issuer's tokens are verified by.
func (j *JWT) Verifier() issuer.Config {
	return issuer.Config{Issuer: j.Issuer, JWKS: j.JWKS, Audiences: j.Audience, Algorithms: j.Algorithms}
}

func readJWT(p yamlValue) *JWT {
	j := &JWT{Claims: Claims{Project: "project"}}
	p.Fields(
		field("issuer", issuerURL(&j.Issuer)),
		field("audience", texts(&j.Audience, "the audience of the tokens, or a list")),
		field("jwks", issuerURL(&j.JWKS)),
		field("algorithms", algorithms(&j.Algorithms)),
		field("claims", func(p yamlValue) {
			const want = "the name of a claim"
			p.Fields(
				field("project", strictyaml.Any(&j.Claims.Project, want)),
				field("user", strictyaml.Any(&j.Claims.User, want)),
				field("models", strictyaml.Any(&j.Claims.Models, want)),
			)
		}),
		field("project", func(p yamlValue) { projectPath(p, &j.Project) }),
	)
	switch {
	case p.Faulty():
	case j.Issuer == "":
		p.Fault("it has no issuer: it must be the URL of the identity provider, as the claim iss of its tokens has it")
	case len(j.Audience) == 0:
		p.Fault("it has no audience: without one, tokens that are meant for other services would be taken")
	}
	return j
}

// issuerURL reads a URL of an identity provider.
func issuerURL(to *string) func(yamlValue) {
	return func(p yamlValue) {
		strictyaml.Any(to, "a URL")(p)
		if p.Faulty() {
			return
		}
		if err := issuer.CheckURL(*to); err != nil {
			p.Fault("%s", message.Plain(err))
		}
	}
}

// texts reads one text, or a list of texts.
func texts(to *[]string, want string) func(yamlValue) {
	return func(p yamlValue) {
		*to = nil
		one := func(p yamlValue) {
			if text, ok := p.Text(want); ok && text != "" {
				*to = append(*to, text)
			}
		}
		if _, ok := p.Scalar(); ok {
			one(p)
			return
		}
		p.Items(one)
	}
}

// algorithms reads which signatures are taken.
func algorithms(to *[]string) func(yamlValue) {
	return func(p yamlValue) {
		*to = nil
		p.Items(func(p yamlValue) {
			name := ""
			strictyaml.OneOf(&name, issuer.Algorithms...)(p)
			*to = append(*to, name)
		})
		if len(*to) == 0 && !p.Faulty() {
			p.Fault("it is empty: it must be some of %s, or left out", strings.Join(issuer.Algorithms, ", "))
		}
	}
}

// projectPath reads the path of a project.
func projectPath(p yamlValue, to *string) {
	strictyaml.Any(to, "the path of a project")(p)
	if p.Faulty() {
		return
	}
	if err := project.CheckID(*to); err != nil {
		p.Fault("%s", message.Detail(err, project.ErrInvalid))
	}
}

// checkIssuers finds identity providers that nobody can use.
func (c *Config) checkIssuers(r *reader) {
	if c.Admin.OIDC != nil && c.Admin.Token == (Secret{}) {
		r.at("admin", "oidc").Fault("sessions are signed with admin.token, which must be set, too")
	}
	if c.JWT != nil && c.Keys != KeysRequired {
		r.at("jwt").Fault("clients send tokens in place of virtual keys: keys must be %s", KeysRequired)
	}
}

// checkLogins finds providers to which clients bring a login of their own, and that have an account of the gateway's.
func (c *Config) checkLogins(r *reader, name string) {
	p := c.Providers[name]
	if p == nil || !p.ClientLogin {
		return
	}
	at := r.at("providers", name, "client_login")
	keyed := slices.ContainsFunc(slices.Collect(maps.Values(p.Deployments)), func(d *Deployment) bool { return d.Key != Secret{} || d.Signed() })
	switch {
	case keyed:
		at.Fault("the provider has a key, or signs calls: clients use that, or bring a login of their own, and not both")
	case c.Keys == KeysOff:
		at.Warn("with keys off, clients bring logins of their own to all providers: it should be left out")
	}
}
