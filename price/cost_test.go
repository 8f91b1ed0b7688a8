package price_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

var today = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func mustNew(t interface{ Fatal(...any) }, terms ...price.Terms) *price.Price {
	p, err := price.New(terms...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// cost returns what a call costs, and fails the test unless the lines add up to it and Total agrees.
func cost(t interface{ Fatalf(string, ...any) }, p *price.Price, u llm.Usage, at time.Time) (price.Amount, []price.Line) {
	whole, lines := p.Cost(u, at)
	sum := price.Amount(0)
	for _, l := range lines {
		sum += l.Cost
	}
	if total := p.Total(u, at); sum != whole || total != whole {
		t.Fatalf("%+v costs %v, its lines %v, and Total says %v", u, whole, sum, total)
	}
	return whole, lines
}

// Each part has its own price or that of its kind, and no token is counted twice.
func TestParts(t *testing.T) {
	all := price.Rates{
		Input: 1 * price.Dollar, CachedInput: 2 * price.Dollar, CacheWrite: 3 * price.Dollar, CacheWriteHour: 4 * price.Dollar,
		AudioInput: 5 * price.Dollar, CachedAudio: 6 * price.Dollar, ImageInput: 7 * price.Dollar, Output: 8 * price.Dollar,
		Reasoning: 9 * price.Dollar, AudioOutput: 10 * price.Dollar, ImageOutput: 11 * price.Dollar,
	}
	plain := price.Rates{Input: 1 * price.Dollar, Output: 8 * price.Dollar}
	audio := price.Rates{Input: 1 * price.Dollar, CachedInput: 2 * price.Dollar, AudioInput: 5 * price.Dollar}
	cached := price.Rates{Input: 1 * price.Dollar, CachedInput: 2 * price.Dollar, CacheWrite: 3 * price.Dollar}
	free := price.Rates{Input: 1 * price.Dollar, CachedInput: price.Free}
	full := llm.Usage{
		Input: 100, Cached: 30, CacheWrite: 20, CacheWriteHour: 5, InputAudio: 15, CachedAudio: 10, InputImage: 7,
		Output: 50, Reasoning: 20, OutputAudio: 4, OutputImage: 3,
	}
	for name, c := range map[string]struct {
		rates price.Rates
		usage llm.Usage
		want  price.Amount // in millionths of a dollar
	}{
		"every part":              {all, full, 1*(100-20-30-5-7) + 2*20 + 3*15 + 4*5 + 5*5 + 6*10 + 7*7 + 8*(50-27) + 9*20 + 10*4 + 11*3},
		"no price of their own":   {plain, full, 1*100 + 8*50},
		"cached audio as audio":   {audio, full, 1*(100-15-20) + 2*20 + 5*15},
		"an hour as five minutes": {cached, full, 1*(100-20-30) + 2*30 + 3*20},
		"free":                    {free, llm.Usage{Input: 100, Cached: 40}, 60},
		"unknown prompt":          {plain, llm.Usage{Input: -1, Cached: 5, Output: 2}, 16},
		"nothing":                 {all, llm.Usage{}, 0},
		"more cached than input":  {all, llm.Usage{Input: 10, Cached: 50}, 2 * 10},
		"more parts than input":   {all, llm.Usage{Input: 10, Cached: 8, CacheWrite: 8, InputImage: 8}, 3*8 + 2*2},
		"more hours than writes":  {all, llm.Usage{Input: 10, CacheWrite: 2, CacheWriteHour: 5}, 4*2 + 8},
		"more parts than output":  {all, llm.Usage{Output: 10, Reasoning: 9, OutputAudio: 5}, 10*5 + 9*5},
		"negative parts":          {all, llm.Usage{Input: 10, Cached: -5, CacheWrite: -3, Output: -4, Reasoning: -1}, 10},
		"images in the cache":     {all, llm.Usage{Input: 10, Cached: 9, InputImage: 8}, 2*9 + 7},
	} {
		p := mustNew(t, price.Terms{Rates: c.rates})
		if got, lines := cost(t, p, c.usage, today); got != c.want*1000 {
			t.Errorf("%s: it costs %d, want %d: %+v", name, got, c.want*1000, lines)
		}
	}
}

// What the provider reports wins, whatever the prices are.
func TestTold(t *testing.T) {
	p := mustNew(t, price.Terms{Rates: price.Rates{Input: price.Dollar, Request: price.Dollar}})
	if got, lines := cost(t, p, llm.Usage{Input: 5, Cost: 123, CostTold: true}, today); got != 123 || len(lines) != 1 || lines[0].Part != "told" {
		t.Errorf("it costs %v: %+v", got, lines)
	}
	if got, _ := cost(t, p, llm.Usage{Cost: -1, CostTold: true}, today); got != 0 {
		t.Errorf("a negative cost is %v", got)
	}
}

// The price of the prompt's size holds for the whole call; tiers and dates have their own prices.
func TestSheets(t *testing.T) {
	march := time.Date(2026, 3, 13, 0, 0, 0, 0, time.UTC)
	p := mustNew(t,
		price.Terms{Rates: price.Rates{Input: 9 * price.Dollar, Output: 9 * price.Dollar}},
		price.Terms{
			From:     march,
			Rates:    price.Rates{Input: 3 * price.Dollar, CachedInput: 1 * price.Dollar, Output: 15 * price.Dollar, Request: 2000},
			Above:    []price.Above{{Tokens: 200, Rates: price.Rates{Input: 6 * price.Dollar}}, {Tokens: 500, Rates: price.Rates{Output: 20 * price.Dollar}}},
			Batch:    price.Service{Percent: 50},
			Flex:     price.Service{Rates: price.Rates{Input: 2 * price.Dollar}},
			Priority: price.Service{Rates: price.Rates{Input: 4 * price.Dollar}, Above: []price.Above{{Tokens: 100, Rates: price.Rates{Input: 5 * price.Dollar}}}},
		},
	)
	for name, c := range map[string]struct {
		usage llm.Usage
		at    time.Time
		want  price.Amount
	}{
		"before the date":            {llm.Usage{Input: 300, Output: 1}, march.Add(-1), 301 * 9000},
		"on the date":                {llm.Usage{Input: 100, Output: 1}, march, 100*3000 + 15000 + 2000},
		"at the size":                {llm.Usage{Input: 200}, today, 200*3000 + 2000},
		"above the size":             {llm.Usage{Input: 201, Cached: 1, Output: 1}, today, 200*6000 + 1000 + 15000 + 2000},
		"above both sizes":           {llm.Usage{Input: 501, Output: 1}, today, 501*6000 + 20000 + 2000},
		"batch":                      {llm.Usage{Input: 201, Output: 1, Tier: "batch"}, today, (201*6000 + 15000 + 2000) / 2},
		"own prices":                 {llm.Usage{Input: 100, Cached: 50, Output: 1, Tier: "flex"}, today, 50*2000 + 50*1000 + 15000 + 2000},
		"own prices, above the size": {llm.Usage{Input: 201, Tier: "flex"}, today, 201*6000 + 2000},
		"own sizes":                  {llm.Usage{Input: 101, Tier: "priority"}, today, 101*5000 + 2000},
		"an unknown tier":            {llm.Usage{Input: 1, Tier: "scale"}, today, 3000 + 2000},
	} {
		if got, lines := cost(t, p, c.usage, c.at); got != c.want {
			t.Errorf("%s: it costs %d, want %d: %+v", name, got, c.want, lines)
		}
	}
	s := p.Sheet(501, "batch", today)
	if s.From != march || s.Tier != "batch" || s.Tokens != 500 || s.Input != 3*price.Dollar || s.CacheWrite != 3*price.Dollar {
		t.Errorf("the sheet is %+v", s)
	}
	if s := p.Sheet(1, "batch", march.Add(-1)); s.Tier != "" {
		t.Errorf("there was no price for batches, and the sheet is %+v", s)
	}
}

// Every call is rounded up once, and numbers that are too large stay the largest.
func TestRounding(t *testing.T) {
	p := mustNew(t, price.Terms{Rates: price.Rates{Input: 1, Output: 1}})
	for u, want := range map[llm.Usage]price.Amount{
		{Input: 1}:                                1,
		{Input: 1, Output: 1}:                     1,
		{Input: 500_000, Output: 500_000}:         1,
		{Input: 500_000, Output: 500_001}:         2,
		{Input: math.MaxInt, Output: math.MaxInt}: 18446744073710,
	} {
		if got, lines := cost(t, p, u, today); got != want {
			t.Errorf("%+v costs %d, want %d: %+v", u, got, want, lines)
		}
	}
	dear := mustNew(t, price.Terms{Rates: price.Rates{Input: price.MaxRate, Output: price.MaxRate, Request: price.MaxRate}})
	if got, _ := cost(t, dear, llm.Usage{Input: math.MaxInt, Output: math.MaxInt}, today); got != math.MaxInt64 {
		t.Errorf("it costs %d", got)
	}
	if got := dear.Most(math.MaxInt, math.MaxInt, "", today); got != math.MaxInt64 {
		t.Errorf("it costs %d at most", got)
	}
}

// Costs are those of big numbers, and never more than Most says.
func TestCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := drawTerms(t)
		u := drawUsage(t)
		p := mustNew(t, terms)
		got, _ := cost(t, p, u, today)
		if want := naiveCost(terms, u); big.NewInt(int64(got)).Cmp(want) != 0 {
			t.Fatalf("%+v costs %d, want %v", u, got, want)
		}
		if most := p.Most(max(u.Input, 0), u.Output, u.Tier, today); most < got && u.Cached == 0 {
			t.Fatalf("%+v costs %v, and at most %v", u, got, most)
		}
	})
}

func TestMostIsReachedByCacheWrites(t *testing.T) {
	p := mustNew(t, price.Terms{
		Rates: price.Rates{Input: 3 * price.Dollar, CacheWrite: 15 * price.Dollar / 4, CacheWriteHour: 6 * price.Dollar, Output: 15 * price.Dollar},
		Above: []price.Above{{Tokens: 1000, Rates: price.Rates{CacheWriteHour: 12 * price.Dollar}}},
	})
	for _, input := range []int{10, 1000, 1001} {
		u := llm.Usage{Input: input, CacheWrite: input, CacheWriteHour: input, Output: 7}
		if got, want := p.Most(input, 7, "", today), p.Total(u, today); got != want {
			t.Errorf("%d tokens cost %v at most, want %v", input, got, want)
		}
	}
	cached := mustNew(t, price.Terms{Rates: price.Rates{Input: 1 * price.Dollar, CachedInput: 2 * price.Dollar, CachedAudio: 3 * price.Dollar}})
	if got := cached.Most(1000, 0, "", today); got != price.Dollar/1000 {
		t.Errorf("without anything from a cache it costs %v at most", got)
	}
	if got := p.Most(-5, -5, "", today); got != 0 {
		t.Errorf("negative numbers of tokens cost %v", got)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	p := mustNew(t, price.Terms{Rates: price.Rates{Input: price.Dollar, Output: price.Dollar}, Batch: price.Service{Percent: 50}})
	u := llm.Usage{Input: 100, Cached: 50, Output: 10, Tier: "batch"}
	price.Known().Of("openai", "gpt-6-astra", today)
	for name, f := range map[string]func(){
		"Most":  func() { p.Most(1000, 100, "batch", today) },
		"Total": func() { p.Total(u, today) },
		"Of":    func() { price.Known().Of("openai", "gpt-6-astra", today) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkMost(b *testing.B) {
	p, _ := price.Known().Of("openai", "gpt-6-astra", today)
	for b.Loop() {
		p.Most(1000, 100, "batch", today)
	}
}

func BenchmarkTotal(b *testing.B) {
	p, _ := price.Known().Of("openai", "gpt-6-astra", today)
	u := llm.Usage{Input: 1000, Cached: 500, Output: 100, Reasoning: 50}
	for b.Loop() {
		p.Total(u, today)
	}
}

func BenchmarkOf(b *testing.B) {
	for b.Loop() {
		price.Known().Of("openai", "gpt-6-astra", today)
	}
}
