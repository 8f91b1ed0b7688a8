package config

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// readHosts reads the names by which clients may reach a gateway with keys off.
func (s *Server) readHosts(at place) {
	const want = "the name of a host, such as gateway.example.com, with or without a port"
	var host string
	readHost := strictyaml.Parsed(&host, want, func(text string) (string, bool) {
		name, port, err := net.SplitHostPort(text)
		if err != nil {
			name, port = text, "0"
		}
		_, err = strconv.ParseUint(port, 10, 16)
		return strings.ToLower(strings.TrimSuffix(text, ".")), err == nil && name != "" && fitHost(name)
	})
	at.Items(func(at place) {
		readHost(at)
		s.Hosts = append(s.Hosts, host)
	})
}

// ServesHost reports whether a request without a virtual key may name a host. A page of another
// site can make that site's name lead to the gateway (DNS rebinding), so names of the public DNS
// must be among Server.Hosts. Addresses, names without a dot, such as those of containers, and
// names below localhost and internal (Docker's host.docker.internal) are never in the public DNS.
func (c *Config) ServesHost(host string) bool {
	name := host
	if without, _, err := net.SplitHostPort(host); err == nil {
		name = without
	}
	name = strings.Trim(name, "[]")
	if !strings.Contains(name, ".") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".internal") ||
		slices.Contains(c.Server.Hosts, name) || slices.Contains(c.Server.Hosts, strings.ToLower(host))
}
