package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/llm"
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

func TestMaxima(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte(`prices:
  gpt-4o: {context: 64_000}
  mine: {input: 1, output: 2, context: 32_768, max_output: 4096}
  "*-mine": {max_output: 100}
`))
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]llm.Maxima{
		"gpt-4o": {Context: 64_000, Output: 16_384}, "mine": {Context: 32_768, Output: 4096}, "x-mine": {Output: 100}, "other": {},
	} {
		if got := c.Prices.Maxima("openai", model); got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
	usual, _ := price.Known().Of("openai", "gpt-4o", time.Now())
	if got, ok := c.Prices.Of("openai", "gpt-4o", time.Now()); !ok || got != usual {
		t.Errorf("gpt-4o has the price %v instead of the published one", got)
	}
	if _, ok := c.Prices.Of("openai", "x-mine", time.Now()); ok {
		t.Error("maxima are a price")
	}
	text, err := json.Marshal(c)
	for _, want := range []string{`"gpt-4o":{"context":64000}`, `"mine":{"input":1.00,"output":2.00,"context":32768,"max_output":4096}`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s, %v lacks %s", text, err, want)
		}
	}
}
