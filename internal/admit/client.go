package admit

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// errForwarded does not quote the header, which a client may have sent.
var errForwarded = errors.New("ratelimit: X-Forwarded-For has something that is no IP address, after those that can be believed")

// Proxies are the addresses of trusted proxies, whose X-Forwarded-For is believed.
type Proxies []netip.Prefix

// Trust returns the proxies with these prefixes. It panics if a prefix is not valid.
func Trust(trusted []netip.Prefix) Proxies {
	proxies := make(Proxies, len(trusted))
	for i, p := range trusted {
		if !p.IsValid() {
			panic(fmt.Sprintf("ratelimit: trusted proxies: prefix %d is not valid", i+1))
		}
		proxies[i] = unmapped(p)
	}
	return proxies
}

func (p Proxies) include(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Client returns the prefix of the client's address: the /32 of IPv4, or the /64 of IPv6, which
// one customer has. The client is the peer. If the peer is a trusted proxy, the client is the
// rightmost forwarded address that is no trusted proxy; if there is none, it is the proxy that
// is farthest away. forwarded is the values of X-Forwarded-For.
func (p Proxies) Client(peer string, forwarded []string) (netip.Prefix, error) {
	client, ok := parseAddr(peer)
	if !ok {
		return netip.Prefix{}, fmt.Errorf("ratelimit: the client's address is not known: %q is no IP address", peer)
	}
	for line, hop := "", ""; p.include(client); {
		for line == "" {
			if len(forwarded) == 0 {
				return prefixOf(client), nil
			}
			line, forwarded = forwarded[len(forwarded)-1], forwarded[:len(forwarded)-1]
		}
		line, hop = cutLast(line)
		if hop == "" {
			continue
		}
		if client, ok = parseAddr(hop); !ok {
			return netip.Prefix{}, errForwarded
		}
	}
	return prefixOf(client), nil
}

// cutLast returns the texts before and after the last comma of a list.
func cutLast(list string) (rest, last string) {
	comma := strings.LastIndexByte(list, ',')
	return list[:max(comma, 0)], strings.Trim(list[comma+1:], " \t")
}

// parseAddr reads an address, with or without a port. It returns an IPv4 address that is mapped
// to IPv6 as IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	if strings.Contains(s, "]:") || strings.Count(s, ":") == 1 { // other texts have no port, and an error costs an allocation
		if withPort, err := netip.ParseAddrPort(s); err == nil {
			return withPort.Addr().Unmap().WithZone(""), true
		}
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a.Unmap().WithZone(""), err == nil
}

// unmapped returns p, or the prefix of IPv4 if p has IPv4 addresses that are mapped to IPv6.
func unmapped(p netip.Prefix) netip.Prefix {
	if !p.Addr().Is4In6() || p.Bits() < 96 {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
}

func prefixOf(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(a, 32)
	}
	return netip.PrefixFrom(a, 64).Masked()
}
