package admin

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
)

const sessionLength = 12 * time.Hour

// Session says whether a browser must sign in with the token, and whether it has.
type Session struct {
	NeedsToken bool `json:"needs_token"`
	SignedIn   bool `json:"signed_in"`
}

// SignIn is a request for a session.
type SignIn struct {
	Token string `json:"token"`
}

// sessions begins and checks the sessions of browsers. The cookie's value is the whole session, signed with a key that
// is derived from the admin token: every gateway with this token knows it, and another token ends it.
type sessions struct {
	attempts *limit.Limiter[*http.Request, string] // tokens that were wrong, by the client's address
	board    *control.Board                        // has the sessions that were signed out, for all gateways on the store
}

// session is what the cookie of one browser that has signed in says.
type session struct {
	ID   string `json:"id"`
	Ends int64  `json:"ends"` // in Unix seconds
}

func newSessions(board *control.Board) *sessions {
	return &sessions{attempts: limit.NewLimiter(clientOf, limit.PerMinute(10)), board: board}
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

// begin returns the cookie's value of a new session: its description in JSON and the signature, both in base64.
func (s *sessions) begin(token string) string {
	text, err := json.Marshal(session{ID: rand.Text(), Ends: time.Now().Add(sessionLength).Unix()})
	if err != nil {
		panic(err) // a session is text and a number, which marshal
	}
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + base64.RawURLEncoding.EncodeToString(signSession(body, token))
}

// find returns the session of a cookie's value, unless the session has ended or the value was signed with another token.
func (s *sessions) find(value, token string) (found session, ok bool) {
	body, signature, _ := strings.Cut(value, ".")
	mac, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(mac, signSession(body, token)) {
		return session{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &found) != nil {
		return session{}, false
	}
	return found, time.Now().Unix() < found.Ends && !s.board.State().SessionEnded(found.ID)
}

// end ends a session, for all gateways on the store.
func (s *sessions) end(ctx context.Context, value, token string) error {
	found, ok := s.find(value, token)
	if !ok {
		return nil
	}
	return s.board.EndSession(ctx, found.ID, found.Ends)
}

// signSession returns the signature of a session's description.
func signSession(body, token string) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("ratelimit session " + body))
	return mac.Sum(nil)
}

// cookieName returns the name of the cookie. Browsers send a host's cookies to all of its
// ports, so that gateways on one machine need different names.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "ratelimit-session-" + cmp.Or(port, "0")
}

// inSession reports whether a request has the cookie of a session.
func (a *Admin) inSession(r *http.Request, token string) bool {
	return slices.ContainsFunc(r.CookiesNamed(cookieName(r)), func(c *http.Cookie) bool {
		_, ok := a.sessions.find(c.Value, token)
		return ok
	})
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
		if err := a.sessions.end(r.Context(), c.Value, a.gateway.Config().Admin.Token.Reveal()); err != nil {
			p := problemf(http.StatusServiceUnavailable, "this browser is signed out, but a copy of its cookie would be valid until it expires, since the store does not answer: %s", message.Plain(err))
			p.header = http.Header{"Set-Cookie": {sessionCookie(r, "", -time.Second).String()}}
			return nil, p
		}
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
