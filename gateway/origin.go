package gateway

import (
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// checkOrigin refuses requests of other sites' pages in a browser, where clients need no
// virtual key: a page could spend the user's limits with the gateway's key, and read answers.
// It refuses pages that call the gateway by its own name, and by a name of their site that
// resolves to the gateway (DNS rebinding). Unlike [http.CrossOriginProtection], it refuses
// reads, too.
func (x *exchange) checkOrigin() *refusal {
	if x.cfg.Keys == config.KeysRequired {
		return nil
	}
	if !x.cfg.ServesHost(x.r.Host) {
		return refusalf(http.StatusForbidden, "the host is %.80q: with keys off, it must be an address, localhost, a name without a dot or below .internal, or one of server.hosts in the configuration", shortened(x.r.Host))
	}
	if crossSite(x.r) {
		return refusalf(http.StatusForbidden, "the request comes from a page of another site: with keys off, the gateway does not serve these")
	}
	return nil
}

// crossSite reports whether a browser says that the request is from a page of another origin.
func crossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin != "" && host != r.Host
}
