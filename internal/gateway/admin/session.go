package admin

import (
	"cmp"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
)

const sessionLength = 12 * time.Hour

// Session says whether a browser must sign in, whether it has, and what it may do.
type Session struct {
	NeedsToken bool      `json:"needs_token"`
	SignedIn   bool      `json:"signed_in"`
	Role       keys.Role `json:"role,omitempty"`    // empty: it has not signed in
	Project    string    `json:"project,omitempty"` // to which it is bound, with all below it; empty: all projects
	OIDC       bool      `json:"oidc,omitempty"`    // browsers can sign in with an identity provider, at /login
}

// SignIn is a request for a session.
type SignIn struct {
	Token string `json:"token"`
}

// sessions begins and checks the sessions of browsers. The cookie's value is the whole session, signed with a key that
// is derived from the admin token: every gateway with this token knows it, and another token ends it. That of a browser
// that has signed in with a token of the store has a ticket in it, which ends with the token: see [keys.Ring.Ticket].
type sessions struct {
	attempts *limit.Limiter[*http.Request, string] // tokens that were wrong, by the client's address
	board    *control.Board                        // has the sessions that were signed out, for all gateways on the store
}

// session is what the cookie of one browser that has signed in says.
type session struct {
	ID     string    `json:"id"`
	Ends   int64     `json:"ends"` // in Unix seconds
	Role   keys.Role `json:"role,omitempty"`
	Ticket string    `json:"ticket,omitempty"` // of the token of the store that the browser has signed in with, whose role counts
	User   string    `json:"user,omitempty"`   // who has signed in with the identity provider
	Group  string    `json:"group,omitempty"`  // of the user, whose role in the configuration counts
	Issuer string    `json:"issuer,omitempty"` // where the user has signed in, and for which client: another one ends the session
	Client string    `json:"client,omitempty"`
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
	address = address.Unmap()
	if address.Is6() {
		network, _ := address.WithZone("").Prefix(64) // 64 is a length of all addresses of IPv6
		return network.String()
	}
	return address.String()
}

// begin returns the cookie's value of a new session.
func (s *sessions) begin(of session, token string) string {
	of.ID, of.Ends = rand.Text(), time.Now().Add(sessionLength).Unix()
	return signed(of, "session", token)
}

// find returns the session of a cookie's value, unless the session has ended or the value was signed with another token.
func (s *sessions) find(value, token string) (found session, ok bool) {
	if !unsign(value, "session", token, &found) {
		return session{}, false
	}
	return found, time.Now().Unix() < found.Ends && !s.board.State().SessionEnded(found.ID)
}

// signed returns a value in JSON and its signature by a key that is derived from a token, both in base64. purpose keeps
// values apart that are signed for different things.
func signed(value any, purpose, token string) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // values are texts and numbers, which marshal
	}
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + base64.RawURLEncoding.EncodeToString(signature(body, purpose, token))
}

// unsign fills in the value of a text that signed has made, and reports whether it has. Nothing is signed with an empty
// token.
func unsign(text, purpose, token string, to any) bool {
	body, sent, _ := strings.Cut(text, ".")
	mac, err := base64.RawURLEncoding.DecodeString(sent)
	if err != nil || token == "" || !hmac.Equal(mac, signature(body, purpose, token)) {
		return false
	}
	value, err := base64.RawURLEncoding.DecodeString(body)
	return err == nil && json.Unmarshal(value, to) == nil
}

// signature returns the signature of a text.
func signature(body, purpose, token string) []byte {
	mac := hmac.New(sha256.New, derived.key(token))
	mac.Write([]byte("ratelimit " + purpose + " " + body))
	return mac.Sum(nil)
}

// keyRounds is how much work it is to derive a key from a token, so that nobody finds a short token by trying many on a
// cookie, which everybody gets who begins a sign-in.
const keyRounds = 200_000

// derived is the key that was derived last, and its token: every gateway derives the same.
var derived derivedKey

type derivedKey struct {
	mu    sync.Mutex
	token string
	bytes []byte
}

func (d *derivedKey) key(token string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bytes == nil || d.token != token {
		key, err := pbkdf2.Key(sha256.New, token, []byte("ratelimit admin.token"), keyRounds, sha256.Size)
		if err != nil {
			panic(err) // the hash and the lengths are allowed ones
		}
		d.token, d.bytes = token, key
	}
	return d.bytes
}

// cookieName returns the name of the cookie. Browsers send a host's cookies to all of its
// ports, so that gateways on one machine need different names.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "ratelimit-session-" + cmp.Or(port, "0")
}

// inSession returns the caller of a request with the cookie of a session.
func (a *Admin) inSession(r *http.Request) (caller, bool) {
	for _, cookie := range r.CookiesNamed(cookieName(r)) {
		if c, _, ok := a.sessionOf(cookie.Value); ok {
			return c, true
		}
	}
	return caller{}, false
}

// sessionOf returns the caller and the session of a cookie's value, unless the session has ended.
func (a *Admin) sessionOf(value string) (caller, session, bool) {
	cfg := a.gateway.Config().Admin
	s, ok := a.sessions.find(value, cfg.Token.Reveal())
	switch {
	case !ok:
		return caller{}, s, false
	case s.Ticket != "":
		k, ok := a.gateway.Tokens().FindTicket(s.Ticket)
		return tokenCaller(k, "session"), s, ok
	case s.User != "":
		if cfg.OIDC == nil || s.Issuer != cfg.OIDC.Issuer || s.Client != cfg.OIDC.ClientID {
			return caller{}, s, false
		}
		role, ok := cfg.OIDC.RoleOf([]string{s.Group}) // which may have changed since
		return caller{"session " + s.User, role.Role, role.Project}, s, ok
	}
	return caller{who: "session", role: s.Role}, s, true
}

// session answers a browser whether it has access.
func (a *Admin) session(r *http.Request) (any, error) {
	c := callerOf(r)
	return Session{a.needsToken(r), c.role != "", c.role, c.project, a.gateway.Config().Admin.OIDC != nil}, nil
}

// signIn begins a session for a browser that sends the token.
func (a *Admin) signIn(r *http.Request) (any, error) {
	if a.fromOtherSite(r) {
		return nil, otherSite()
	}
	token := a.gateway.Config().Admin.Token.Reveal()
	if token == "" {
		return nil, problemf(http.StatusConflict, "a sign-in needs admin.token in the configuration, with which sessions are signed; from this machine, the admin API can be used without signing in")
	}
	attempt, d := a.sessions.attempts.Reserve(r)
	if p := tooManyFailed(d); p != nil {
		return nil, p
	}
	ask, err := decode[SignIn](r)
	if err != nil {
		return nil, err
	}
	c, ok := a.findToken(ask.Token, "session")
	if !ok {
		a.log.Warn("admin: a sign-in has failed", "client", r.RemoteAddr)
		return nil, problemf(http.StatusUnauthorized, "this is not a token of the admin API: it must be admin.token of the configuration, or one that was made with a role and is still valid")
	}
	attempt.Cancel()
	of := session{Role: c.role}
	if ticket, ok := a.gateway.Tokens().Ticket(ask.Token, time.Now().Add(sessionLength)); ok {
		of = session{Ticket: ticket}
	}
	return withCookie{sessionCookie(r, a.sessions.begin(of, token), sessionLength), Session{NeedsToken: true, SignedIn: true, Role: c.role, Project: c.project}}, nil
}

// signOut ends the session of a browser, and with it its streams.
func (a *Admin) signOut(r *http.Request) (any, error) {
	if a.fromOtherSite(r) {
		return nil, otherSite()
	}
	for _, c := range r.CookiesNamed(cookieName(r)) {
		_, found, ok := a.sessionOf(c.Value)
		if !ok {
			continue
		}
		if err := a.sessions.board.EndSession(r.Context(), found.ID, found.Ends); err != nil {
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
