package ratelimit

import (
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
)

// saved is what a file holds, by model.
type saved struct {
	Quotas map[string]ModelQuota
	State  map[string]UsageStats
}

// readYAML reads the file. One that is missing or empty holds nothing.
func readYAML(path string) (saved, error) {
	file, err := statefile.Read(path)
	return saved{
		Quotas: eachModel(file.Quotas, func(q state.Quota) ModelQuota { return ModelQuota(q) }),
		State:  eachModel(file.State, usageStats),
	}, err
}

// writeYAML replaces the file as a whole, or leaves the old one.
func writeYAML(path string, s saved) error {
	return statefile.Write(path, statefile.File{
		Quotas: eachModel(s.Quotas, func(q ModelQuota) state.Quota { return state.Quota(q) }),
		State:  eachModel(s.State, stateUsage),
	})
}

// eachModel converts the values of a map; a map that is nil stays so.
func eachModel[A, B any](all map[string]A, convert func(A) B) map[string]B {
	if all == nil {
		return nil
	}
	converted := make(map[string]B, len(all))
	for model, value := range all {
		converted[model] = convert(value)
	}
	return converted
}

func usageStats(u state.Usage) UsageStats {
	return UsageStats{
		Requests: u.Requests, Tokens: entries[TokenEntry](u.Tokens), DayStart: u.DayStart, DayCount: u.DayCount,
		InputTokens: entries[TokenEntry](u.InputTokens), OutputTokens: entries[TokenEntry](u.OutputTokens), DayTokens: (*TokenEntry)(u.DayTokens),
	}
}

func stateUsage(u UsageStats) state.Usage {
	return state.Usage{
		Requests: u.Requests, Tokens: entries[state.Entry](u.Tokens), DayStart: u.DayStart, DayCount: u.DayCount,
		InputTokens: entries[state.Entry](u.InputTokens), OutputTokens: entries[state.Entry](u.OutputTokens), DayTokens: (*state.Entry)(u.DayTokens),
	}
}

func entries[B, A TokenEntry | state.Entry](list []A) []B {
	all := make([]B, len(list))
	for i, e := range list {
		all[i] = B(e)
	}
	return all
}
