// Package gatewaytest has what the tests of the gateway's packages have in common. It does not import
// package gateway, so that tests in that package can use it too.
package gatewaytest

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// Config returns the configuration that a YAML text describes. In the text, MOCK stands for the
// URL of a provider. The state is in memory unless the text says otherwise.
func Config(t testing.TB, yaml, mock string) *config.Config {
	t.Helper()
	if !strings.Contains(yaml, "state:") {
		yaml += "\nstate: memory\n"
	}
	cfg, err := config.Parse("test.yaml", []byte(strings.ReplaceAll(yaml, "MOCK", mock)))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
