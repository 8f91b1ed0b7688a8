package admin

import (
	"cmp"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// settingOf returns the field of the configuration that sets a limit, or "" if none does.
func settingOf(limit string) string {
	k, ok := kind.Named(limit)
	switch {
	case strings.HasSuffix(limit, kind.ShareEnd):
		return "weight"
	case strings.HasSuffix(limit, kind.PaceEnd):
		return "pace"
	case !ok:
		return ""
	case k.Owner() == kind.Run:
		return k.Name() // runs are a section of their own
	}
	return k.Setting()
}

// LimitInWords returns the name of a limit for people: "max_tpm_share" is the share of max_tpm. The glossary has them
// all.
func LimitInWords(limit string) string {
	if of, ok := strings.CutSuffix(limit, kind.ShareEnd); ok {
		return "share of " + of
	}
	if of, ok := strings.CutSuffix(limit, kind.PaceEnd); ok {
		return "pace of " + of
	}
	switch limit {
	case "paused":
		return "the provider's pause"
	case gateway.LimitPaused:
		return "an operator's pause"
	}
	return cmp.Or(settingOf(limit), limit)
}
