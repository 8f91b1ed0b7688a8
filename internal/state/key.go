package state

import (
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/admission"
)

// AllModels begins the keys of the counters of all models.
const AllModels = "model/"

// KeyPrefix begins the keys of a model's counters, and no other model's.
func KeyPrefix(model string) string { return AllModels + url.PathEscape(model) + "/" }

// Key returns the key of a model's counters of a unit.
func Key(model string, u admission.Unit) string { return KeyPrefix(model) + u.String() }

// ModelsOf returns the names of the models whose keys are given, in order.
func ModelsOf(keys []string) (names []string) {
	for _, key := range keys {
		escaped, _, _ := strings.Cut(strings.TrimPrefix(key, AllModels), "/")
		if name, err := url.PathUnescape(escaped); err == nil && KeyPrefix(name) == AllModels+escaped+"/" {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}
