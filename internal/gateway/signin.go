package gateway

import (
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// The holder of a virtual key signs in on the page at /ratelimit. The browser then has a cookie, which is
// good for the gateway's own paths alone: it cannot call a model, and it does not contain the key. See
// docs/decisions/0042-a-cookie-for-key-holders.md.
const (
	ticketCookie = "ratelimit_ticket"
	ticketTime   = 12 * time.Hour
	maxSignIn    = 4 << 10 // bytes of a form
)

// signedIn returns the key that the cookie of the request stands for, if there is one and it is valid.
func (x *exchange) signedIn() (keys.Key, bool) {
	cookie, err := x.r.Cookie(ticketCookie)
	if err != nil {
		return keys.Key{}, false
	}
	return x.g.keys.FindTicket(cookie.Value)
}

// signIn answers the form with a virtual key: with a cookie, or with the form again.
func (x *exchange) signIn() *refusal {
	if refused := x.checkForm(); refused != nil {
		return refused
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxSignIn))
	if err != nil {
		return refusalf(http.StatusBadRequest, "the form cannot be read: it must have at most %d bytes", maxSignIn)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return refusalf(http.StatusBadRequest, "the form is not URL-encoded: it must have the field key")
	}
	ticket, ok := x.g.keys.Ticket(strings.TrimSpace(form.Get("key")), time.Now().Add(ticketTime))
	if !ok {
		return x.sendSignIn(http.StatusUnauthorized, "This is not a valid key. It may have expired, or have been replaced or revoked: ask whoever gave it to you.")
	}
	x.setTicket(ticket, int(ticketTime/time.Second))
	return x.seeOwn()
}

// signOut takes the cookie away.
func (x *exchange) signOut() *refusal {
	if refused := x.checkForm(); refused != nil {
		return refused
	}
	x.setTicket("", -1)
	return x.seeOwn()
}

// checkForm refuses forms of other sites, and what is no form. Pages of other sites must not sign anybody
// in or out.
func (x *exchange) checkForm() *refusal {
	if x.cfg.Keys != config.KeysRequired {
		return refusalf(http.StatusMethodNotAllowed, "this gateway has virtual keys switched off, so nobody signs in: GET %s", ownPaths)
	}
	if crossSite(x.r) {
		return refusalf(http.StatusForbidden, "the form comes from a page of another site")
	}
	if kind, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		return refusalf(http.StatusUnsupportedMediaType, "the body must be a form: application/x-www-form-urlencoded with the field key")
	}
	return nil
}

func (x *exchange) setTicket(ticket string, maxAge int) {
	http.SetCookie(x.w, &http.Cookie{
		Name: ticketCookie, Value: ticket, Path: ownPaths, MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: x.cfg.TLS != (config.TLS{}),
	})
}

// seeOwn sends the browser to the page, so that a reload does not send the form again.
func (x *exchange) seeOwn() *refusal {
	x.w.Header().Set("Location", ownPaths)
	return x.sendOwn(http.StatusSeeOther, "text/plain; charset=utf-8", nil)
}
