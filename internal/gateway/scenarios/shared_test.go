package scenarios

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Gateways on one store share one limit exactly.
func TestGatewaysShareLimits(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, small, p)
		a, b := launch(t, file, state), launch(t, file, state)
		for _, c := range overshoots {
			t.Run(c.name, func(t *testing.T) { overshoot(t, p, c.call, c.want, &a.gatewayURLs, &b.gatewayURLs) })
		}
	})
}

// keyed is a gateway with virtual keys and a key of the provider.
const keyed = `
keys: required
providers:
  openai: {base_url: MOCK, key: {file: KEY}, models: {m: {max_rpm: 1000}}}
defaults: {max_wait: 0s}
`

// secretFile writes a secret to a file, and returns its path.
func secretFile(t *testing.T, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A key that one gateway creates is valid at the other, and not any more after one has revoked
// it.
func TestGatewaysShareKeys(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, replaced(keyed, "KEY", secretFile(t, "sk-upstream")), p)
		a, b := launch(t, file, state), launch(t, file, state)
		manage := &admin.Client{Base: a.admin, HTTP: client}
		key, err := manage.CreateKey(t.Context(), admin.NewKey{Project: "search"})
		if err != nil {
			t.Fatal(err)
		}
		c := call{model: "m", key: key.Secret}
		c.must(t, &a.gatewayURLs, 200)
		testkit.Eventually(t, "the other knows the key", func() bool { said, err := c.to(&b.gatewayURLs); return err == nil && said.status == 200 })
		if err := manage.Revoke(t.Context(), admin.VirtualKey, key.ID); err != nil {
			t.Fatal(err)
		}
		c.must(t, &a.gatewayURLs, 401)
		testkit.Eventually(t, "the other knows that it is revoked", func() bool { said, err := c.to(&b.gatewayURLs); return err == nil && said.status == 401 })
		sent := len(p.arrivals(""))
		for range 5 {
			c.must(t, &b.gatewayURLs, 401)
		}
		if n := len(p.arrivals("")); n != sent {
			t.Errorf("%d calls with a revoked key were sent", n-sent)
		}
	})
}

// A pause that one gateway has got from the provider holds for the other, too, on Redis.
func TestGatewaysSharePauses(t *testing.T) {
	p := newProvider(t)
	file, state := written(t, small, p), lasting["redis"](t)
	a, b := launch(t, file, state), launch(t, file, state)
	call{model: "requests", mock: "status=429 retry-after=60s"}.must(t, &a.gatewayURLs, 429)
	testkit.Eventually(t, "the other has heard of it", func() bool { return b.quota(t, "requests").Paused > 0 })
	for range 5 {
		if said := (call{model: "requests"}).must(t, &b.gatewayURLs, 429); said.header.Get("Retry-After") == "" {
			t.Errorf("%v", said.header)
		}
	}
	if n := len(p.arrivals("")); n != 1 {
		t.Errorf("the provider was sent %d calls", n)
	}
}

// quota returns a model's quota from the admin API.
func (g *gatewayURLs) quota(t *testing.T, model string) (m admin.Model) {
	t.Helper()
	if err := json.Unmarshal([]byte(g.fetch(t, "/v1/quotas/"+model).body), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
