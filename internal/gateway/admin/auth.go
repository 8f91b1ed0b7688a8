package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"net/http"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/loopback"
	"dappco.re/go/core/go-ratelimit/limit"
)

// publicPaths need no token: load balancers probe the first two, and browsers sign in at the third.
var publicPaths = map[string]bool{"/healthz": true, "/readyz": true, "/session": true}

// caller is whoever makes a request, and what they may do.
type caller struct {
	who     string    // for the audit log: "loopback"; "token" or "session", and the name of the token or of the user
	role    keys.Role // empty: nothing but the public paths
	project string    // the project to which the caller is bound, with all below it; empty: all projects
}

// checkAccess returns who makes a request, or why it is refused. A request may carry a token, which is that of the
// configuration or one of the store; or the cookie of a session, if it comes from no page of another site. Without any,
// and if the configuration has no token, it must come from this machine, and from no page of another site in a browser
// here: neither directly nor by DNS rebinding, with a name of that site that resolves to this machine.
func (a *Admin) checkAccess(r *http.Request) (caller, *Problem) {
	if c, ok := a.withToken(r); ok {
		return c, nil
	}
	needsToken := a.needsToken(r)
	if c, ok := a.inSession(r); ok && needsToken && r.Header.Get("Authorization") == "" {
		if a.fromOtherSite(r) { // browsers send a cookie by themselves, and a token they do not
			return caller{}, otherSite()
		}
		return c, nil
	}
	configured := a.gateway.Config().Admin.Token.Reveal() != ""
	switch {
	case configured && r.Header.Get("Authorization") != "":
		return caller{}, problemf(http.StatusUnauthorized, "this token is not valid: it is wrong, was revoked, or has expired")
	case configured:
		return caller{}, problemf(http.StatusUnauthorized, "the admin API needs its token, as Authorization: Bearer")
	case needsToken:
		return caller{}, problemf(http.StatusForbidden, "the admin API has no token, so it serves only this machine: set admin.token, or send a token that ratelimit token create has made")
	case !loopback.Is(r.Host):
		return caller{}, problemf(http.StatusForbidden, "the host is %.80q: without a token, it must be localhost or a loopback address", r.Host)
	case a.fromOtherSite(r):
		return caller{}, otherSite()
	}
	return caller{who: "loopback", role: keys.RoleAdmin}, nil
}

// needsToken reports whether a request needs a token or a session: it comes from elsewhere, or the configuration has a
// token.
func (a *Admin) needsToken(r *http.Request) bool {
	return a.gateway.Config().Admin.Token.Reveal() != "" || !loopback.Is(r.RemoteAddr)
}

// withToken returns the caller of a request that carries a token.
func (a *Admin) withToken(r *http.Request) (caller, bool) {
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{}, false
	}
	return a.findToken(strings.TrimSpace(sent), "token")
}

// findToken returns the caller with a token: that of the configuration, or one of the store. who is how the caller
// sends it.
func (a *Admin) findToken(sent, who string) (caller, bool) {
	if token := a.gateway.Config().Admin.Token.Reveal(); token != "" && sameSecret(sent, token) {
		return caller{who: who, role: keys.RoleAdmin}, true
	}
	k, ok := a.gateway.Tokens().Find(sent)
	return tokenCaller(k, who), ok
}

// tokenCaller returns the caller with a token of the store.
func tokenCaller(k keys.Key, who string) caller {
	return caller{who: who + " " + k.Name + " (" + k.ID + ")", role: k.Role, project: k.Project}
}

// fromOtherSite reports whether a page of another origin makes the request, as far as browsers say so. It
// counts reads, too, which [http.CrossOriginProtection] does not: such a page cannot see what is answered,
// but it could have the gateway work, and hold streams open.
func (a *Admin) fromOtherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site" || a.origins.Check(r) != nil
}

func otherSite() *Problem {
	return problemf(http.StatusForbidden, "the request comes from a page of another site")
}

// slowGuesses refuses a request with a bearer token from an address that has sent too many wrong ones, the right token
// included: otherwise whoever guesses would learn it as fast as before. It counts and logs wrong tokens, also on
// public paths, whose answers show whether the token is right.
func (a *Admin) slowGuesses(r *http.Request, right bool) *Problem {
	if r.Header.Get("Authorization") == "" || !a.needsToken(r) {
		return nil
	}
	ask := a.sessions.attempts.Peek
	if !right {
		ask = func(r *http.Request) limit.Decision { return a.sessions.attempts.Take(r, 1) }
	}
	d := ask(r)
	if d.Allowed && !right {
		a.log.Warn("admin: a request has a wrong token", "client", r.RemoteAddr, "path", r.URL.Path)
	}
	return tooManyFailed(d)
}

// tooManyFailed refuses a client from whose address too many wrong tokens came, by the decision on its attempt.
func tooManyFailed(d limit.Decision) *Problem {
	if d.Allowed {
		return nil
	}
	seconds := strconv.Itoa(int(math.Ceil(d.RetryAfter.Seconds())))
	p := problemf(http.StatusTooManyRequests, "too many attempts from this address had a wrong token: try again in %s s", seconds)
	p.header = http.Header{"Retry-After": {seconds}}
	return p
}

// sameSecret compares hashes of equal length, so that a wrong secret takes as long as the right one.
func sameSecret(got, want string) bool {
	one, two := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(one[:], two[:]) == 1
}

// actor returns who makes a change, for the audit log.
func actor(r *http.Request) string { return callerOf(r).who + " " + r.RemoteAddr }
