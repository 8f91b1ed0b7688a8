package admin

import "testing"

// A limit has the name of the field that sets it, and what no field sets has words.
func TestLimitInWords(t *testing.T) {
	for limit, want := range map[string]string{
		"requests_per_minute": "requests_per_minute", "requests_per_day": "requests_per_day", "tokens_per_month": "tokens_per_month", "dollars_per_week": "dollars_per_week",
		"dollars": "dollars", "projects.max_concurrent": "max_concurrent", "runs.tokens": "runs.tokens",
		"max_rpm": "max_rpm", "max_output_tpm": "max_output_tpm", "max_concurrent": "max_concurrent",
		"max_tpm_share": "share of max_tpm", "max_rpm_pace": "pace of max_rpm",
		"paused": "the provider's pause", "paused-by-operator": "an operator's pause",
		"store-lost": "store-lost", "": "", "what a newer gateway says": "what a newer gateway says",
	} {
		if got := LimitInWords(limit); got != want {
			t.Errorf("%q is %q; want %q", limit, got, want)
		}
	}
}
