package price_test

import (
	"math/big"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

func drawRates(t *rapid.T) (r price.Rates) {
	one := func(name string) price.Rate {
		return price.Rate(rapid.OneOf(rapid.Just(int64(price.Free)), rapid.Just(int64(0)), rapid.Int64Range(1, price.MaxRate)).Draw(t, name))
	}
	return price.Rates{
		Input: one("input"), CachedInput: one("cached"), CacheWrite: one("write"), CacheWriteHour: one("hour"), AudioInput: one("audio"),
		CachedAudio: one("cached audio"), ImageInput: one("image"), Output: one("output"), Reasoning: one("reasoning"),
		AudioOutput: one("audio output"), ImageOutput: one("image output"), Request: price.Amount(rapid.Int64Range(0, 1000).Draw(t, "request")),
	}
}

func drawTerms(t *rapid.T) price.Terms {
	terms := price.Terms{Rates: drawRates(t)}
	if rapid.Bool().Draw(t, "has a size") {
		terms.Above = []price.Above{{Tokens: rapid.IntRange(1, 1000).Draw(t, "size"), Rates: drawRates(t)}}
	}
	terms.Batch.Percent = rapid.IntRange(0, price.MaxPercent).Draw(t, "batch")
	return terms
}

func drawUsage(t *rapid.T) llm.Usage {
	n := rapid.IntRange(-10, 2000)
	return llm.Usage{
		Input: n.Draw(t, "input"), Cached: n.Draw(t, "cached"), CacheWrite: n.Draw(t, "write"), CacheWriteHour: n.Draw(t, "hour"),
		InputAudio: n.Draw(t, "audio"), CachedAudio: n.Draw(t, "cached audio"), InputImage: n.Draw(t, "image"), Output: n.Draw(t, "output"),
		Reasoning: n.Draw(t, "reasoning"), OutputAudio: n.Draw(t, "audio output"), OutputImage: n.Draw(t, "image output"),
		Tier: rapid.SampledFrom([]string{"", "batch"}).Draw(t, "tier"),
	}
}

// naiveCost looks at the tokens of a call one by one.
func naiveCost(terms price.Terms, u llm.Usage) *big.Int {
	isAbove := len(terms.Above) > 0 && u.Input > terms.Above[0].Tokens
	own := func(of func(price.Rates) price.Rate) price.Rate {
		if isAbove && of(terms.Above[0].Rates) != 0 {
			return of(terms.Above[0].Rates)
		}
		return of(terms.Rates)
	}
	first := func(all ...func(price.Rates) price.Rate) *big.Int {
		for _, of := range all {
			if r := own(of); r != 0 {
				return percent(terms, u, int64(max(0, r)))
			}
		}
		return new(big.Int)
	}
	input := func(r price.Rates) price.Rate { return r.Input }
	cached := func(r price.Rates) price.Rate { return r.CachedInput }
	write := func(r price.Rates) price.Rate { return r.CacheWrite }
	audio := func(r price.Rates) price.Rate { return r.AudioInput }
	output := func(r price.Rates) price.Rate { return r.Output }

	sum := new(big.Int)
	left := u.Input
	spend := func(tokens int, rate *big.Int) (spent int) {
		for ; spent < tokens && left > 0; spent++ {
			sum.Add(sum, rate)
			left--
		}
		return spent
	}
	hours := min(u.CacheWriteHour, u.CacheWrite)
	spend(hours, first(func(r price.Rates) price.Rate { return r.CacheWriteHour }, write, input))
	spend(u.CacheWrite-max(hours, 0), first(write, input))
	heard := spend(min(u.CachedAudio, u.Cached, u.InputAudio), first(func(r price.Rates) price.Rate { return r.CachedAudio }, audio, cached, input))
	spend(u.Cached-heard, first(cached, input))
	spend(u.InputAudio-heard, first(audio, input))
	spend(u.InputImage, first(func(r price.Rates) price.Rate { return r.ImageInput }, input))
	spend(left, first(input))
	left = u.Output
	spend(u.OutputAudio, first(func(r price.Rates) price.Rate { return r.AudioOutput }, output))
	spend(u.OutputImage, first(func(r price.Rates) price.Rate { return r.ImageOutput }, output))
	spend(u.Reasoning, first(func(r price.Rates) price.Rate { return r.Reasoning }, output))
	spend(left, first(output))

	request := terms.Request
	if isAbove && terms.Above[0].Request != 0 {
		request = terms.Above[0].Request
	}
	sum.Add(sum, new(big.Int).Mul(percent(terms, u, int64(request)), big.NewInt(1_000_000)))
	return roundUp(sum, 1_000_000)
}

// percent returns a price in the tier of a call, rounded up.
func percent(terms price.Terms, u llm.Usage, rate int64) *big.Int {
	p := int64(100)
	if u.Tier == "batch" && terms.Batch.Percent != 0 {
		p = int64(terms.Batch.Percent)
	}
	return roundUp(new(big.Int).Mul(big.NewInt(rate), big.NewInt(p)), 100)
}

func roundUp(n *big.Int, by int64) *big.Int {
	whole, rest := new(big.Int).QuoRem(n, big.NewInt(by), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole
}
