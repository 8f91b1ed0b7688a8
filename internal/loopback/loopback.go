// Package loopback recognizes addresses that only this machine can reach.
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// Is reports whether only this machine can reach an address, which may have a port.
func Is(address string) bool {
	host := address
	if name, _, err := net.SplitHostPort(address); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
