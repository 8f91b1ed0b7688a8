package config_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// Clients and the admin API cannot both listen where one of them would take the other's
// port.
func TestListenersThatCollide(t *testing.T) {
	t.Setenv("TOKEN", "token-1")
	for _, c := range []struct {
		clients, admin string
		collide        bool
	}{
		{"127.0.0.1:9000", "127.0.0.1:9000", true},
		{":9000", "127.0.0.1:9000", true},
		{"127.0.0.1:9000", ":9000", true},
		{"0.0.0.0:9000", "127.0.0.1:9000", true},
		{"0.0.0.0:9000", "[::1]:9000", true}, // it is all addresses of both kinds
		{"[::]:9000", "127.0.0.1:9000", true},
		{"localhost:9000", "127.0.0.1:9000", true},
		{"LOCALHOST:9000", "localhost:9000", true},
		{"127.0.0.1:9000", "127.0.0.2:9000", false},
		{"127.0.0.1:9000", "[::1]:9000", false},
		{":9000", ":9001", false},
		{":0", "127.0.0.1:0", false},
		{":9000", "off", false},
	} {
		text := "listen: '" + c.clients + "'\nadmin: {token: {env: TOKEN}, listen: '" + c.admin + "'}"
		if _, err := config.Parse("gateway.yaml", []byte(text)); (err != nil) != c.collide {
			t.Errorf("%s and %s: %v", c.clients, c.admin, err)
		}
	}
}
