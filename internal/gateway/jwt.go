package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/issuer"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// issuerOf returns the issuer of a configuration, or nil. One that has not changed goes on with the keys that it has
// fetched.
func (g *Gateway) issuerOf(cfg *config.Config) *issuer.Issuer {
	if cfg.JWT == nil {
		return nil
	}
	if old := g.setup.Load(); old != nil && reflect.DeepEqual(old.cfg.JWT, cfg.JWT) {
		return old.issuer
	}
	return issuer.New(cfg.JWT.Verifier())
}

// findToken returns what the first token of the issuer among some texts says, as the description of a key: its project
// and its models. It sets the user that the token names. A token that is not taken is remembered, with the reason.
func (x *exchange) findToken(texts []string) (keys.Key, bool) {
	at := slices.IndexFunc(texts, issuer.Looks)
	if at < 0 {
		return keys.Key{}, false
	}
	claims, err := x.setup.issuer.Verify(x.ctx, texts[at])
	if err != nil {
		x.tokenFault = err
		return keys.Key{}, false
	}
	names := x.cfg.JWT.Claims
	key := keys.Key{Project: claims.Text(names.Project)}
	if key.Project == "" {
		key.Project = x.cfg.JWT.Project
	}
	if names.User != "" {
		x.tokenUser = claims.Text(names.User)
	}
	if names.Models != "" && claims.Has(names.Models) {
		key.Models = append([]string{}, claims.Words(names.Models)...)
	}
	x.tokenFault = checkClaims(&key, claims, names)
	if x.tokenFault != nil {
		return keys.Key{}, false
	}
	return key, true
}

// errClaims is the error of a token that is valid, and does not say what the gateway has to know.
var errClaims = errors.New("ratelimit: the token does not say whose the call is")

// checkClaims returns what is wrong with the project, the user or the models of a token, or nil. A user that cannot be
// read is not one that the client may choose.
func checkClaims(key *keys.Key, claims issuer.Claims, names config.Claims) error {
	for _, name := range []string{names.Project, names.User} {
		if claims.Has(name) && claims.Text(name) == "" {
			return fmt.Errorf("%w: its claim %s must be a text, and not empty", errClaims, name)
		}
	}
	if key.Project == "" {
		return fmt.Errorf("%w: its claim %s must name a project", errClaims, names.Project)
	}
	if err := project.CheckID(key.Project); err != nil {
		return fmt.Errorf("%w: its claim %s: %s", errClaims, names.Project, message.Detail(err, project.ErrInvalid))
	}
	if key.Models != nil && len(key.Models) == 0 {
		return fmt.Errorf("%w: its claim %s names no models", errClaims, names.Models)
	}
	if err := keys.CheckTerms(project.Limit{}, key.Models); err != nil {
		return fmt.Errorf("%w: its claim %s: %s", errClaims, names.Models, message.Detail(err, keys.ErrInvalid))
	}
	return nil
}

// refuseKey refuses a request without a valid virtual key or token. The client does not learn why keys of the issuer
// cannot be fetched: only the log has that.
func (x *exchange) refuseKey() *refusal {
	switch {
	case x.tokenFault == nil:
		return refusalf(http.StatusUnauthorized, "%s", x.keyNeeded())
	case errors.Is(x.tokenFault, issuer.ErrUnavailable):
		x.g.log.Error("the keys of the issuer of tokens cannot be fetched", "error", x.tokenFault)
		return refusalf(http.StatusServiceUnavailable, "the token cannot be verified now: try again in a moment")
	case errors.Is(x.tokenFault, errClaims):
		return refusalf(http.StatusForbidden, "%s", message.Plain(x.tokenFault))
	}
	return refusalf(http.StatusUnauthorized, "%s", message.Plain(x.tokenFault))
}

// checkLogin refuses a request to a provider to which clients bring a login of their own, if a virtual key is among
// what would pass through.
func (x *exchange) checkLogin() *refusal {
	if !x.clientLogin() {
		return nil
	}
	for _, field := range keyFields {
		if fieldHoldsKey(field, x.r.Header[field]) {
			return refusalf(http.StatusUnauthorized, "the header %s has a virtual key, which is not forwarded: send it in X-Gateway-Key alone, and your own login to the provider in its place", field)
		}
	}
	return x.checkSignature()
}
