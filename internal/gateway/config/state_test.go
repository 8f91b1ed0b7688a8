package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// What is meant for Redis is never taken for the name of a file: gateways on several machines would each count alone.
func TestStateIsNoFileByMistake(t *testing.T) {
	for _, text := range []string{
		"redis:6379", "localhost:6379", "10.0.0.7:6379", "redis.prod.internal:6379/0", "'[::1]:6379'", "redis:/127.0.0.1", "//redis/0", "REDIS:6379",
		"${REDIS_URL}", "$REDIS_URL", "redis://${HOST}:6379", "$(REDIS_URL)", "~/${NAME}.db",
	} {
		c, err := config.Parse("test.yaml", []byte("state: "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), "redis://127.0.0.1:6379/0") && !strings.Contains(err.Error(), "state: {env: REDIS_URL}") {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for _, text := range []string{"state.db", "/var/lib/x:1.db", "./redis:6379", `'C:\state.db'`, "memory", "redis://redis:6379/0"} {
		if _, err := config.Parse("test.yaml", []byte("state: "+text+"\n")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A flag that wins over the file says so, and one that wins over nothing does not.
func TestFlagsThatWinWarn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	for text, want := range map[string]bool{
		"state: redis://127.0.0.1:6379/0\n": true,
		"keys: off\n":                       false,
		"admin: {listen: 127.0.0.1:9}\n":    true,
		"admin: {audit: /dev/null}\n":       false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, config.Overrides{State: "memory", Admin: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "does not count, since the flag wins") }); got != want {
			t.Errorf("%s: %v", text, c.Warnings)
		}
	}
}
