package gateway

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// Charges reports exactly the names of quotas to which requests may be charged.
func TestCharges(t *testing.T) {
	r := newRig(t, `
providers:
  openai: {base_url: MOCK, models: {known: {max_rpm: 1, aliases: [alias]}, "gpt-6*": {max_rpm: 1}}}
  azure:
    kind: azure
    deployments: {eu: {base_url: MOCK}, us: {base_url: MOCK}}
    models: {gpt-4o: {max_rpm: 1}}
  own: {kind: openai, base_url: MOCK, models: {small: {max_rpm: 1}}}
`, mockprovider.Config{})
	for name, want := range map[string]bool{
		"known": true, "openai/known": false, "alias": false, "openai/alias": false,
		"openai/gpt-6*": true, "gpt-6*": false, "openai/gpt-6-astra": false, "openai/gpt-7*": false,
		"unknown": false, "openai/unknown": true, "openai/a/b": true, "openai/": false, "openai": false, "": false, "/": false, "opnai/x": false,
		"azure/gpt-4o": false, "azure/gpt-4o@eu": true, "azure/gpt-4o@as": false, "azure/new@us": true, "azure/new": false, "azure/@us": false,
		"own/small": true, "small": false, "own/large": true, "own/large@eu": true,
	} {
		if got := r.Charges(name); got != want {
			t.Errorf("%q: %t; want %t", name, got, want)
		}
	}
	for _, model := range []string{"known", "alias", "gpt-6-astra", "unknown", "a/b"} {
		r.post(t, "/openai/v1/chat/completions", `{"model": "`+model+`", "messages": []}`)
		if rec := r.last(t); !r.Charges(rec.Quota) {
			t.Errorf("%s was charged to %q", model, rec.Quota)
		}
	}
}
