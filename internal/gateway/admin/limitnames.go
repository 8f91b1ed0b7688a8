package admin

import (
	"cmp"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/project"
)

// settingOf returns the field of the configuration that sets a limit, or "" if none does.
func settingOf(limit string) string {
	period, isTokens := strings.CutPrefix(limit, "tokens-")
	_, isDollars := strings.CutPrefix(limit, "dollars-")
	run, isRun := strings.CutPrefix(limit, "run-")
	switch {
	case strings.HasSuffix(limit, shareOf):
		return "weight"
	case strings.HasSuffix(limit, paceOf):
		return "pace"
	case isTokens:
		return "tokens_per_" + period
	case isDollars:
		return strings.ReplaceAll(limit, "-", "_per_")
	case isRun:
		return "runs." + run
	case limit == project.Concurrent:
		return "max_concurrent"
	case limit == "dollars":
		return limit
	case limit == "minute", limit == "hour", limit == "day":
		return "requests_per_" + limit
	}
	for _, m := range modelLimits {
		if m.name == limit {
			return m.setting
		}
	}
	return ""
}

// The ends of the names of limits that are made from a limit of a model.
const (
	shareOf = "_share"
	paceOf  = "_pace"
)

// LimitInWords returns the name of a limit for people, in the words of the configuration: "minute" is
// requests_per_minute, "tpm" is max_tpm, "tpm_share" is the share of max_tpm. The glossary has them all.
func LimitInWords(limit string) string {
	if of, ok := strings.CutSuffix(limit, shareOf); ok {
		return "share of " + settingOf(of)
	}
	if of, ok := strings.CutSuffix(limit, paceOf); ok {
		return "pace of " + settingOf(of)
	}
	switch limit {
	case "paused":
		return "the provider's pause"
	case gateway.LimitPaused:
		return "an operator's pause"
	}
	return cmp.Or(settingOf(limit), limit)
}
