package price_test

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// published is an example that a provider has worked out itself.
type published struct {
	source string // where it was published, and when it was read or dated
	calls  int    // how many such calls the example is about; 0 is one
	usage  llm.Usage
	want   string // dollars for all of them

	provider, model string // whose price the table has, or
	rates           price.Rates
	at              time.Time // the date of the call; zero: today
}

// The examples that providers publish come out to the nanodollar.
func TestExamplesOfProviders(t *testing.T) {
	const legal = "https://platform.claude.com/docs/en/about-claude/use-case-guides/legal-summarization, of late 2025"
	const claude = "https://platform.claude.com/docs/en/about-claude/pricing, "
	for name, c := range map[string]published{
		"summaries by Sonnet": { // 86 MTok * $3.00 + 0.35 MTok * $15.00 = $263.25
			source: legal, provider: "anthropic", model: "claude-sonnet-4-5", calls: 1000,
			usage: llm.Usage{Input: 86_000, Output: 350}, want: "263.25",
		},
		"summaries by Haiku": { // 86 MTok * $0.25 = $21.50, and 0.35 MTok * $1.25, which the page rounds to $0.44
			source: legal, provider: "anthropic", model: "claude-3-haiku-20240307", calls: 1000,
			usage: llm.Usage{Input: 86_000, Output: 350}, want: "21.9375",
		},
		"an hour of coding": { // $0.25 + $0.375; with $0.08 for the hour, the page has $0.705
			source: claude + "of April 2026", provider: "anthropic", model: "claude-opus-4-6",
			usage: llm.Usage{Input: 50_000, Output: 15_000}, want: "0.625",
		},
		"an hour of coding with a cache": { // $0.05 + $0.02 + $0.375; with $0.08 for the hour, the page has $0.525
			source: claude + "of April 2026", provider: "anthropic", model: "claude-opus-4-6",
			usage: llm.Usage{Input: 50_000, Cached: 40_000, Output: 15_000}, want: "0.445",
		},
		"a million of each part": { // $3.75 + $6 + $0.30 + $15, and the base input of $3
			source: claude + "of autumn 2025", provider: "anthropic", model: "claude-sonnet-4-20250514",
			usage: llm.Usage{Input: 4_000_000, CacheWrite: 2_000_000, CacheWriteHour: 1_000_000, Cached: 1_000_000, Output: 1_000_000}, want: "28.05",
		},
		"a million each way in a batch": { // $7.50 + $37.50
			source: claude + "of autumn 2025", provider: "anthropic", model: "claude-opus-4-1",
			usage: llm.Usage{Input: 1_000_000, Output: 1_000_000, Tier: "batch"}, want: "45.00",
		},
		"a response of Grok 4.20": { // "cost_in_usd_ticks": 37756000, of 10^10 a dollar; its prices are lower now
			source: "https://docs.x.ai/docs/api-reference, the response of 2026-03-23",
			rates:  price.Rates{Input: 2 * price.Dollar, CachedInput: price.Dollar / 5, Output: 6 * price.Dollar}, at: time.Unix(1774274151, 0),
			usage: llm.Usage{Input: 131, Cached: 128, Output: 624, Reasoning: 246}, want: "0.0037756",
		},
		"a cost that OpenRouter tells": { // "cost": 0.95
			source: "https://openrouter.ai/docs/use-cases/usage-accounting, read in November 2026", provider: "openrouter", model: "openai/gpt-4o",
			usage: llm.Usage{Input: 194, Output: 2, Cost: 950_000_000, CostTold: true}, want: "0.95",
		},
	} {
		at := today
		if !c.at.IsZero() {
			at = c.at
		}
		p, ok := price.Known().Of(c.provider, c.model, at)
		if c.model == "" {
			p, ok = mustNew(t, price.Terms{Rates: c.rates}), true
		}
		if !ok {
			t.Errorf("%s: no price", name)
			continue
		}
		one, lines := cost(t, p, c.usage, at)
		if got := one * price.Amount(max(c.calls, 1)); got.Decimal() != c.want {
			t.Errorf("%s: it costs %s, want %s (%s): %+v", name, got.Decimal(), c.want, c.source, lines)
		}
	}
}
