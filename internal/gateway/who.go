package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// defaultProject is the project of requests that name none.
const defaultProject = "default"

// Headers in which clients say whose a request is. No provider gets them.
const (
	fieldProject = "X-Project-Id"
	fieldUser    = "X-User-Id"
	fieldRun     = "X-Run-Id"

	fieldGatewayKey = "X-Gateway-Key" // a virtual key or a token, beside a login of the client's own
)

// keyFields are the headers in which SDKs send a key.
var keyFields = dialect.KeyHeaders()

// identify finds the project of the request, and its user and its run if a header names them.
func (x *exchange) identify() *refusal {
	return firstRefusal(x.identifyProject, x.identifyRun, x.identifyUser)
}

// identifyProject finds the project of the request: by its virtual key, or by X-Project-ID where
// keys are off.
func (x *exchange) identifyProject() *refusal {
	if x.cfg.Keys == config.KeysRequired {
		key, sent, ok := x.findKey()
		if !ok {
			return x.refuseKey()
		}
		x.useKey(&key)
		x.virtualKey = sent
		x.removeKeys()
		return x.checkLogin()
	}
	id, refused := x.headerOnce(fieldProject)
	if refused != nil {
		return refused
	}
	if x.r.Header[fieldProject] == nil {
		id = defaultProject
	}
	if err := project.CheckID(id); err != nil {
		return refusalf(http.StatusBadRequest, "X-Project-ID: %s", message.Detail(err, project.ErrInvalid))
	}
	x.Project = shortened(id)
	if x.carriesKey() {
		return refusalf(http.StatusUnauthorized, "this gateway has virtual keys switched off, and does not forward them: send the provider's own key, or have the configuration say keys: required")
	}
	return x.checkSignature()
}

// useKey makes the request one of a virtual key.
func (x *exchange) useKey(key *keys.Key) {
	x.Project, x.Key, x.keyModels = key.Project, key.ID, key.Models
}

// headerOnce returns the value of a header, or "" if the request does not have it. It refuses a
// request that has it twice: a proxy may have set one, and the client the other.
func (x *exchange) headerOnce(name string) (string, *refusal) {
	switch values := x.r.Header[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", refusalf(http.StatusBadRequest, "the request has the header %s more than once: it must have it once", name)
}

// findKey returns the valid virtual key of the request, and its description, if the request has one. A valid token of
// the issuer is as good: then it returns what the token says.
func (x *exchange) findKey() (key keys.Key, sent keys.Sent, ok bool) {
	texts := x.sentKeys()
	for _, text := range texts {
		if key, sent, ok = x.g.keys.Use(text); ok {
			return key, sent, true
		}
	}
	if x.setup.issuer != nil {
		key, ok = x.findToken(texts)
	}
	return key, sent, ok
}

// clientLogin reports whether clients bring a login of their own to the provider of the request.
func (x *exchange) clientLogin() bool { return x.upstream != nil && x.upstream.ClientLogin }

// sentKeys returns the values in all headers and parameters that may have a key.
func (x *exchange) sentKeys() []string {
	found := append(make([]string, 0, 4), x.r.Header[fieldGatewayKey]...)
	if x.clientLogin() {
		return found
	}
	for _, field := range keyFields {
		for _, value := range x.r.Header[field] {
			if scheme, token, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "bearer") {
				value = strings.TrimSpace(token)
			}
			found = append(found, value)
		}
	}
	if x.target.RawQuery == "" {
		return found
	}
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		if name, value := parameter(pair); slices.Contains(credentialParameters, name) {
			found = append(found, value)
		}
	}
	return found
}

// authorize replaces the client's credentials with the deployment's key. If the account at the
// deployment is the client's own, its credentials stay.
func (x *exchange) authorize(h http.Header, d *deployment, u *url.URL) {
	x.gatewayAccount = x.usesGatewayAccount(d)
	if !x.gatewayAccount {
		x.hider, x.call.Applies = nil, x.forAllAccounts
		return
	}
	x.hider, x.call.Applies = d.hider, nil
	deleteFields(h, clientCredentials)
	u.RawQuery = withoutParameters(withoutParameters(u.RawQuery, credentialParameters), signatureParameters)
	if d.key != "" {
		dialect.SetKey(x.upstream.Kind, h, x.endpoint, x.target.Path, d.key)
	}
}

// usesGatewayAccount reports whether requests to a deployment use an account of the gateway's,
// and not the client's own.
func (x *exchange) usesGatewayAccount(d *deployment) bool {
	return d.key != "" || d.signer != nil || x.cfg.Keys == config.KeysRequired && !x.clientLogin()
}

// ownSignature reports whether the client has signed the request for an account of its own.
// If any deployment uses an account of the gateway's, a client's signature is not forwarded,
// and must not keep the gateway from asking for usage.
func (x *exchange) ownSignature() bool {
	return !slices.ContainsFunc(x.upstream.deployments, x.usesGatewayAccount) && call.Signed(x.r.Header, x.target.RawQuery)
}
