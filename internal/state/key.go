package state

import (
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/engine"
)

// AllModels is the prefix of the keys of all models' counters.
const AllModels = "model/"

// KeyPrefix returns the prefix of the keys of a model's counters. No other keys have it.
func KeyPrefix(model string) string { return AllModels + url.PathEscape(model) + "/" }

// Key returns the key under which a unit of a model is counted.
func Key(model string, u engine.Unit) string { return KeyPrefix(model) + u.String() }

// ModelsOf returns the names of the models whose keys are given, each once. The keys are sorted.
func ModelsOf(keys []string) (names []string) {
	for _, key := range keys {
		escaped, _, _ := strings.Cut(strings.TrimPrefix(key, AllModels), "/")
		if name, err := url.PathUnescape(escaped); err == nil && KeyPrefix(name) == AllModels+escaped+"/" {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}
