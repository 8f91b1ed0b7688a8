package call

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Prices says what calls of models cost.
type Prices struct {
	Table *price.Table

	// Unpriced is the price of models that the table has none for. If it is nil, calls of such
	// models are denied where dollars are limited.
	Unpriced *price.Price
}

// of returns the price of a model that holds at a time, or nil.
func (p *Prices) of(provider, model string, at time.Time) *price.Price {
	if p == nil {
		return nil
	}
	if found, ok := p.Table.Of(provider, model, at); ok {
		return found
	}
	return p.Unpriced
}

// ofVariant returns the price of a variant of a model, such as "dall-e-3@hd-1024x1024", and that of the model itself if
// the table has none. What the configuration says of the model wins over what the table says of the variant.
func (p *Prices) ofVariant(provider, model, variant string, at time.Time) *price.Price {
	if p == nil || variant == "" {
		return p.of(provider, model, at)
	}
	found, ok := p.Table.Find(provider, model+"@"+variant, at)
	if whole, has := p.Table.Find(provider, model, at); ok && found.Provider != "" && has && whole.Provider == "" {
		return whole.Price
	}
	if ok {
		return found.Price
	}
	return p.of(provider, model, at)
}

// unpriced returns what is paid for whatever has no price, or nil.
func (p *Prices) unpriced() *price.Price {
	if p == nil {
		return nil
	}
	return p.Unpriced
}

// quoted is the price by which a call is charged from beginning to end: the one that held when its
// limits were first asked.
type quoted struct {
	price   *price.Price // nil: the model has none
	byUnits bool         // the call is paid for by its units, and its tokens are free
	drawn   *price.Price // of the model that generates images as a tool; nil: it has none, or there is no such tool
	at      time.Time    // zero: it was not looked up yet
}

// quote looks up the price of the call, unless that was done before. It is that of the model that the
// request names, even if the response names another one: what was reserved and what is settled must be
// of one price, and a response names the release of the same model. Where a provider chooses among
// models of different prices, it reports the cost: see [dialect.TellsCost].
func (c *Call) quote() {
	if c.quoted.at.IsZero() {
		c.quoteAt(time.Now())
	}
}

// quoteAt looks up the price of the call that holds at a time.
func (c *Call) quoteAt(at time.Time) {
	c.quoted.at = at
	c.quoted.price = c.Prices.ofVariant(c.priceProvider(), c.Request.Model, c.Request.Variant, c.quoted.at)
	if c.Request.ImageModel != "" {
		c.quoted.drawn = c.Prices.of(c.priceProvider(), c.Request.ImageModel, at)
	}
	c.quoted.byUnits = c.Request.API.PaidByUnits()
	if p := c.quoted.price; p != nil && !c.quoted.byUnits && c.Request.Units != (llm.Units{}) {
		c.quoted.byUnits = p.ByUnits(c.Request.Units, at)
	}
}

// storage returns the price of what a provider's vector stores keep, or nil if it has none: a price of all models may say
// nothing of that.
func (p *Prices) storage(provider string, at time.Time) *price.Price {
	if p == nil {
		return nil
	}
	found, ok := p.Table.Of(provider, dialect.VectorStore, at)
	if !ok {
		return nil
	}
	if own, _ := found.Split(llm.Units{llm.ByteDays: 1}, at); own == (llm.Units{}) {
		return nil
	}
	return found
}

// PricesStorage reports whether what the vector stores of the call's provider keep costs something.
func (c *Call) PricesStorage() bool {
	now := time.Now()
	storage := c.Prices.storage(c.priceProvider(), now)
	if storage == nil {
		return false
	}
	cost, _ := storage.Units(llm.Units{llm.ByteDays: 1e9}, now)
	return cost > 0
}

// beside takes those units out of a usage for which a price has none, and returns what they cost, or [price.Unknown]: by
// the price of vector stores what these keep, and otherwise as unpriced says.
func (p *Prices) beside(provider string, of *price.Price, used *llm.Usage, at time.Time) price.Amount {
	if used.Units == (llm.Units{}) {
		return 0
	}
	var others llm.Units
	used.Units, others = of.Split(used.Units, at)
	kept := price.Amount(0)
	if n := others[llm.ByteDays]; n != 0 {
		if storage := p.storage(provider, at); storage != nil {
			var ok bool
			if kept, ok = storage.Units(llm.Units{llm.ByteDays: n}, at); !ok {
				return price.Unknown
			}
			others[llm.ByteDays] = 0
		}
	}
	if others == (llm.Units{}) {
		return kept
	}
	if unpriced := p.unpriced(); unpriced != nil {
		if cost, ok := unpriced.Units(others, at); ok {
			return kept + cost
		}
	}
	return price.Unknown
}

// units returns what units of a provider cost beside tokens, or [price.Unknown].
func (p *Prices) units(provider string, of *price.Price, u llm.Units, at time.Time) price.Amount {
	used := llm.Usage{Units: u}
	others := p.beside(provider, of, &used, at)
	own, ok := of.Units(used.Units, at)
	if others == price.Unknown || !ok {
		return price.Unknown
	}
	return own + others
}

// unitsPrice returns what the call costs beside its tokens if it uses so many units, or [price.Unknown].
func (c *Call) unitsPrice(used llm.Units) price.Amount {
	if used == (llm.Units{}) {
		return 0
	}
	if c.quoted.price == nil {
		return price.Unknown
	}
	return c.Prices.units(c.priceProvider(), c.quoted.price, used, c.quoted.at)
}

// mostBeside returns the most that the call costs beside its tokens, or [price.Unknown].
func (c *Call) mostBeside() price.Amount {
	units, drawn := c.unitsPrice(c.Request.Units), c.mostDrawn(c.Request.Units[llm.Images])
	if units == price.Unknown || drawn == price.Unknown {
		return price.Unknown
	}
	return min(units+drawn, maxReserved)
}

// mostPrompt bounds the prompt of an image that a tool generates: 32,000 characters, and 16 images of 6,500 tokens.
const mostPrompt = 32_000 + 16*6_500

// mostDrawn returns the highest price of a number of images that a tool generates, or [price.Unknown].
func (c *Call) mostDrawn(images int64) price.Amount {
	if c.Request.ImageModel == "" || images == 0 {
		return 0
	}
	output := c.Prices.maxima(c.priceProvider(), c.Request.ImageModel).Output
	if c.quoted.drawn == nil || output == 0 || images < 0 {
		return price.Unknown
	}
	input, _, known := c.Request.Most(c.Prices.maxima(c.priceProvider(), c.Request.Model))
	if input = min(input, mostPrompt); !known {
		input = mostPrompt
	}
	return min(price.Amount(min(images, mostImages))*c.quoted.drawn.Most(input, output, "", c.quoted.at), maxReserved)
}

// mostImages bounds how many images are priced, so that no product overflows.
const mostImages = 1000

// drawnPrice returns what the images have cost that a tool has generated. Of images whose tokens were not reported, it is
// the most.
func (c *Call) drawnPrice(used llm.Usage) price.Amount {
	d := used.Drawn
	if c.Request.ImageModel == "" || d == (llm.ToolTokens{}) {
		return c.mostDrawn(used.Units[llm.Images])
	}
	if c.quoted.drawn == nil {
		return price.Unknown
	}
	return c.quoted.drawn.Total(llm.Usage{Input: d.Input, InputImage: d.InputImage, Output: d.Output, OutputImage: d.Output - d.OutputText}, c.quoted.at)
}

// priceProvider returns the provider's name in the table of prices.
func (c *Call) priceProvider() string { return cmp.Or(c.Provider, string(c.Request.Provider)) }

// maxReserved is the highest price that a call may ask for. It is as high as the highest limit.
const maxReserved price.Amount = 1 << 53

// expectedPrice returns the most that the call costs if it uses the tokens that it is expected to
// use, or [price.Unknown]. Where a limit is smaller than that, all of the limit is reserved, unless
// what the request itself asks for is certain to cost more: its prompt, and the output that it allows
// where the provider counts all of that.
func (c *Call) expectedPrice(caps *engine.Caps) price.Amount {
	c.quote()
	if c.quoted.price == nil || c.mostBeside() == price.Unknown {
		return price.Unknown
	}
	if c.Request.Background { // nobody sees what the call uses before it is too late
		output := max(c.expected.Output, c.allowedOutput())
		return min(c.most(c.expected.Input, output, ""), maxReserved)
	}
	most := c.most(c.expected.Input, c.expected.Output, "")
	if limit := price.Amount(caps.Dollars); limit > 0 && most > limit {
		stated := c.most(c.certainPrompt(), min(c.Request.CountedBound(), c.expected.Output), "")
		most = max(stated, limit)
	}
	return min(most, maxReserved)
}

// most returns the highest cost of the call if it uses at most the given tokens, and all units that it can use. told is
// the service tier that the response names, or "".
func (c *Call) most(input, output int, told string) price.Amount {
	return c.mostBy(c.quoted.price, input, output, told)
}

// mostBy is most by another price.
func (c *Call) mostBy(p *price.Price, input, output int, told string) price.Amount {
	units := max(c.mostBeside(), 0)
	return units + c.inTier(told, func(tier string) price.Amount { return min(p.Most(input, output, tier, c.quoted.at), maxReserved) })
}

// inTier returns the price of a call in the service tier that the response names. If it names none, it
// returns the price in the usual tier, or in the tier that the request asks for if that is dearer: a
// server may ignore what the request asks for, so only the provider's word lowers a price.
func (c *Call) inTier(told string, priceIn func(tier string) price.Amount) price.Amount {
	if told != "" {
		return priceIn(told)
	}
	usual := priceIn("")
	if asked := c.Request.Tier; asked != "" {
		return max(usual, priceIn(asked))
	}
	return usual
}

// usedPrice returns what a call costs that has used so much, or [price.Unknown]. Only what the
// provider has reported may lower the price below what was reserved.
func (c *Call) usedPrice(used llm.Usage) price.Amount {
	p, at := c.quoted.price, c.quoted.at
	used.CostTold = used.CostTold && dialect.TellsCost(c.Request.Provider)
	switch {
	case used.CostTold:
		return price.Amount(max(used.Cost, 0))
	case p == nil:
		return price.Unknown
	case !used.Exact && c.ending == failed:
		return c.reserved
	case !used.Exact && !(c.ChargeSeen && used.Output > 0):
		output := c.mostOutput(used.Output, c.allowedOutput())
		return max(c.reserved, c.most(max(used.Input, c.expected.Input), output, used.Tier))
	case used.Input < 0:
		return c.most(max(c.expected.Input, c.bound.Input), used.Output, used.Tier)
	}
	drawn := c.drawnPrice(used)
	beside := c.Prices.beside(c.priceProvider(), p, &used, at)
	if beside == price.Unknown || drawn == price.Unknown {
		return price.Unknown
	}
	beside += drawn
	return beside + c.inTier(used.Tier, func(tier string) price.Amount {
		used.Tier = tier
		return p.Total(used, at)
	})
}

// unknownStorage says why nobody knows what a vector store is to keep, and what helps.
const unknownStorage = "nothing says when the vector store ends, or its files are still being read: try again later. If it has no end, the request that makes it must have expires_after, or the configuration a price for the whole request in endpoint_prices of the provider"

// unpricedUnits says how to set a price for units of the call that have none although its model has one, or of which
// nobody knows how many it uses. It returns "" if there are none.
func (c *Call) unpricedUnits() string {
	if c.quoted.price == nil {
		return ""
	}
	for i, n := range c.Request.Units {
		var one llm.Units
		one[i] = n
		if c.unitsPrice(one) == price.Unknown {
			if n < 0 && i == llm.ByteDays {
				return unknownStorage
			}
			if n < 0 {
				return "nothing bounds how many " + kind.Beside[i].Words() + " it uses: the configuration must have a price for the whole request in endpoint_prices of the provider"
			}
			return "the configuration must have a price for " + kind.Beside[i].PriceOf + " in prices of the model, or in unpriced"
		}
	}
	return ""
}

// unpricedText says why a call without a price is denied, and how to set one. The error names the
// owner of a limit in dollars. A request that is no call of a model has no model whose price could be set.
func (c *Call) unpricedText(err error) string {
	of := "requests to this path"
	help := "the configuration must say what each of them costs, as in unpriced: {request: 0.04}, or unpriced: free; prices of models do not change this"
	if c.Request.Model != "" {
		of = c.model()
		help = "the configuration must have a price for it in prices, or say in unpriced what calls without a price cost"
		if c.quoted.price != nil && c.mostDrawn(1) == price.Unknown {
			of, help = "the images of "+of, fmt.Sprintf("the configuration must have a price and max_output for %q in prices", c.Request.ImageModel)
		}
		if price := c.unpricedUnits(); price != "" {
			of, help = "what "+of+" uses beside tokens", price
		}
	}
	why := strings.TrimPrefix(err.Error(), project.ErrUnpriced.Error()+", ")
	return fmt.Sprintf("%sthe price of %s is not known, %s: %s", notSent, of, why, help)
}
