package config

import (
	"maps"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// checkAllowed warns of models that a project may call whose names are probably misspelled: no provider names them,
// they have no price, and they are similar to one that a provider names. The project could call nothing by them.
func (c *Config) checkAllowed(r *reader) {
	var known []string
	for _, p := range c.Providers {
		for _, m := range p.Models {
			known = append(append(known, m.Name), m.Aliases...)
		}
	}
	slices.Sort(known)
	for _, path := range slices.Sorted(maps.Keys(c.Projects)) {
		at := r.projects[path].value
		if !at.Has("models") {
			continue // as above it
		}
		for _, name := range c.Projects[path].Models {
			if near := message.Nearest(name, known); near != "" && !c.knows(name, known) {
				at.At("models").Warn("no provider names %s: did you mean %s?", message.Quote(name), near)
			}
		}
	}
}

// knows reports whether a name or a pattern fits a model that the configuration knows: one that a provider lists, or
// one that has a price.
func (c *Config) knows(name string, known []string) bool {
	if slices.ContainsFunc(known, func(model string) bool { return match(name, model) || match(model, name) }) {
		return true
	}
	for provider := range c.Providers {
		if _, priced := c.Prices.Of(provider, name, time.Now()); priced {
			return true
		}
	}
	return isPattern(name)
}
