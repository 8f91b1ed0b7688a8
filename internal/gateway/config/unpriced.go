package config

import (
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/project"
)

// checkPrices warns of models of the file whose calls are denied where dollars are limited, because
// they have no price.
func (c *Config) checkPrices(r *reader, provider string) {
	if c.Unpriced != nil || !c.limitsDollars() {
		return
	}
	for _, m := range c.Providers[provider].Models {
		if _, priced := c.Prices.Of(provider, m.Name, time.Now()); !priced && !m.IsDefault && !isPattern(m.Name) {
			r.at("providers", provider, "models", m.Name).Warn("it has no price, so projects and runs with limits in dollars cannot call it: it should be in prices, or unpriced should say what it costs")
		}
	}
}

// limitsDollars reports whether any limit of the file is in dollars.
func (c *Config) limitsDollars() bool {
	limited := func(l *project.Limit) bool {
		return slices.ContainsFunc(kind.Of(kind.Project), func(k kind.Kind) bool { return k.Unit().IsMoney() && limitFields.Get(l, k) > 0 })
	}
	for _, p := range c.Projects {
		if limited(&p.Limit) {
			return true
		}
	}
	return limited(&c.Defaults.Limit) || c.Runs.Dollars > 0
}
