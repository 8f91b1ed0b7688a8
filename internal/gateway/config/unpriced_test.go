package config_test

import (
	"strings"
	"testing"
)

// A model that the file names, and that has no price, is warned of if a limit is in dollars.
func TestWarningOfModelsWithoutAPrice(t *testing.T) {
	const models = "providers: {openai: {models: {my-model: {max_rpm: 5}, gpt-4o: {max_rpm: 5}, \"*\": {max_rpm: 5}}}}\n"
	for text, want := range map[string]int{
		"":                                      0,
		"projects: {acme: {tokens_per_day: 5}}": 0,
		"projects: {acme: {dollars_per_week: 5}}":                   1,
		"defaults: {dollars: 5}":                                    1,
		"runs: {dollars: 5}":                                        1,
		"runs: {dollars: 5}\nunpriced: free":                        0,
		"runs: {dollars: 5}\nunpriced: deny":                        1,
		"runs: {dollars: 5}\nprices: {openai/my-model: {input: 1}}": 0,
		"runs: {dollars: 5}\nprices: {local/my-model: {input: 1}}":  1,
	} {
		warnings := parsed(t, models+text).Warnings
		if len(warnings) != want || want > 0 && !strings.Contains(warnings[0], "providers.openai.models.my-model: it has no price") {
			t.Errorf("%s: %q", text, warnings)
		}
	}
}
