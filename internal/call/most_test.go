package call

import (
	"errors"
	"strings"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// A call that names other models to fall back to may cost as much as the dearest of them, and a budget reserves that.
// If nobody knows how much that is, the call is denied.
func TestMostOfFallbacks(t *testing.T) {
	dear, err := price.New(price.Terms{Rates: price.Rates{Input: 100 * price.Dollar, Output: 1000 * price.Dollar}})
	if err != nil {
		t.Fatal(err)
	}
	free, err := price.New(price.Terms{})
	if err != nil {
		t.Fatal(err)
	}
	const bounded = `"max_tokens":1000,"messages":[]`
	for fields, want := range map[string]struct {
		reserves price.Amount // of each token of the answer; 0: the call is denied
		says     string
	}{
		``: {10_000, ""}, `,"models":[]`: {10_000, ""}, `,"models":["` + model + `"]`: {10_000, ""},
		`,"models":["` + model + `","dear"]`: {1_000_000, ""}, `,"fallbacks":["dear"]`: {1_000_000, ""},
		`,"model":"free","models":["dear"]`:                       {1_000_000, ""},
		`,"model":"nobody-bounds-it","models":["dear"]`:           {0, "what the models that this call names can use and cost is not known"},
		`,"models":["dear"` + strings.Repeat(`,"dear"`, 16) + `]`: {0, "what the models that this call names can use and cost is not known"},
		`,"models":["nobody-knows-it"]`:                           {0, "what the models that this call names can use and cost is not known"},
		`,"fallbacks":[{"model":"dear"}]`:                         {0, "what the models that this call names can use and cost is not known"},
	} {
		if !strings.HasPrefix(fields, `,"model":`) {
			fields = `,"model":"` + model + `"` + fields
		}
		body := []byte("{" + bounded + fields + "}")
		if strings.Contains(fields, "nobody-bounds-it") {
			body = []byte("{" + fields[1:] + "}")
		}
		r, err := dialect.Endpoint{Provider: dialect.OpenRouter, API: dialect.Chat}.Read(body)
		if err != nil {
			t.Fatal(err)
		}
		limits := newLimits(t, plenty, &project.Limit{Dollars: 100 * price.Dollar})
		prices := pricesOf(t, microdollars)
		prices.Table = prices.Table.With(price.Override{Model: "dear", Price: dear}, price.Override{Model: "free", Price: free}, price.Override{Model: "nobody-bounds-it", Price: dear})
		c := &Call{Limits: limits, Request: r, Call: ratelimit.Call{Model: model, Project: owner}, Prices: prices, Fit: Fit{Body: body, Min: 256}}
		d, err := c.Try(t.Context())
		if want.reserves == 0 {
			if said := c.Refusal(&d, err).Message; !errors.Is(err, project.ErrUnbounded) || !strings.Contains(said, want.says) {
				t.Errorf("%s: %v, %s", fields, err, said)
			}
			continue
		}
		if err != nil || !d.Allowed {
			t.Fatal(fields, d.Reason(), err)
		}
		if got := spent(t, limits); got < 1000*want.reserves || got > 1200*want.reserves {
			t.Errorf("%s: %v is reserved, want %v and what the prompt costs", fields, got, 1000*want.reserves)
		}
	}
}
