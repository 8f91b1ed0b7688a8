package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"net/http"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/loopback"
	"dappco.re/go/core/go-ratelimit/limit"
)

// publicPaths need no token: load balancers probe the first two, and browsers sign in at the third.
var publicPaths = map[string]bool{"/healthz": true, "/readyz": true, "/session": true}

// checkAccess returns why a request is refused, or nil. If the API has a token, the request must
// carry it, or the cookie of a session and come from no page of another site. If not, the request
// must come from this machine, and from no page of another site in a browser here: neither directly
// nor by DNS rebinding, with a name of that site that resolves to this machine.
func (a *Admin) checkAccess(r *http.Request) *Problem {
	if token := a.gateway.Config().Admin.Token.Reveal(); token != "" {
		return a.checkToken(r, token)
	}
	if !loopback.Is(r.RemoteAddr) {
		return problemf(http.StatusForbidden, "the admin API has no token, so it serves only this machine: set admin.token")
	}
	if !loopback.Is(r.Host) {
		return problemf(http.StatusForbidden, "the host is %.80q: without a token, it must be localhost or a loopback address", r.Host)
	}
	if a.fromOtherSite(r) {
		return otherSite()
	}
	return nil
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

// checkToken refuses a request that has neither the token nor the cookie of a session.
func (a *Admin) checkToken(r *http.Request, token string) *Problem {
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case sameSecret(strings.TrimSpace(sent), token) && strings.EqualFold(scheme, "Bearer"):
		return nil
	case sent != "" || !a.inSession(r, token):
		return problemf(http.StatusUnauthorized, "the admin API needs its token, as Authorization: Bearer")
	case a.fromOtherSite(r): // browsers send a cookie by themselves, and a token they do not
		return otherSite()
	}
	return nil
}

// slowGuesses refuses a request with a bearer token from an address that has sent too many wrong ones, the right token
// included: otherwise whoever guesses would learn it as fast as before. It counts and logs wrong tokens, also on
// public paths, whose answers tell whether the token is right.
func (a *Admin) slowGuesses(r *http.Request, right bool) *Problem {
	if r.Header.Get("Authorization") == "" || a.gateway.Config().Admin.Token.Reveal() == "" {
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
func (a *Admin) actor(r *http.Request) string {
	switch {
	case a.gateway.Config().Admin.Token.Reveal() == "":
		return "loopback " + r.RemoteAddr
	case r.Header.Get("Authorization") == "":
		return "session " + r.RemoteAddr
	}
	return "token " + r.RemoteAddr
}
