package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
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
	if !servesHost(x.r.Host, x.cfg.Server.Hosts) {
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

// servesHost reports whether a request without a virtual key may name a host. A page of another
// site can make that site's name lead to the gateway (DNS rebinding), so names of the public DNS
// must be among hosts. Addresses, names without a dot, such as those of containers, and names
// below localhost and internal (Docker's host.docker.internal) are never in the public DNS.
func servesHost(host string, hosts []string) bool {
	name := host
	if without, _, err := net.SplitHostPort(host); err == nil {
		name = without
	}
	name = strings.Trim(name, "[]")
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".internal") ||
		slices.Contains(hosts, name) || slices.Contains(hosts, strings.ToLower(host))
}
