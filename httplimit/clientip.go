package httplimit

import (
	"net/http"
	"net/netip"

	"dappco.re/go/core/go-ratelimit/internal/admit"
)

// ClientIP returns a function for [Identify] that identifies clients by their address: by the
// whole address of IPv4, and by the /64 of IPv6, which one customer has.
//
// The address is the peer's. If the peer is a trusted proxy, it is the rightmost address of
// X-Forwarded-For that is no trusted proxy. If all of them are, or the header is missing, it is
// the address that is farthest from the server. Only trusted proxies are believed, so a client
// cannot choose its identity. If a trusted proxy sends something else than an address, the
// client gets a 400.
//
// ClientIP panics if a prefix is not valid.
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

// ClientPrefix returns a key function for a [limit.Limiter] of requests. It identifies clients
// as [ClientIP] does, by the /32 of IPv4 and the /64 of IPv6. All requests for which ClientIP
// returns an error share the zero prefix.
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
