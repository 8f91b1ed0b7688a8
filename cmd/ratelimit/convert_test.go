package main

import (
	"strings"
	"testing"
)

// The file goes to the standard output, and remarks go to the standard error.
func TestConvert(t *testing.T) {
	got := run(t, "convert", "internal/litellm/testdata/config.yaml")
	if got.code != exitFine || !strings.Contains(got.stdout, "providers:\n") || strings.Contains(got.stdout, "not converted") {
		t.Errorf("it ends with %d and prints\n%s", got.code, got.stdout)
	}
	if !strings.Contains(got.stderr, "litellm_settings.fallbacks: not converted") {
		t.Errorf("remarks:\n%s", got.stderr)
	}
}

func TestConvertOfNothing(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/none.yaml":                  "no such file",
		"testdata/help/ratelimit-convert.txt": "ratelimit-convert.txt:",
		"../../deploy/compose/prometheus.yml": "is it a config.yaml of LiteLLM?",
	} {
		if got := run(t, "convert", file); got.code != exitFailed || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%s: %+v, want %q", file, got, want)
		}
	}
}
