package config_test

import (
	"fmt"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A file that is too large or too deep is refused before it costs much.
func TestBounds(t *testing.T) {
	var models strings.Builder
	models.WriteString("providers:\n  openai:\n    models:\n")
	for i := range 1001 {
		fmt.Fprintf(&models, "      m%d: {}\n", i)
	}
	aliases := "listen: &l0 [a, b]\n"
	for i := range 40 {
		aliases += fmt.Sprintf("x%d: &l%d [*l%d, *l%d]\n", i, i+1, i, i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"bytes":    {"#" + strings.Repeat("x", 4<<20), "larger than 4194304 bytes"},
		"entries":  {strings.Repeat("a: b\n", 210_000), "more than 400000 keys and values"},
		"brackets": {strings.Repeat("[\n", 40_000), "exceeded max depth of 10000"},
		"braces":   {strings.Repeat("{a: ", 20_000), "exceeded max depth of 10000"},
		"dashes":   {strings.Repeat("- ", 40_000), "exceeded max depth of 10000"},
		"aliases":  {aliases, "more than 400000 keys and values"},
		"models":   {models.String(), "may have 1000 models"},
		"faults":   {strings.Repeat("a: b\n", 1000), "duplicate key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("gateway.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %.200v, want %s", err, c.want)
			}
			if n := strings.Count(err.Error(), "\n") + 1; n > 100 {
				t.Errorf("%d faults are told", n)
			}
		})
	}
}

// Ten thousand projects with five fields each are not too many for one file.
func TestManyProjects(t *testing.T) {
	var text strings.Builder
	text.WriteString("projects:\n")
	last := testkit.Rounds(2_000, 10_000) - 1
	for i := range last + 1 {
		fmt.Fprintf(&text, "  department-%d/team-%d: {requests_per_minute: %d, tokens_per_month: 5_000_000, dollars_per_month: 149.50, weight: 2, min_share: 0.001%%}\n", i%100, i, i)
	}
	c := parsed(t, text.String())
	if len(c.Projects) != last+1 || c.Projects[fmt.Sprint("department-99/team-", last)].Limit.RequestsPerMinute != last {
		t.Errorf("%d projects", len(c.Projects))
	}
}
