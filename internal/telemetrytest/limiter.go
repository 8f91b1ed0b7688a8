package telemetrytest

import (
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// NewLimiter returns a limiter that ends with the test.
func NewLimiter(t testing.TB, cfg ratelimit.Config) *ratelimit.RateLimiter {
	t.Helper()
	cfg.FilePath = t.TempDir() + "/ratelimits.yaml"
	rl, err := ratelimit.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rl.Close() })
	return rl
}
