package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// checkOrigin refuses pages of other sites where clients need no virtual key: those that
// call the gateway directly, and those that have a name of their own site lead to it (DNS
// rebinding). They could spend the user's limits and the gateway's key, and read answers.
// Reads are refused as well, unlike by [http.CrossOriginProtection].
func (x *exchange) checkOrigin() *refusal {
	if x.cfg.Keys == config.KeysRequired {
		return nil
	}
	if !x.cfg.ServesHost(x.r.Host) {
		return x.bad(http.StatusForbidden, fmt.Sprintf("the host is %.80q: with keys off, it must be an address, localhost, a name without a dot or below .internal, or one of server.hosts in the configuration", shortened(x.r.Host)))
	}
	if crossSite(x.r) {
		return x.bad(http.StatusForbidden, "the request comes from a page of another site: with keys off, the gateway does not serve these")
	}
	return nil
}

// crossSite reports whether a browser says that a page of another origin makes the request.
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
