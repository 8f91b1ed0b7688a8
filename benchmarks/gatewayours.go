package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
)

const (
	nameGateway       = "gateway, memory"
	nameGatewaySQLite = "gateway, SQLite"
)

// gatewayConfig has all limits on, and all of them too large to be reached: the model's, and those
// of the project whose key the clients have. Nothing is logged, as by the other proxies.
const gatewayConfig = `
listen: 127.0.0.1:0
admin: {listen: "off"}
state: %s
keys: required
providers:
  mock:
    kind: openai
    base_url: http://%s
    key: {env: BENCHMARKS_PROVIDER_KEY}
    models:
      ` + bodyModel + `: {max_rpm: 100_000_000, max_tpm: 100_000_000_000, max_rpd: 10_000_000_000}
projects:
  search:
    requests_per_minute: 100_000_000
    requests_per_hour: 1_000_000_000
    requests_per_day: 10_000_000_000
    tokens_per_minute: 100_000_000_000
    tokens_per_hour: 1_000_000_000_000
    tokens_per_day: 10_000_000_000_000
log: {level: "off"}
`

// gatewayInMemory is the gateway as `ratelimit serve` runs it.
func gatewayInMemory(upstream string) (door, error) { return startGateway(config.Memory, upstream) }

// gatewayOnSQLite is the same with its counters in a file, in the directory of the process.
func gatewayOnSQLite(upstream string) (door, error) { return startGateway("./ratelimits.db", upstream) }

func startGateway(state, upstream string) (door, error) {
	r, err := runGateway(gatewayConfig, state, upstream)
	if err != nil {
		return door{}, err
	}
	secret, _, err := r.Gateway.Keys().Create(context.Background(), "search", "benchmarks", time.Hour)
	return door{Address: r.Clients.String(), Path: "/mock", Secret: secret}, err
}

// runGateway runs a gateway until the process ends. The configuration has places for the state and the
// provider's address.
func runGateway(configuration, state, upstream string) (server.Running, error) {
	os.Setenv("BENCHMARKS_PROVIDER_KEY", "sk-0123456789abcdef")
	text := fmt.Appendf(nil, configuration, state, upstream)
	started, failed := make(chan server.Running, 1), make(chan error, 1)
	go func() {
		failed <- server.Run(context.Background(), server.Options{
			Load:    func() (*config.Config, error) { return config.Parse("benchmarks.yaml", text) },
			Started: func(r server.Running) { started <- r },
		})
	}()
	select {
	case err := <-failed:
		return server.Running{}, err
	case r := <-started:
		return r, nil
	}
}
