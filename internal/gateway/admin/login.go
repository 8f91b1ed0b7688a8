package admin

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/issuer"
)

// Paths by which a browser signs in with the identity provider. They are pages, and no part of the API.
const (
	loginPath    = "/login"
	callbackPath = loginPath + "/callback"
)

// loginLength is how long a user may take at the identity provider.
const loginLength = 10 * time.Minute

// provider is the identity provider of the configuration, which a reload may replace.
type provider struct {
	mu     sync.Mutex
	of     *config.OIDC
	issuer *issuer.Issuer
}

// current returns the identity provider, or nil if the configuration has none.
func (p *provider) current(cfg *config.Config) *issuer.Issuer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cfg.Admin.OIDC == nil {
		return nil
	}
	if p.of == nil || !reflect.DeepEqual(p.of, cfg.Admin.OIDC) {
		p.of, p.issuer = cfg.Admin.OIDC, issuer.New(cfg.Admin.OIDC.Verifier())
	}
	return p.issuer
}

// serveLogin begins or ends the sign-in of a browser with the identity provider. Whatever goes wrong is reported in words,
// and in the log with its reason. Only a number of failed ones are served for an address.
func (a *Admin) serveLogin(w http.ResponseWriter, r *http.Request) {
	cfg := a.gateway.Config()
	id := a.provider.current(cfg)
	if id == nil || r.Method != http.MethodGet || r.URL.Path != loginPath && r.URL.Path != callbackPath {
		problemf(http.StatusNotFound, "there is nothing at %.80q", r.URL.Path).send(w)
		return
	}
	attempt, d := a.sessions.attempts.Reserve(r)
	if p := tooManyFailed(d); p != nil {
		p.send(w)
		return
	}
	var p *Problem
	if r.URL.Path == loginPath {
		p = a.beginLogin(w, r, id, cfg)
	} else {
		p = a.endLogin(w, r, id, cfg)
	}
	if p != nil {
		p.send(w)
		return
	}
	attempt.Cancel()
}

// loginCookie returns the cookie of a sign-in that has begun. The provider's page leads back here from another site, so
// it is not strict.
func loginCookie(r *http.Request, value string, lasts time.Duration, of *config.OIDC) *http.Cookie {
	c := overTLS(sessionCookie(r, value, lasts), of)
	c.Name, c.Path, c.SameSite = strings.Replace(c.Name, "session", "login", 1), loginPath, http.SameSiteLaxMode
	return c
}

// overTLS has a browser send a cookie by TLS alone, if it reaches the dashboard so, through a proxy perhaps.
func overTLS(c *http.Cookie, of *config.OIDC) *http.Cookie {
	c.Secure = c.Secure || strings.HasPrefix(of.URL, "https:")
	return c
}

// pending is a sign-in that has begun, as its cookie has it.
type pending struct {
	issuer.Login
	Ends int64 `json:"ends"` // in Unix seconds
}

// beginLogin sends a browser to the identity provider.
func (a *Admin) beginLogin(w http.ResponseWriter, r *http.Request, id *issuer.Issuer, cfg *config.Config) *Problem {
	login, to, err := id.Begin(cfg.Admin.OIDC.Client())
	if err != nil {
		a.log.Error("admin: the identity provider cannot be reached", "error", err)
		return problemf(http.StatusServiceUnavailable, "the identity provider cannot be reached now: the gateway's log says why")
	}
	value := signed(pending{login, time.Now().Add(loginLength).Unix()}, "login", cfg.Admin.Token.Reveal())
	http.SetCookie(w, loginCookie(r, value, loginLength, cfg.Admin.OIDC))
	http.Redirect(w, r, to, http.StatusFound)
	return nil
}

// endLogin begins the session of a browser that the identity provider has sent back.
func (a *Admin) endLogin(w http.ResponseWriter, r *http.Request, id *issuer.Issuer, cfg *config.Config) *Problem {
	q, token := r.URL.Query(), cfg.Admin.Token.Reveal()
	var begun pending
	if c, err := r.Cookie(loginCookie(r, "", 0, cfg.Admin.OIDC).Name); err != nil || !unsign(c.Value, "login", token, &begun) || time.Now().Unix() >= begun.Ends {
		return problemf(http.StatusBadRequest, "this browser did not begin this sign-in, or began it too long ago: begin again at the dashboard")
	}
	if q.Get("error") != "" {
		return problemf(http.StatusForbidden, "the identity provider has refused the sign-in: %.100q", q.Get("error"))
	}
	claims, err := id.Finish(r.Context(), cfg.Admin.OIDC.Client(), begun.Login, q.Get("state"), q.Get("code"))
	if err != nil {
		a.log.Warn("admin: a sign-in with the identity provider has failed", "client", r.RemoteAddr, "error", err)
		if errors.Is(err, issuer.ErrUnavailable) {
			return problemf(http.StatusServiceUnavailable, "the identity provider cannot be reached now, or rejects the sign-in: the gateway's log says why")
		}
		return problemf(http.StatusForbidden, "the sign-in is not valid: begin again at the dashboard")
	}
	user := userOf(claims, cfg.Admin.OIDC.User)
	role, ok := cfg.Admin.OIDC.RoleOf(claims.List(cfg.Admin.OIDC.Groups))
	if !ok || user == "" {
		a.log.Warn("admin: a user without a role has signed in with the identity provider", "client", r.RemoteAddr, "user", user)
		return problemf(http.StatusForbidden, "you have signed in, but none of your groups has a role here: ask an administrator of the gateway (admin.oidc.roles)")
	}
	http.SetCookie(w, loginCookie(r, "", -time.Second, cfg.Admin.OIDC))
	http.SetCookie(w, overTLS(sessionCookie(r, a.sessions.begin(session{User: user, Group: role.Group, Issuer: cfg.Admin.OIDC.Issuer, Client: cfg.Admin.OIDC.ClientID}, token), sessionLength), cfg.Admin.OIDC))
	http.Redirect(w, r, "/", http.StatusFound)
	return nil
}

// maxUser is how many bytes of a user's name the audit log has.
const maxUser = 100

// userOf returns the name of a user for the audit log: a claim's value, or else the provider's id of the user.
func userOf(claims issuer.Claims, name string) string {
	user := claims.Text(name)
	if user == "" {
		user = claims.Text("sub")
	}
	user = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, user)
	return strings.ToValidUTF8(user[:min(len(user), maxUser)], "")
}
