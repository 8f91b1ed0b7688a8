package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// Paths of the client listener that are the gateway's own, and no provider's.
const (
	ownPaths    = "/ratelimit"
	pathSignOut = ownPaths + "/signout"
	pathMe      = ownPaths + "/v1/me"
	pathMyUsage = pathMe + "/usage"
)

// ownPath reports whether the path of the request is the gateway's own.
func (x *exchange) ownPath() bool {
	return below(x.r.URL.Path, ownPaths) && x.setup.upstreams[strings.Trim(ownPaths, "/")] == nil
}

// serveOwn answers a request for a path of the gateway's own. It charges nothing.
func (x *exchange) serveOwn() *refusal {
	x.target.RawQuery = x.r.URL.RawQuery // may have the key
	if refused := x.checkOrigin(); refused != nil {
		return refused
	}
	h := x.w.Header()
	h["Cache-Control"], h["Vary"], h["X-Content-Type-Options"] = []string{"no-store"}, []string{"Accept, Cookie"}, []string{"nosniff"}
	h["Referrer-Policy"] = []string{"same-origin"} // the address may have a key; a form of this page has to say where it comes from
	switch path := strings.TrimSuffix(x.r.URL.Path, "/"); {
	case path == ownPaths && x.r.Method == http.MethodPost:
		return x.signIn()
	case path == pathSignOut && x.r.Method == http.MethodPost:
		return x.signOut()
	case path == ownPaths && x.unknownBrowser():
		return x.sendSignIn(http.StatusOK, "")
	}
	if refused := x.identifyOwn(); refused != nil {
		return refused
	}
	return x.serveOwner()
}

// serveOwner answers a client that is known.
func (x *exchange) serveOwner() *refusal {
	path := strings.TrimSuffix(x.r.URL.Path, "/")
	switch {
	case path != ownPaths && path != pathMe && path != pathMyUsage:
		return refusalf(http.StatusNotFound, "the gateway has nothing at this path: GET %s says what is left of the limits, and GET %s what was used", pathMe, pathMyUsage)
	case x.r.Method != http.MethodGet && x.r.Method != http.MethodHead:
		x.w.Header().Set("Allow", "GET, HEAD")
		return refusalf(http.StatusMethodNotAllowed, "the method must be GET or HEAD")
	case path == pathMyUsage:
		return x.serveMyUsage()
	}
	me, err := x.me()
	if err != nil {
		return x.undecided(err)
	}
	if prefersHTML(x.r.Header.Values("Accept")) {
		return x.sendPage(http.StatusOK, "What is left of "+me.Project, x.newHome(me).write)
	}
	return x.sendOwnJSON(me)
}

// identifyOwn finds the project of a request as identify does. A browser that has signed in has a cookie
// in place of a virtual key.
func (x *exchange) identifyOwn() *refusal {
	if _, _, sent := x.findKey(); !sent && x.cfg.Keys == config.KeysRequired {
		if key, ok := x.signedIn(); ok {
			x.useKey(&key)
			return firstRefusal(x.identifyRun, x.identifyUser)
		}
	}
	return x.identify()
}

// unknownBrowser reports whether the request comes from a browser without a valid key, which is shown where
// it can sign in.
func (x *exchange) unknownBrowser() bool {
	if x.cfg.Keys != config.KeysRequired || !prefersHTML(x.r.Header.Values("Accept")) {
		return false
	}
	_, _, sent := x.findKey()
	_, signedIn := x.signedIn()
	return !sent && !signedIn && (x.r.Method == http.MethodGet || x.r.Method == http.MethodHead)
}

func (x *exchange) sendOwnJSON(answer any) *refusal {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetIndent("", "  ")
	encoder.Encode(answer) // texts, times and numbers, which do not fail
	return x.sendOwn(http.StatusOK, "application/json", body.Bytes())
}

// sendOwn sends an answer of the gateway's own.
func (x *exchange) sendOwn(status int, kind string, body []byte) *refusal {
	h := x.w.Header()
	h["Content-Type"], h["Content-Length"] = []string{kind}, []string{strconv.Itoa(len(body))}
	x.setRequestID(h)
	x.Outcome, x.Status = Passed, status
	if status >= http.StatusBadRequest {
		x.Outcome = Refused
	}
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		x.write(body, false)
	}
	return nil
}
