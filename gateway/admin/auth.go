package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/loopback"
)

// publicPaths need no token: load balancers probe them.
var publicPaths = map[string]bool{"/healthz": true, "/readyz": true}

// checkAccess returns why a request is refused, or nil. If the API has a token, the request must
// carry it. If not, the request must come from this machine, and from no page of another site
// in a browser here: neither directly nor by DNS rebinding, with a name of that site that
// resolves to this machine.
func (a *Admin) checkAccess(r *http.Request) *Problem {
	if token := a.gateway.Config().Admin.Token.Reveal(); token != "" {
		return checkToken(r, token)
	}
	if !loopback.Is(r.RemoteAddr) {
		return problemf(http.StatusForbidden, "the admin API has no token, so it serves only this machine: set admin.token")
	}
	if !loopback.Is(r.Host) {
		return problemf(http.StatusForbidden, "the host is %.80q: without a token, it must be localhost or a loopback address", r.Host)
	}
	if err := a.origins.Check(r); err != nil {
		return problemf(http.StatusForbidden, "the request comes from a page of another site")
	}
	return nil
}

// checkToken refuses a request without the token. It compares hashes of equal length, so that a
// wrong token takes as long as the right one.
func checkToken(r *http.Request, token string) *Problem {
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(sent))), sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	return problemf(http.StatusUnauthorized, "the admin API needs its token, as Authorization: Bearer")
}

// actor returns who makes a change, for the audit log.
func (a *Admin) actor(r *http.Request) string {
	if a.gateway.Config().Admin.Token.Reveal() != "" {
		return "token " + r.RemoteAddr
	}
	return "loopback " + r.RemoteAddr
}
