package price

import (
	"math"
	"math/bits"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Line is one part of what a call costs.
type Line struct {
	Part   string `json:"part"`             // as in the configuration; "told": what the provider reports that the call costs
	Tokens int    `json:"tokens,omitempty"` // 0 for units, "request" and "told"
	Units  int64  `json:"units,omitempty"`  // how many of what [Rates] has a price for beside tokens, such as images or seconds of audio
	Rate   Rate   `json:"rate,omitempty"`   // the price of a million tokens, or of so many units as the part has a price for
	Cost   Amount `json:"cost"`             // the lines add up to the whole, exactly
}

// Cost returns what a call costs, rounded up once, and how that comes about. What the provider reports
// of the cost counts. Otherwise each token is priced as exactly one part: parts that are more than
// their whole are cut to it. An unknown prompt counts as none.
func (p *Price) Cost(u llm.Usage, at time.Time) (Amount, []Line) {
	if u.CostTold {
		told := Amount(max(0, u.Cost))
		return told, []Line{{Part: "told", Cost: told}}
	}
	s := p.sheet(u.Input, u.Tier, at)
	var lines []Line
	var sum total
	before := Amount(0)
	for i, n := range partition(&u) {
		if n == 0 {
			continue
		}
		sum.add(n, s.amounts[i])
		line := Line{Part: names[i], Tokens: n, Rate: RateOf(s.amounts[i]), Cost: sum.amount() - before}
		if part(i) >= firstUnit {
			line.Tokens, line.Units, line.Rate = 0, int64(n), *s.Rates.fields()[i]
		}
		lines = append(lines, line)
		before = sum.amount()
	}
	if s.Request > 0 {
		sum.add(million, s.Request)
		lines = append(lines, Line{Part: "request", Cost: sum.amount() - before})
	}
	return sum.amount(), lines
}

// Total returns what [Price.Cost] does, without the lines. It allocates nothing.
func (p *Price) Total(u llm.Usage, at time.Time) Amount {
	if u.CostTold {
		return Amount(max(0, u.Cost))
	}
	s := p.sheet(u.Input, u.Tier, at)
	var sum total
	for i, n := range partition(&u) {
		sum.add(n, s.amounts[i])
	}
	sum.add(million, s.Request)
	return sum.amount()
}

// Most returns the most that a call can cost that has so many tokens at most: nothing is read from a
// cache, and every token is of the dearest kind that the model has a price for, cache writes
// included. Where a shorter prompt has dearer prices, these count. It allocates nothing.
func (p *Price) Most(input, output int, tier string, at time.Time) (most Amount) {
	sheets := p.sheetsOf(tier, at)
	for i := range sheets {
		s := &sheets[i]
		if s.Tokens > 0 && s.Tokens >= input {
			break
		}
		var sum total
		sum.add(max(0, input), s.dearestInput)
		sum.add(max(0, output), s.dearestOutput)
		sum.add(million, s.Request)
		most = max(most, sum.amount())
	}
	return most
}

// Units returns what a call costs beside its tokens if it uses so many units at most. ok is false if one of them has no
// price, or if nobody knows how many there are and they cost something. Images, audio, characters and pages need none
// where tokens or requests have a price: then these pay for them, and so do search units and seconds of video.
func (p *Price) Units(u llm.Units, at time.Time) (cost Amount, ok bool) {
	s := &p.sheetsOf("", at)[0]
	var sum total
	for i, n := range u {
		rate := *s.Rates.fields()[firstUnit+part(i)]
		included := s.priced && !units[i].Apart || p.isFree()
		switch {
		case n == 0 || rate == Free || rate == 0 && included:
		case n < 0 || rate == 0:
			return 0, false
		default:
			sum.add(int(min(n, maxUnits)), s.amounts[firstUnit+part(i)])
		}
	}
	return sum.amount(), true
}

// Split divides units into those that the price has a price for or includes, and all others.
func (p *Price) Split(u llm.Units, at time.Time) (own, others llm.Units) {
	s := &p.sheetsOf("", at)[0]
	for i, n := range u {
		if *s.Rates.fields()[firstUnit+part(i)] != 0 || s.priced && !units[i].Apart || p.isFree() {
			own[i] = n
		} else {
			others[i] = n
		}
	}
	return own, others
}

// isFree reports whether the price is that of models that cost nothing.
func (p *Price) isFree() bool { return len(p.terms) == 1 && p.terms[0].IsZero() }

// ByUnits reports whether a call that uses such units is paid for by them alone: neither tokens nor requests have a price.
func (p *Price) ByUnits(u llm.Units, at time.Time) bool {
	s := &p.sheetsOf("", at)[0]
	for i, n := range u {
		if n != 0 && *s.Rates.fields()[firstUnit+part(i)] != 0 {
			return !s.priced
		}
	}
	return false
}

// partition divides the tokens of a call among the parts, so that each is in one part alone. Where
// parts do not fit into the whole, or into each other, the dearer ones usually stay: cache writes
// before reads. A token that is both cached and an image counts as cached.
func partition(u *llm.Usage) (n [parts]int) {
	left := max(0, u.Input)
	take := func(to part, want int) {
		n[to] = max(0, min(want, left))
		left -= n[to]
	}
	hour := max(0, min(u.CacheWriteHour, u.CacheWrite))
	take(cacheWriteHour, hour)
	take(cacheWrite, u.CacheWrite-hour)
	take(cachedAudio, min(u.CachedAudio, u.Cached, u.InputAudio))
	take(cachedInput, u.Cached-n[cachedAudio])
	take(audioInput, u.InputAudio-n[cachedAudio])
	take(imageInput, u.InputImage)
	take(input, left)

	left = max(0, u.Output)
	take(audioOutput, u.OutputAudio)
	take(imageOutput, u.OutputImage)
	take(reasoning, u.Reasoning)
	take(output, left)
	for i, used := range u.Units {
		n[firstUnit+part(i)] = int(min(max(used, 0), maxUnits))
	}
	return n
}

// maxUnits is the most of a unit that is priced: far beyond any call, so that no product overflows.
const maxUnits = 1 << 50

// total adds up tokens times rates in 128 bits, in millionths of a nanodollar. It cannot overflow: a
// product has 113 bits at most, and a call has a dozen.
type total struct{ high, low uint64 }

const million = 1_000_000

// add adds tokens, of which a million cost an amount.
func (t *total) add(tokens int, amount Amount) {
	high, low := bits.Mul64(uint64(tokens), uint64(amount))
	var carry uint64
	t.low, carry = bits.Add64(t.low, low, 0)
	t.high, _ = bits.Add64(t.high, high, carry)
}

// amount returns the total in nanodollars, rounded up, or the largest Amount if that is less.
func (t *total) amount() Amount {
	if t.high >= million {
		return math.MaxInt64
	}
	n, rest := bits.Div64(t.high, t.low, million)
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	if rest > 0 {
		n++
	}
	return Amount(n)
}
