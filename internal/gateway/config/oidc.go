package config

import (
	"encoding/json"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/issuer"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// OIDC says how users sign in to the dashboard with an identity provider (OpenID Connect), and what they may do.
type OIDC struct {
	Issuer   string
	ClientID string
	Secret   Secret      // zero: the client has none
	URL      string      // of the dashboard, as browsers reach it
	Scopes   []string    // that the provider is asked for
	User     string      // the claim that names the user in the audit log
	Groups   string      // the claim that has the user's groups
	Roles    []GroupRole // the first whose group the user has counts
}

// GroupRole is what the users of a group may do.
type GroupRole struct {
	Group   string    `json:"group"`
	Role    keys.Role `json:"role"`
	Project string    `json:"project,omitempty"` // to which they are bound, with all below it; empty: all projects
}

// callbackPath is where the identity provider sends browsers back to, below the URL of the dashboard.
const callbackPath = "/login/callback"

// Verifier returns what the provider's tokens are verified by.
func (o *OIDC) Verifier() issuer.Config {
	return issuer.Config{Issuer: o.Issuer, Audiences: []string{o.ClientID}, Algorithms: issuer.Algorithms}
}

// Client returns the gateway as the provider knows it.
func (o *OIDC) Client() issuer.Client {
	return issuer.Client{ID: o.ClientID, Secret: o.Secret.Reveal(), Redirect: strings.TrimSuffix(o.URL, "/") + callbackPath, Scopes: o.Scopes}
}

// RoleOf returns what users of the first of some groups that has a role may do.
func (o *OIDC) RoleOf(groups []string) (GroupRole, bool) {
	for _, r := range o.Roles {
		if slices.Contains(groups, r.Group) {
			return r, true
		}
	}
	return GroupRole{}, false
}

func readOIDC(p yamlValue) *OIDC {
	o := &OIDC{Scopes: []string{"openid", "profile", "email"}, User: "email", Groups: "groups"}
	p.Fields(
		field("issuer", issuerURL(&o.Issuer)),
		field("client_id", strictyaml.Any(&o.ClientID, "the id of the gateway at the provider")),
		field("client_secret", secret(&o.Secret)),
		field("url", issuerURL(&o.URL)),
		field("scopes", texts(&o.Scopes, "a scope, or a list")),
		field("user", strictyaml.Any(&o.User, "the name of a claim")),
		field("groups", strictyaml.Any(&o.Groups, "the name of a claim")),
		field("roles", func(p yamlValue) {
			p.Items(func(p yamlValue) { o.Roles = append(o.Roles, readGroupRole(p)) })
		}),
	)
	switch {
	case p.Faulty():
	case o.Issuer == "" || o.ClientID == "" || o.URL == "":
		p.Fault("it needs an issuer, a client_id, and the url by which browsers reach the dashboard")
	case !slices.Contains(o.Scopes, "openid"):
		p.At("scopes").Fault("openid is not among them: without it, the provider does not say who has signed in")
	case len(o.Roles) == 0:
		p.Fault("it has no roles, so nobody could sign in: they must be a list of groups, such as {group: sre, role: admin}")
	}
	return o
}

func readGroupRole(p yamlValue) (r GroupRole) {
	p.Fields(
		field("group", strictyaml.Any(&r.Group, "the name of a group")),
		field("role", strictyaml.OneOf(&r.Role, keys.RoleViewer, keys.RoleOperator, keys.RoleAdmin)),
		field("project", func(p yamlValue) { projectPath(p, &r.Project) }),
	)
	switch {
	case p.Faulty():
	case r.Group == "":
		p.Fault("it has no group: it must be that of the users who have the role")
	default:
		if err := keys.CheckRole(r.Role, r.Project); err != nil {
			p.Fault("%s", message.Detail(err, keys.ErrInvalid))
		}
	}
	return r
}

// MarshalJSON writes it as the file has it, without the secret.
func (o *OIDC) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Issuer   string      `json:"issuer"`
		ClientID string      `json:"client_id"`
		Secret   Secret      `json:"client_secret,omitzero"`
		URL      string      `json:"url"`
		Scopes   []string    `json:"scopes"`
		User     string      `json:"user"`
		Groups   string      `json:"groups"`
		Roles    []GroupRole `json:"roles"`
	}{o.Issuer, o.ClientID, o.Secret, o.URL, o.Scopes, o.User, o.Groups, o.Roles})
}
