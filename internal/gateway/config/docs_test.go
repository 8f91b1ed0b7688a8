package config_test

import (
	"os"
	"regexp"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// Each configuration that the guides show is valid.
func TestGuide(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_EU_KEY", "AZURE_US_KEY", "REDIS_URL", "RATELIMIT_ADMIN_TOKEN"} {
		t.Setenv(name, "redis://127.0.0.1")
	}
	t.Setenv("WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	shown := 0
	for _, name := range []string{"README.md", "docs/configuration.md", "docs/getting-started.md", "docs/migration.md"} {
		text, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
			shown++
			if c, err := config.Parse(name, block[1]); err != nil || c.Warnings != nil {
				t.Errorf("%s\n%v, %+v", block[1], err, c)
			}
		}
	}
	if shown < 8 {
		t.Errorf("only %d files are shown", shown)
	}
}
