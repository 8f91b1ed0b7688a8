package call

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// A denial by a limit that reserves the most of a call says what the call may use, what calls under way hold, and the
// max_tokens with which it would pass; and with that it does pass.
func TestDenialsOfTheMost(t *testing.T) {
	const body = `{"max_tokens":8192,"messages":[]}`
	cost := func(answer int) price.Amount { return dollarsFor(t, body, answer) }
	tokens := func(answer int) int { _, all := tokensFor(t, body, answer); return all }
	prompt, all := tokensFor(t, body, 8192)
	parts := fmt.Sprintf(` (prompt up to %d tokens, answer up to 8,192)`, prompt)
	for name, c := range map[string]struct {
		limit  project.Limit
		first  string // the body of a call that is under way; empty: there is none
		body   string
		status int
		want   string
		passes int // the max_tokens that it says; 0: none
	}{
		"dollars, which calls under way hold": {project.Limit{DollarsPerDay: cost(8192) + cost(812)}, body, body, 429,
			`a day left ($0.081 of what is used is only reserved, by calls under way), and this call may cost up to $0.082` + parts + `; it would pass with max_tokens of at most 812: try again in 1s`, 812},
		"a total, which calls under way hold": {project.Limit{Dollars: cost(8192) + cost(812)}, body, body, 429,
			`in total left ($0.081 of what is used is only reserved, by calls under way), and this call may cost up to $0.082` + parts + `; it would pass with max_tokens of at most 812: try again in 1s`, 812},
		"never": {project.Limit{DollarsPerDay: cost(500)}, "", body, 400,
			`a day, and this call may cost up to $0.082` + parts + `: it can never pass as it is; it would pass with max_tokens of at most 500`, 500},
		"not even then": {project.Limit{DollarsPerDay: price.Amount(price.Dollar / 1e6)}, "", body, 400,
			`it can never pass as it is; it would not pass with any max_tokens`, 0},
		"tokens": {project.Limit{TokensPerMinute: tokens(8192) + tokens(700), Reserve: project.ReserveMost}, body, body, 429,
			fmt.Sprintf(`%s of what is used is only reserved, by calls under way), and this call may use up to %[1]s%s; it would pass with max_tokens of at most 700: try again in 1s`, numeral.Grouped(int64(all)), parts), 700},
		"a request without a bound": {project.Limit{DollarsPerDay: dollarsFor(t, `{"messages":[]}`, 501)}, "", `{"messages":[]}`, 400,
			`answer up to 16,000): it can never pass as it is; it would pass with max_completion_tokens of at most 501`, 501},
		"something else denies it, too": {project.Limit{RequestsPerHour: 1, DollarsPerDay: cost(8192) + cost(812)}, body, body, 429, ``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := newLimits(t, ratelimit.ModelQuota{}, &c.limit)
				stiff := func(body string) *Call {
					call := newFitted(t, limits, body)
					call.Fit = Fit{}
					return call
				}
				if c.first != "" {
					defer admit(t, stiff(c.first)).Unanswered(false)
				}
				call := stiff(c.body)
				d, err := call.Try(t.Context())
				if err != nil || d.Allowed {
					t.Fatalf("%v, %v", d.Allowed, err)
				}
				r := call.Refusal(&d, err)
				if r.Status != c.status || !strings.Contains(r.Message, c.want) {
					t.Errorf("%d %s\nwant %d %s", r.Status, r.Message, c.status, c.want)
				}
				if !strings.Contains(r.Message, "would pass") != (c.passes == 0) {
					t.Errorf("it says %s", r.Message)
				}
				if c.passes > 0 {
					for _, tokens := range []int{c.passes + 1, c.passes} {
						lower := stiff(c.body)
						lower.Request.MaxOutput = tokens
						d, err := lower.Try(t.Context())
						if err != nil || d.Allowed != (tokens == c.passes) {
							t.Errorf("with %d tokens it passes: %v, %v", tokens, d.Allowed, err)
						}
						lower.Unanswered(false)
					}
				}
			})
		})
	}
}

// A call of which nobody knows how much it can use is denied where a limit reserves that, with what to do.
func TestDenialsOfTheUnknown(t *testing.T) {
	limits := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{DollarsPerDay: price.Dollar})
	for body, want := range map[string]string{
		`{"messages":[]}`: `not sent: the most that model "some-model" can write is not known, and the limits of project "some-project" in dollars reserve that: set max_completion_tokens, or max_output for the model in the prices of the configuration`,
		`{"input":[],"max_output_tokens":9,"previous_response_id":"r"}`: `not sent: the length of the prompt of this call, a part of which is stored elsewhere, is not known, and the limits of project "some-project" in dollars reserve that: set context for the model in the prices`,
	} {
		c := newFitted(t, limits, body)
		c.Prices = pricesOf(t, microdollars)
		if strings.Contains(body, "previous") {
			c.Request, _ = (dialect.Endpoint{Provider: dialect.OpenAI, API: dialect.Responses, Model: model}).Read([]byte(body))
		}
		d, err := c.Try(t.Context())
		if r := c.Refusal(&d, err); !Denied(t.Context(), err) || r.Status != 403 || !strings.HasPrefix(r.Message, want) {
			t.Errorf("%s: %d %s, %v", body, r.Status, r.Message, err)
		}
	}
}
