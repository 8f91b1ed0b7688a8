package config_test

import (
	"fmt"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/price"
)

func ExampleConfig_prices() {
	cfg, err := config.Parse("gateway.yaml", []byte(`
prices:
  gpt-6-astra: {input: 2.50, cached_input: 0.25, output: 10.00, batch: 50%}
unpriced: {input: 100, output: 500}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for _, model := range []string{"gpt-6-astra", "gpt-6-luna", "my-model"} {
		p, ok := cfg.Prices.Of("openai", model, now)
		if !ok {
			p = cfg.Unpriced
		}
		fmt.Println(model, ok, p.Most(1000, 100, "", now))
	}
	// Output:
	// gpt-6-astra true $0.0035
	// gpt-6-luna true $0.000175
	// my-model false $0.15
}

// Providers of the file are known by their names.
func TestPricesOfProviders(t *testing.T) {
	c := parsed(t, `
providers:
  europe: {kind: azure, base_url: "https://eu.example.com"}
  deepseek: {base_url: "https://api.deepseek.com"}
  own: {base_url: "http://127.0.0.1:9"}
prices:
  europe/gpt-4o: {input: 7}
  "llama*": {input: 1}
`)
	now := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for _, want := range []struct {
		provider, model string
		input           price.Rate
	}{
		{"europe", "gpt-4o", 7 * price.Dollar},
		{"europe", "gpt-5", 5 * price.Dollar / 4},
		{"openai", "gpt-4o", 5 * price.Dollar / 2},
		{"gemini", "models/gemini-2.5-pro", 5 * price.Dollar / 4},
		{"deepseek", "deepseek-chat", 27 * price.Dollar / 100},
		{"own", "llama-9", 1 * price.Dollar},
		{"own", "gpt-4o", 0},
	} {
		got := price.Rate(0)
		if p, ok := c.Prices.Of(want.provider, want.model, now); ok {
			got = p.Sheet(1, "", now).Input
		}
		if got != want.input {
			t.Errorf("%s of %s costs %v, want %v", want.model, want.provider, got, want.input)
		}
	}
}

func TestUnpriced(t *testing.T) {
	now := time.Now()
	if c := parsed(t, "unpriced: deny"); c.Unpriced != nil {
		t.Errorf("a denied model costs %v", c.Unpriced)
	}
	if c := parsed(t, "unpriced: free"); c.Unpriced == nil || c.Unpriced.Most(1000, 1000, "", now) != 0 {
		t.Errorf("a free model costs %v", c.Unpriced)
	}
	if c := parsed(t, "unpriced: {input: 5_000, output: 0.5}"); c.Unpriced.Most(1_000_000, 1_000_000, "", now) != 5000*price.Dollar+price.Dollar/2 {
		t.Errorf("a model without a price costs %v", c.Unpriced.Terms())
	}
}
