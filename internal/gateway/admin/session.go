package admin

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

const (
	sessionLength = 12 * time.Hour
	maxSessions   = 1000
)

// Session says whether a browser must sign in with the token, and whether it has.
type Session struct {
	NeedsToken bool `json:"needs_token"`
	SignedIn   bool `json:"signed_in"`
}

// SignIn is a request for a session.
type SignIn struct {
	Token string `json:"token"`
}

// sessions are the browsers that have signed in. They are in memory alone, so a restart ends them.
type sessions struct {
	attempts *limit.Limiter[*http.Request, string] // tokens that were wrong, by the client's address

	mu  sync.Mutex
	all map[[sha256.Size]byte]session // by the hash of the cookie's value
}

// session is one browser that has signed in.
type session struct {
	token [sha256.Size]byte // the hash of the token that it has signed in with: another token ends the session
	ends  time.Time
}

func newSessions() *sessions {
	return &sessions{
		attempts: limit.NewLimiter(clientOf, limit.PerMinute(10)),
		all:      map[[sha256.Size]byte]session{},
	}
}

// clientOf returns the address whose failed sign-ins count together: of IPv6, the network of a customer.
func clientOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	address, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	if address = address.Unmap(); address.Is6() {
		network, _ := address.WithZone("").Prefix(64) // 64 is a length of all addresses of IPv6
		return network.String()
	}
	return address.String()
}

// begin returns the cookie's value of a new session. The session that would end first makes room.
func (s *sessions) begin(token string) string {
	value := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= maxSessions {
		oldest, first := [sha256.Size]byte{}, time.Time{}
		for hash, each := range s.all {
			if first.IsZero() || each.ends.Before(first) {
				oldest, first = hash, each.ends
			}
		}
		delete(s.all, oldest)
	}
	s.all[sha256.Sum256([]byte(value))] = session{sha256.Sum256([]byte(token)), time.Now().Add(sessionLength)}
	return value
}

// valid reports whether a cookie's value is that of a session that has not ended.
func (s *sessions) valid(value, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.all[sha256.Sum256([]byte(value))]
	return ok && found.token == sha256.Sum256([]byte(token)) && time.Now().Before(found.ends)
}

func (s *sessions) end(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(value)))
}

// cookieName returns the name of the cookie. Browsers send a host's cookies to all of its
// ports, so that gateways on one machine need different names.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "ratelimit-session-" + cmp.Or(port, "0")
}

// inSession reports whether a request has the cookie of a session.
func (a *Admin) inSession(r *http.Request, token string) bool {
	return slices.ContainsFunc(r.CookiesNamed(cookieName(r)), func(c *http.Cookie) bool { return a.sessions.valid(c.Value, token) })
}

// session tells a browser whether it has access.
func (a *Admin) session(r *http.Request) (any, error) {
	return Session{a.gateway.Config().Admin.Token.Reveal() != "", a.checkAccess(r) == nil}, nil
}

// signIn begins a session for a browser that sends the token.
func (a *Admin) signIn(r *http.Request) (any, error) {
	if a.fromOtherSite(r) {
		return nil, otherSite()
	}
	token := a.gateway.Config().Admin.Token.Reveal()
	if token == "" {
		return nil, problemf(http.StatusConflict, "the admin API has no token: from this machine, it can be used without signing in")
	}
	attempt, d := a.sessions.attempts.Reserve(r)
	if p := tooManyFailed(d); p != nil {
		return nil, p
	}
	ask, err := decode[SignIn](r)
	if err != nil {
		return nil, err
	}
	if !sameSecret(ask.Token, token) {
		a.log.Warn("admin: a sign-in has failed", "client", r.RemoteAddr)
		return nil, problemf(http.StatusUnauthorized, "this is not the token of the admin API (admin.token in the configuration)")
	}
	attempt.Cancel()
	return withCookie{sessionCookie(r, a.sessions.begin(token), sessionLength), Session{true, true}}, nil
}

// signOut ends the session of a browser, and with it its streams.
func (a *Admin) signOut(r *http.Request) (any, error) {
	if a.fromOtherSite(r) {
		return nil, otherSite()
	}
	for _, c := range r.CookiesNamed(cookieName(r)) {
		a.sessions.end(c.Value)
	}
	return withCookie{sessionCookie(r, "", -time.Second), nil}, nil
}

// withCookie is an answer that sets a cookie.
type withCookie struct {
	cookie *http.Cookie
	answer any
}

func sessionCookie(r *http.Request, value string, lasts time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: int(lasts.Seconds()),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
}
