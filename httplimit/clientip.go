package httplimit

import (
	"net/http"
	"net/netip"

	"dappco.re/go/core/go-ratelimit/internal/admit"
)

// ClientIP returns a function for [Identify] that tells clients apart by their
// address: IPv4 by all of it, IPv6 by its /64, which is what one customer has.
//
// The address is that of the peer. If the peer is one of the trusted proxies, it
// is the rightmost address of X-Forwarded-For that is none of them; if all are, or
// none is there, it is the one farthest away. Only trusted proxies are believed, so a client
// cannot choose who it is, whatever it sends. If a trusted proxy sends what is no address
// there, the request is a 400.
//
// It panics if a prefix is not valid.
func ClientIP(trusted ...netip.Prefix) func(*http.Request) (string, error) {
	proxies := admit.Trust(trusted)
	return func(r *http.Request) (string, error) {
		client, err := clientOf(r, proxies)
		switch {
		case err != nil:
			return "", err
		case client.Addr().Is4():
			return client.Addr().String(), nil
		}
		return client.String(), nil
	}
}

// ClientPrefix returns a key function for a [limit.Limiter] of requests, which
// tells clients apart as [ClientIP] does: by the /32 of IPv4, and by the /64 of
// IPv6. Requests whose client is not known, for which ClientIP has an error, share
// the zero prefix.
func ClientPrefix(trusted ...netip.Prefix) func(*http.Request) netip.Prefix {
	proxies := admit.Trust(trusted)
	return func(r *http.Request) netip.Prefix {
		client, _ := clientOf(r, proxies)
		return client
	}
}

func clientOf(r *http.Request, proxies admit.Proxies) (netip.Prefix, error) {
	return proxies.Client(r.RemoteAddr, r.Header["X-Forwarded-For"])
}
