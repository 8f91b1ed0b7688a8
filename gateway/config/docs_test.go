package config_test

import (
	"os"
	"regexp"
	"testing"

	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// Each configuration that the guide shows is valid.
func TestGuide(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_EU_KEY", "AZURE_US_KEY", "REDIS_URL", "RATELIMIT_ADMIN_TOKEN"} {
		t.Setenv(name, "redis://127.0.0.1")
	}
	t.Setenv("WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 3 {
		t.Fatalf("%d files are shown", len(blocks))
	}
	for _, block := range blocks {
		if c, err := config.Parse("configuration.md", block[1]); err != nil || c.Warnings != nil {
			t.Errorf("%s\n%v, %+v", block[1], err, c)
		}
	}
}
