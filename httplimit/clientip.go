package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// errForwarded does not repeat what was sent.
var errForwarded = errors.New("ratelimit: X-Forwarded-For has something that is no IP address, after those that can be believed")

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
	proxies := make([]netip.Prefix, len(trusted))
	for i, p := range trusted {
		if !p.IsValid() {
			panic(fmt.Sprintf("ratelimit: ClientIP: prefix %d is not valid", i+1))
		}
		proxies[i] = unmapped(p)
	}
	isProxy := func(a netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return func(r *http.Request) (string, error) {
		client, ok := parseAddr(r.RemoteAddr)
		if !ok {
			return "", fmt.Errorf("ratelimit: the client's address is not known: %q is no IP address", r.RemoteAddr)
		}
		lines := r.Header["X-Forwarded-For"]
		for line, hop := "", ""; isProxy(client); {
			for line == "" {
				if len(lines) == 0 {
					return identity(client), nil
				}
				line, lines = lines[len(lines)-1], lines[:len(lines)-1]
			}
			line, hop = cutLast(line)
			if hop == "" {
				continue
			}
			if client, ok = parseAddr(hop); !ok {
				return "", errForwarded
			}
		}
		return identity(client), nil
	}
}

// cutLast returns what stands before and after the last comma of a list.
func cutLast(list string) (rest, last string) {
	comma := strings.LastIndexByte(list, ',')
	return list[:max(comma, 0)], strings.Trim(list[comma+1:], " \t")
}

// parseAddr reads an address, with or without a port. IPv4 in IPv6 is IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(s); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a.Unmap().WithZone(""), err == nil
}

// unmapped returns a prefix of IPv4 in IPv6 as one of IPv4.
func unmapped(p netip.Prefix) netip.Prefix {
	if !p.Addr().Is4In6() || p.Bits() < 96 {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
}

// identity returns the name of the project that a client is.
func identity(a netip.Addr) string {
	if a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}
