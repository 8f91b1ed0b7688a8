package admin

import "testing"

// A limit has the name of the field that sets it, and what no field sets has words.
func TestLimitInWords(t *testing.T) {
	for limit, want := range map[string]string{
		"minute": "requests_per_minute", "day": "requests_per_day", "tokens-month": "tokens_per_month", "dollars-week": "dollars_per_week",
		"dollars": "dollars", "concurrent-project": "max_concurrent", "run-tokens": "runs.tokens",
		"rpm": "max_rpm", "output_tpm": "max_output_tpm", "concurrent": "max_concurrent",
		"tpm_share": "share of max_tpm", "rpm_pace": "pace of max_rpm",
		"paused": "the provider's pause", "paused-by-operator": "an operator's pause",
		"store-lost": "store-lost", "": "", "what a newer gateway says": "what a newer gateway says",
	} {
		if got := LimitInWords(limit); got != want {
			t.Errorf("%q is %q; want %q", limit, got, want)
		}
	}
}
