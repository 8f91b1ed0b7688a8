package config_test

import (
	"encoding/json"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

func TestBooks(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]struct {
		books config.Books
		json  string
	}{
		"":                                {config.Books{Hours: 35 * day, Days: 400 * day}, `{"days":"400d","hours":"35d"}`},
		"usage: off":                      {config.Books{Off: true}, `"off"`},
		"usage: {hours: 7d}":              {config.Books{Hours: 7 * day, Days: 400 * day}, `{"days":"400d","hours":"7d"}`},
		"usage: {hours: 1d, days: 3660d}": {config.Books{Hours: day, Days: 3660 * day}, `{"days":"3660d","hours":"1d"}`},
	} {
		c, err := config.Parse("gateway.yaml", []byte(text))
		if err != nil || c.Books != want.books {
			t.Errorf("%q: %+v, %v", text, c, err)
			continue
		}
		if got, err := json.Marshal(c.Books); err != nil || string(got) != want.json {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}
