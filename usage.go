package ratelimit

import "dappco.re/go/core/go-ratelimit/internal/state"

// eachModel converts the values of a map that has one for each model.
func eachModel[A, B any](all map[string]A, convert func(A) B) map[string]B {
	converted := make(map[string]B, len(all))
	for model, value := range all {
		converted[model] = convert(value)
	}
	return converted
}

func stateQuotas(quotas map[string]ModelQuota) map[string]state.Quota {
	return eachModel(quotas, func(q ModelQuota) state.Quota { return state.Quota(q) })
}

func modelQuotas(quotas map[string]state.Quota) map[string]ModelQuota {
	return eachModel(quotas, func(q state.Quota) ModelQuota { return ModelQuota(q) })
}

func usageStats(u state.Usage) UsageStats {
	return UsageStats{
		Requests: u.Requests, Tokens: tokenEntries(u.Tokens), DayStart: u.DayStart, DayCount: u.DayCount,
		InputTokens: tokenEntries(u.InputTokens), OutputTokens: tokenEntries(u.OutputTokens), DayTokens: (*TokenEntry)(u.DayTokens),
	}
}

func tokenEntries(entries []state.Entry) (list []TokenEntry) {
	for _, e := range entries {
		list = append(list, TokenEntry(e))
	}
	return list
}
