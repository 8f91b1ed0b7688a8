package config

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// readHosts reads the names at which clients may reach a gateway that has keys off.
func (s *Server) readHosts(at place) {
	const want = "the name of a host, such as gateway.example.com, with or without a port"
	at.items(func(at place) {
		text, ok := at.text(want)
		if !ok {
			return
		}
		name, port, err := net.SplitHostPort(text)
		if err != nil {
			name, port = text, "0"
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || name == "" || !fitHost(name) {
			at.fault("%s: it must be %s", shown(text), want)
			return
		}
		s.Hosts = append(s.Hosts, strings.ToLower(strings.TrimSuffix(text, ".")))
	})
}

// ServesHost reports whether a request without a virtual key may name a host. A page of
// another site can make a name of that site lead to the gateway (DNS rebinding), so names
// of the public DNS must be among Server.Hosts. Addresses, names without a dot, such as those
// of containers, and names below localhost and internal (Docker's host.docker.internal) never
// are such names.
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
