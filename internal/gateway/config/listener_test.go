package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// Clients and the admin API cannot have addresses of which one would take the other's port.
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
		{"0.0.0.0:9000", "[::1]:9000", true}, // 0.0.0.0 stands for all addresses, of IPv4 and IPv6
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

// A file for the audit log that no gateway could write is a fault. Checking it does not create
// it.
func TestAuditFile(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, fault := range map[string]string{
		old:              "",
		dir + "/new":     "",
		dir:              "it cannot be written: it must be a file",
		dir + "/none/x":  "its directory does not exist: it must be a file in one that does",
		old + "/below":   "it cannot be written: it must be a file",
		dir + "/none/..": "its directory does not exist: it must be a file in one that does",
	} {
		_, err := config.Parse("gateway.yaml", []byte("admin: {audit: "+path+"}"))
		if fault == "" && err != nil || fault != "" && (err == nil || err.Error() != "ratelimit: gateway.yaml:1:16: admin.audit: "+fault) {
			t.Errorf("%s: got %v, want %q", path, err, fault)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "{}\n" {
		t.Errorf("%q, %v", text, err)
	}
}
