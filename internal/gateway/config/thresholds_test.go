package config_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

func TestThresholds(t *testing.T) {
	t.Setenv("HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	for text, want := range map[string]struct {
		at       []int
		url      string
		warnings int
		json     string
	}{
		"log: {}":                     {[]int{50, 80, 100}, "", 0, `{"at":["50%","80%","100%"]}`},
		"thresholds: off":             {nil, "", 0, `"off"`},
		"thresholds: {at: [90%, 1%]}": {[]int{90, 1}, "", 0, `{"at":["90%","1%"]}`},
		"thresholds: {at: [9%, 9%]}":  {[]int{9}, "", 1, `{"at":["9%"]}`},
		"thresholds: {webhook: {url: 'https://example.com/hunter2', secret: {env: HOOK}}}": {
			[]int{50, 80, 100}, "https://example.com/hunter2", 0, `{"at":["50%","80%","100%"],"webhook":{"url":"https://example.com","secret":"[secret]"}}`,
		},
		"thresholds: {at: [5%], webhook: {url: 'http://example.com', insecure: true, secret: {env: HOOK}}}": {
			[]int{5}, "http://example.com", 0, `{"at":["5%"],"webhook":{"url":"http://example.com","insecure":true,"secret":"[secret]"}}`,
		},
		"thresholds: {at: [5%], webhook: {url: 'http://localhost:1/a?b', insecure: true, secret: {env: HOOK}}}": {
			[]int{5}, "http://localhost:1/a?b", 1, `{"at":["5%"],"webhook":{"url":"http://localhost:1","insecure":true,"secret":"[secret]"}}`,
		},
	} {
		c, err := config.Parse("a.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		url := ""
		if c.Thresholds.Webhook != nil {
			url = c.Thresholds.Webhook.URL
		}
		shown, err := json.Marshal(c.Thresholds)
		if diff := cmp.Diff(want.at, c.Thresholds.At); diff != "" || url != want.url || len(c.Warnings) != want.warnings || string(shown) != want.json || err != nil {
			t.Errorf("%s: %s%s, %s, %s, %v", text, diff, url, c.Warnings, shown, err)
		}
	}
}
