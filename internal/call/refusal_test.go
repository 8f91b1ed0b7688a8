package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// later is the refusal of a call that may try again by itself.
func later(wait time.Duration, tokens bool, message string) dialect.Refusal {
	return dialect.Refusal{Status: http.StatusTooManyRequests, RetryAfter: wait, Retry: true, Tokens: tokens, Message: message}
}

// muchLater is the refusal of a call whose wait is so long that the SDK should show the error.
func muchLater(wait time.Duration, tokens bool, message string) dialect.Refusal {
	r := later(wait, tokens, message)
	r.Retry = false
	return r
}

func never(message string) dialect.Refusal {
	return dialect.Refusal{Status: http.StatusBadRequest, Code: dialect.CodeNever, Tokens: true, Message: message}
}

// Each call here comes right after one like it, which is still under way.
func TestRefusalsSayWhatIsLeftAndNeeded(t *testing.T) {
	type quota = ratelimit.ModelQuota
	const month = 30 * 24 * time.Hour
	for _, test := range []struct {
		name    string
		quota   quota
		project *project.Limit
		want    dialect.Refusal
	}{
		{"requests a minute", quota{MaxRPM: 1}, nil,
			later(time.Minute, false, `not sent: model "some-model" has 0 of its 1 requests a minute left: try again in 1m0s`)},
		{"requests a minute, with a margin", quota{MaxRPM: 1, Margin: ratelimit.MaxMargin}, nil,
			later(90*time.Second, false, `not sent: model "some-model" has 0 of its 1 requests a minute left: try again in 1m30s`)},
		{"requests a day", quota{MaxRPD: 1}, nil,
			muchLater(24*time.Hour, false, `not sent: model "some-model" has 0 of its 1 requests a day left: try again in 24h0m0s`)},
		{"tokens a minute", quota{MaxTPM: 3000}, nil,
			later(time.Minute, true, `not sent: model "some-model" has 859 of its 3,000 tokens a minute left, and this call needs 2,141 (prompt 1,141, answer up to 1,000): try again in 1m0s`)},
		{"tokens a day", quota{MaxTPD: 3000}, nil,
			muchLater(24*time.Hour, true, `not sent: model "some-model" has 859 of its 3,000 tokens a day left, and this call needs 2,141 (prompt 1,141, answer up to 1,000): try again in 24h0m0s`)},
		{"tokens of which the call needs all", quota{MaxTPM: 2000}, nil,
			later(time.Minute, true, `not sent: model "some-model" has 0 of its 2,000 tokens a minute left, and this call needs 2,000 (prompt 1,141, answer up to 859): try again in 1m0s`)},
		{"input tokens", quota{MaxInputTPM: 2000}, nil,
			later(time.Minute, true, `not sent: model "some-model" has 859 of its 2,000 input tokens a minute left, and this call needs 1,141 for its prompt: try again in 1m0s`)},
		{"output tokens", quota{MaxOutputTPM: 1500}, nil,
			later(time.Minute, true, `not sent: model "some-model" has 500 of its 1,500 output tokens a minute left, and this call needs up to 1,000: try again in 1m0s`)},
		{"calls at a time", quota{MaxConcurrent: 1}, nil,
			later(time.Second, false, `not sent: model "some-model" has 1 calls under way, as many as it may: try again in 1s`)},
		{"a prompt that never fits", quota{MaxTPM: 2000, MaxInputTPM: 400}, nil,
			never(`not sent: model "some-model" may use 400 input tokens a minute, and this call needs 1,141 for its prompt: it can never pass`)},

		{"the project's minute", quota{}, &project.Limit{RequestsPerMinute: 1},
			later(time.Minute, false, `not sent: project "some-project" has 0 of its 1 requests a minute left: try again in 1m0s`)},
		{"the project's hour", quota{}, &project.Limit{RequestsPerHour: 1},
			muchLater(time.Hour, false, `not sent: project "some-project" has 0 of its 1 requests an hour left: try again in 1h0m0s`)},
		{"the project's tokens an hour", quota{}, &project.Limit{TokensPerHour: 3000},
			muchLater(time.Hour, true, `not sent: project "some-project" has 859 of its 3,000 tokens an hour left, and this call needs 2,141 (prompt 1,141, answer up to 1,000): try again in 1h0m0s`)},
		{"the project's tokens a month", quota{}, &project.Limit{TokensPerMonth: 3000},
			muchLater(month, true, `not sent: project "some-project" has 859 of its 3,000 tokens in 30 days left, and this call needs 2,141 (prompt 1,141, answer up to 1,000): try again in 720h0m0s`)},
		{"the project's calls at a time", quota{}, &project.Limit{MaxConcurrent: 1},
			later(time.Second, false, `not sent: project "some-project" has 1 calls under way, as many as it may: try again in 1s`)},
		{"a prompt that never fits the project", quota{}, &project.Limit{TokensPerDay: 400},
			never(`not sent: project "some-project" may use 400 tokens a day, and this call needs 1,141 for its prompt: it can never pass`)},
		{"the project's share of requests", quota{MaxRPM: 4}, &project.Limit{MaxShare: 25},
			later(time.Minute, false, `not sent: project "some-project" has a share of 1 requests a minute of model "some-model", and has used 1: try again in 1m0s`)},
		{"the project's share of tokens", quota{MaxTPM: 10_000}, &project.Limit{MaxShare: 20},
			later(time.Minute, true, `not sent: project "some-project" has a share of 2,000 tokens a minute of model "some-model", and has used 2,000: try again in 1m0s`)},
		{"the project's share of a day", quota{MaxRPD: 4}, &project.Limit{MaxShare: 25},
			muchLater(24*time.Hour, false, `not sent: project "some-project" has a share of 1 requests a day of model "some-model", and has used 1: try again in 24h0m0s`)},
		{"the limit that denies longest", quota{MaxRPM: 1}, &project.Limit{RequestsPerHour: 1, RequestsPerMinute: 1},
			muchLater(time.Hour, false, `not sent: project "some-project" has 0 of its 1 requests an hour left: try again in 1h0m0s`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := newLimits(t, test.quota, test.project)
				first := newCall(limits)
				if d, err := first.Try(t.Context()); err != nil || !d.Allowed && test.want.Status != http.StatusBadRequest {
					t.Fatalf("the first call is not admitted: %+v, %v", d, err)
				}
				c := newCall(limits)
				d, err := c.Try(t.Context())
				if err != nil || d.Allowed {
					t.Fatalf("the call is not denied: %+v, %v", d, err)
				}
				testkit.Equal(t, "the refusal", test.want, c.Refusal(&d, err))
				first.Unanswered(false)
			})
		})
	}
}

// The share of a project among several says how many share the model.
func TestRefusalsByAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newLimits(t, ratelimit.ModelQuota{MaxRPM: 4}, &project.Limit{})
		other := newCall(limits)
		other.Project = "another"
		admit(t, other)
		for range 2 {
			admit(t, newCall(limits))
		}
		c := newCall(limits)
		d, err := c.Try(t.Context())
		want := later(d.RetryAfter, false, `not sent: project "some-project" has a share of 2 requests a minute of model "some-model" while 2 projects use it, and has used 2: try again in 1m0s`)
		testkit.Equal(t, "the refusal", want, c.Refusal(&d, err))
	})
}

func TestRefusalsBehindACallThatWaitsForAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newLimits(t, ratelimit.ModelQuota{MaxTPM: 400_000}, &project.Limit{})
		c := newCall(limits)
		for _, p := range []string{"another", c.Project, c.Project} {
			if _, d, err := limits.Models.TryAcquireCall(t.Context(), ratelimit.Call{Model: c.Model, Project: p, Estimated: 95_000}); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		go limits.Models.AcquireCall(t.Context(), ratelimit.Call{Model: c.Model, Project: c.Project, Estimated: 95_000})
		synctest.Wait()
		d, err := c.Try(t.Context())
		want := later(time.Second, false, "not sent: others wait for the project's share of the tokens a minute: try again in 1s")
		testkit.Equal(t, "the refusal", want, c.Refusal(&d, err))
	})
}

// The refusal of a call that has waited for a slot in vain does not say when the slot lets it pass: nobody knows.
func TestRefusalsByASlotHaveNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newLimits(t, ratelimit.ModelQuota{MaxConcurrent: 1}, nil)
		admit(t, newCall(limits))
		c := newCall(limits)
		d, _ := c.Try(t.Context())
		want := later(time.Second, false, `not sent: model "some-model" has 1 calls under way, as many as it may: try again in 1s`)
		testkit.Equal(t, "the refusal", want, c.Refusal(&d, &ratelimit.DeadlineError{Limit: "max_concurrent"}))
	})
}

// A name by which the client calls the model stands in the message, not the quota's.
func TestRefusalsNameTheModelOfTheRequest(t *testing.T) {
	limits := newLimits(t, ratelimit.ModelQuota{MaxTPM: 100}, nil)
	for name, want := range map[string]string{
		"an-alias": `not sent: model "an-alias" may use 100 tokens a minute, and this call needs 1,141 for its prompt: it can never pass`,
		"":         `not sent: model "some-model" may use 100 tokens a minute, and this call needs 1,141 for its prompt: it can never pass`,
	} {
		c := newCall(limits)
		c.Request.Model = name
		d, err := c.Try(t.Context())
		testkit.Equal(t, "the refusal", never(want), c.Refusal(&d, err))
	}
}

// What other users of the account have used, by the provider's headers, is not left either.
func TestRefusalsCountWhatIsUsedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newLimits(t, ratelimit.ModelQuota{MaxTPM: 30_000}, nil)
		first := admit(t, newCall(limits))
		first.Hear(t.Context(), 200, http.Header{
			"X-Ratelimit-Limit-Tokens": {"30000"}, "X-Ratelimit-Remaining-Tokens": {"1500"}, "X-Ratelimit-Reset-Tokens": {"57s"},
		}, nil)
		c := newCall(limits)
		d, err := c.Try(t.Context())
		want := later(d.RetryAfter, true, fmt.Sprintf(`not sent: model "some-model" has 1,500 of its 30,000 tokens a minute left, and this call needs 2,141 (prompt 1,141, answer up to 1,000): try again in %v`, roundedUp(d.RetryAfter)))
		testkit.Equal(t, "the refusal", want, c.Refusal(&d, err))
		first.Unanswered(false)
	})
}

func TestRefusalOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newLimits(t, plenty, nil)
		admit(t, newCall(limits)).Failed(t.Context(), 429, http.Header{"Retry-After-Ms": {"2500"}}, nil)
		c := newCall(limits)
		d, err := c.Try(t.Context())
		want := later(2500*time.Millisecond, false, `not sent: the provider takes no calls of model "some-model" for now: try again in 3s`)
		testkit.Equal(t, "the refusal", want, c.Refusal(&d, err))
	})
}

// One call of the project may wait, and does. Another that would wait is refused because
// too many wait, and one that must not wait because an earlier call comes first.
func TestRefusalsWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{TokensPerMinute: 4000})
		first := admit(t, newCall(limits))
		waiting := newCall(limits)
		go waiting.Acquire(t.Context())
		synctest.Wait()

		third := newCall(limits)
		d, err := third.Acquire(t.Context())
		if !Denied(t.Context(), err) {
			t.Errorf("the error is %v", err)
		}
		want := later(time.Minute, false, `not sent: project "some-project" has as many waiting calls as it may have: try again in 1m0s`)
		testkit.Equal(t, "too many wait", want, third.Refusal(&d, err))

		small := newCall(limits)
		small.Request.Prompt = 8
		d, err = small.Try(t.Context())
		want = later(time.Minute, true, `not sent: project "some-project" has 1,859 of its 4,000 tokens a minute left, and calls that came earlier wait for it: try again in 1m0s`)
		testkit.Equal(t, "an earlier call waits", want, small.Refusal(&d, err))
		first.Unanswered(false)
		synctest.Wait()
		waiting.Unanswered(false)
	})
}

func TestAcquireWaitsForItsTurn(t *testing.T) {
	for name, of := range map[string]*project.Limit{"a model alone": nil, "a model and a project": {TokensPerMinute: 3000}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := newLimits(t, ratelimit.ModelQuota{MaxTPM: 3000}, of)
				first, impatient, patient := admit(t, newCall(limits)), newCall(limits), newCall(limits)
				impatient.MaxWait = 30 * time.Second
				d, err := impatient.Acquire(t.Context())
				if d.Allowed || !Denied(t.Context(), err) {
					t.Errorf("a call that may wait for half a minute: %+v, %v", d, err)
				}
				if r := impatient.Refusal(&d, err); r.Status != http.StatusTooManyRequests || r.RetryAfter != time.Minute {
					t.Errorf("it is refused with %+v", r)
				}
				began := time.Now()
				patient.MaxWait = 2 * time.Minute
				if d, err := patient.Acquire(t.Context()); err != nil || !d.Allowed || time.Since(began) != time.Minute {
					t.Errorf("a call that may wait for two minutes: %+v, %v after %v", d, err, time.Since(began))
				}
				first.Unanswered(false)
				patient.Unanswered(false)
			})
		})
	}
}

func TestDenied(t *testing.T) {
	left, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), ratelimit.ErrNever, true},
		{t.Context(), ratelimit.ErrCrowded, true},
		{t.Context(), context.DeadlineExceeded, true}, // of MaxWait
		{t.Context(), fmt.Errorf("ratelimit: waiting: %w", ratelimit.ErrNever), true},
		{t.Context(), project.ErrUnpriced, true},
		{t.Context(), fmt.Errorf("%w, and project", project.ErrUnbounded), true},
		{t.Context(), project.ErrInvalid, false},
		{t.Context(), errors.New("the store is lost"), false},
		{left, context.Canceled, false},
		{left, ratelimit.ErrNever, false},
	} {
		if got := Denied(test.ctx, test.err); got != test.want {
			t.Errorf("%v: got %v", test.err, got)
		}
	}
}

// The wait in a message is never too short.
func TestRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0:                               0,
		1:                               time.Millisecond,
		999*time.Millisecond + 1:        time.Second,
		time.Second:                     time.Second,
		time.Second + 1:                 2 * time.Second,
		time.Minute + time.Microsecond:  61 * time.Second,
		500*time.Millisecond - 1:        500 * time.Millisecond,
		59*time.Second + 999_999_999:    time.Minute,
		24*time.Hour - time.Millisecond: 24 * time.Hour,
	} {
		if got := roundedUp(wait); got != want {
			t.Errorf("%v: got %v, want %v", wait, got, want)
		}
	}
}

// A refusal names whose limit it is: a project's above, a key's, or a run's.
func TestRefusalsNameTheOwner(t *testing.T) {
	type limits = map[string]project.Limit
	november := time.Date(2026, time.November, 30, 23, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name   string
		limits limits
		want   dialect.Refusal
	}{
		{"dollars of the calendar's month", limits{"acme": {DollarsPerMonth: 5_000 * price.Dollar, Resets: limit.Calendar{Zone: "UTC"}}},
			muchLater(time.Hour, false, `not sent: project "acme" has $0.12 of its $5,000.00 of November left, and this call may cost up to $0.30: try again in 1h0m0s`)},
		{"in a zone where it is December", limits{"acme": {DollarsPerMonth: 5_000 * price.Dollar, Resets: limit.Calendar{Zone: "Asia/Tokyo"}}},
			muchLater(30*24*time.Hour+16*time.Hour, false, `not sent: project "acme" has $0.12 of its $5,000.00 of December left, and this call may cost up to $0.30: try again in 736h0m0s`)},
		{"of a month that begins on another day", limits{"acme": {DollarsPerMonth: 5_000 * price.Dollar, Resets: limit.Calendar{Month: 15}}},
			muchLater(14*24*time.Hour+time.Hour, false, `not sent: project "acme" has $0.12 of its $5,000.00 of this month left, and this call may cost up to $0.30: try again in 337h0m0s`)},
		{"of any day", limits{"acme/search": {DollarsPerDay: 5_000 * price.Dollar}},
			muchLater(24*time.Hour, false, `not sent: project "acme/search" has $0.12 of its $5,000.00 a day left, and this call may cost up to $0.30: try again in 24h0m0s`)},
		{"of the one above, which has a limit of the same name", limits{"acme/search": {DollarsPerDay: 9_000 * price.Dollar}, "acme": {DollarsPerDay: 5_000 * price.Dollar}},
			muchLater(24*time.Hour, false, `not sent: project "acme" has $0.12 of its $5,000.00 a day left, and this call may cost up to $0.30: try again in 24h0m0s`)},
		{"in total", limits{"acme": {Dollars: 5_000 * price.Dollar}},
			dialect.Refusal{Status: http.StatusPaymentRequired, Message: `not sent: project "acme" has $0.12 of its $5,000.00 in total left, and this call may cost up to $0.30: this budget does not reset; do not retry`}},
		{"never", limits{"acme": {DollarsPerDay: price.Dollar / 10}},
			dialect.Refusal{Status: http.StatusBadRequest, Code: dialect.CodeNever, Message: `not sent: project "acme" may use $0.10 a day, and this call may cost up to $0.30: it can never pass`}},
		{"requests", limits{"acme": {RequestsPerDay: 1}},
			muchLater(24*time.Hour, false, `not sent: project "acme" has 0 of its 1 requests a day left: try again in 24h0m0s`)},
		{"calls at a time", limits{"acme": {MaxConcurrent: 1}},
			later(time.Second, false, `not sent: project "acme" has 1 calls under way, as many as it may: try again in 1s`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(november))
				all := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{})
				if err := all.Projects.SetLimits(test.limits); err != nil {
					t.Fatal(err)
				}
				begin := func(cost price.Amount) *Call {
					c := newCall(all)
					c.Project, c.Prices = "acme/search", pricesOf(t, price.Terms{Rates: price.Rates{Request: cost}})
					return c
				}
				if test.name != "never" {
					first := admit(t, begin(4_999*price.Dollar+88*price.Dollar/100))
					if test.name != "calls at a time" {
						first.Unanswered(true)
					}
				}
				c := begin(price.Dollar * 3 / 10)
				d, err := c.Try(t.Context())
				if d.Allowed || err != nil {
					t.Fatalf("%+v, %v", d, err)
				}
				testkit.Equal(t, "refusal", test.want, c.Refusal(&d, err))
			})
		})
	}
}
