package price_test

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// What calls use beside tokens costs what its unit says: an image, a minute of audio by the second, a million
// characters, a thousand searches or pages. The most that is reserved is never less.
func TestUnits(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		rates price.Rates
		used  llm.Units
		cost  price.Amount
	}{
		{price.Rates{Image: price.Dollar / 25}, llm.Units{llm.Images: 3}, 120_000_000},
		{price.Rates{AudioMinute: 6_000_000}, llm.Units{llm.AudioSeconds: 61}, 6_100_000},
		{price.Rates{AudioMinute: 1_850_000}, llm.Units{llm.AudioSeconds: 7}, 215_834}, // 0.111 an hour: rounded up
		{price.Rates{Characters: 15 * price.Dollar}, llm.Units{llm.Characters: 4095}, 61_425_000},
		{price.Rates{Input: price.Dollar, WebSearches: 10 * price.Dollar}, llm.Units{llm.WebSearches: 2}, 20_000_000},
		{price.Rates{Input: price.Dollar, FileSearches: 5 * price.Dollar / 2}, llm.Units{llm.FileSearches: 1}, 2_500_000},
		{price.Rates{Pages: price.Dollar}, llm.Units{llm.Pages: 1000}, price.Dollar},
		{price.Rates{Output: price.Dollar}, llm.Units{llm.Images: 9, llm.Pages: 9}, 0}, // tokens pay for them
		{price.Rates{Request: price.Dollar}, llm.Units{llm.Images: 9}, price.Dollar},   // each call pays for them
		{price.Rates{Image: price.MaxUnitRate}, llm.Units{llm.Images: 2}, 2000 * price.Dollar},
		{price.Rates{Image: price.Free}, llm.Units{llm.Images: 2}, 0},
	} {
		p, err := price.New(price.Terms{Rates: c.rates, Batch: price.Service{Percent: 50}})
		if err != nil {
			t.Fatal(err)
		}
		u := llm.Usage{Units: c.used, Exact: true}
		cost, lines := p.Cost(u, now)
		sum := price.Amount(0)
		for _, l := range lines {
			sum += l.Cost
		}
		if cost != c.cost || sum != cost || p.Total(u, now) != cost {
			t.Errorf("%+v of %+v: %v, %v in lines, in total %v; want %v", c.used, c.rates, cost, sum, p.Total(u, now), c.cost)
		}
		most, ok := p.Units(c.used, now)
		most += p.Most(0, 0, "", now)
		if !ok || most < cost {
			t.Errorf("%+v of %+v: at most %v, %t; it costs %v", c.used, c.rates, most, ok, cost)
		}
		if c.rates.Request == 0 && c.cost > 0 && p.Total(llm.Usage{Units: c.used, Tier: "batch"}, now) != c.cost {
			t.Errorf("%+v of %+v: the tier batch changes it", c.used, c.rates)
		}
	}
	p, err := price.New(price.Terms{Rates: price.Rates{Input: price.Dollar}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Units(llm.Units{llm.WebSearches: 1}, now); ok {
		t.Error("web searches without a price are free by accident")
	}
	if _, err := price.New(price.Terms{Rates: price.Rates{Image: price.MaxUnitRate + 1}}); err == nil {
		t.Error("an image of more than a thousand dollars")
	}
}
