package config

import (
	"net"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// readHosts reads the names by which clients may reach a gateway with keys off.
func (s *Server) readHosts(at yamlValue) {
	const want = "the name of a host, such as gateway.example.com, with or without a port"
	var host string
	readHost := strictyaml.Parsed(&host, want, func(text string) (string, bool) {
		name, port, err := net.SplitHostPort(text)
		if err != nil {
			name, port = text, "0"
		}
		_, err = strconv.ParseUint(port, 10, 16)
		return strings.ToLower(strings.TrimSuffix(text, ".")), err == nil && name != "" && validHost(name)
	})
	at.Items(func(at yamlValue) {
		readHost(at)
		s.Hosts = append(s.Hosts, host)
	})
}
