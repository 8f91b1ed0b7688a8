package call

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// plenty counts input and output apart, and denies nothing.
var plenty = ratelimit.ModelQuota{MaxRPM: 1_000_000, MaxInputTPM: 100_000_000, MaxOutputTPM: 100_000_000, MaxConcurrent: 1000}

// charged is what a call has cost.
type charged struct{ Requests, Input, Output, Concurrent int }

func chargedTo(limits *Limits) charged {
	s := limits.Models.Stats(model)
	return charged{s.RPM, s.InputTPM, s.OutputTPM, s.Concurrent}
}

func TestCallsWithoutAnAnswer(t *testing.T) {
	for _, test := range []struct {
		name string
		sent bool
		want charged
	}{
		{"sent", true, charged{Requests: 1, Input: 1141, Output: 1000}},
		{"not sent", false, charged{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCall(newLimits(t, plenty, nil))
			c.Unanswered(test.sent) // no reservation: nothing to settle
			admit(t, c)
			c.Unanswered(test.sent)
			c.Unanswered(!test.sent) // settled already
			testkit.Equal(t, "charged", test.want, chargedTo(c.Limits))
		})
	}
}

func TestFailedCalls(t *testing.T) {
	quoting := func(answer int) string {
		return `{"error":{"code":"json_validate_failed","failed_generation":"` + strings.Repeat("x", answer) + `"}}`
	}
	const all = 1000 // tokens of output that are reserved
	for _, test := range []struct {
		name     string
		provider llm.Provider
		status   int
		text     string
		reads    bool
		input    int
		output   int
		cause    llm.Cause
	}{
		{"a request that is not valid", dialect.OpenAI, 400, `{"error":{}}`, false, 0, 0, ""},
		{"no such model", dialect.OpenAI, 404, "", false, 0, 0, ""},
		{"throttled", dialect.OpenAI, 429, `{"error":{"code":"rate_limit_exceeded"}}`, true, 0, 0, llm.RateLimited},
		{"unpaid", dialect.OpenAI, 429, `{"error":{"code":"insufficient_quota"}}`, true, 0, 0, llm.SpendCap},
		{"overloaded", dialect.Anthropic, 529, `{"error":{"type":"overloaded_error"}}`, true, 0, 0, llm.Overloaded},
		{"down", dialect.OpenAI, 503, "", true, 0, 0, ""},
		{"broken inside", dialect.OpenAI, 500, "", false, 1141, all, ""},
		{"broken on the way", dialect.Anthropic, 502, "", false, 1141, all, ""},
		{"a short answer is quoted", dialect.Groq, 400, quoting(600), true, 1141, all, ""},
		{"a long answer is quoted", dialect.Groq, 400, quoting(60_000), true, 1141, len(quoting(60_000)) / bytesPerToken, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCall(newLimits(t, plenty, nil))
			c.Request = request(test.provider, 1000)
			admit(t, c)
			if got := c.ReadsError(test.status); got != test.reads {
				t.Errorf("ReadsError is %v", got)
			}
			if said := c.Failed(t.Context(), test.status, http.Header{}, []byte(test.text)); said.Cause != test.cause {
				t.Errorf("the cause is %q, want %q", said.Cause, test.cause)
			}
			c.Unanswered(true) // nothing is left to settle
			testkit.Equal(t, "charged", charged{Requests: 1, Input: test.input, Output: test.output}, chargedTo(c.Limits))
			d, _ := newCall(c.Limits).Try(t.Context())
			if paused := !d.Allowed; paused != (test.cause != "") {
				t.Errorf("the model is paused: %v", paused)
			}
		})
	}
}

func TestHearLearnsLimits(t *testing.T) {
	headers := http.Header{
		"X-Ratelimit-Limit-Requests": {"500"}, "X-Ratelimit-Remaining-Requests": {"499"}, "X-Ratelimit-Reset-Requests": {"120ms"},
		"X-Ratelimit-Limit-Tokens": {"30000"}, "X-Ratelimit-Remaining-Tokens": {"29000"}, "X-Ratelimit-Reset-Tokens": {"2s"},
	}
	for _, test := range []struct {
		name    string
		auto    bool
		applies func(llm.Limits) llm.Limits
		want    int // tokens a minute, of 100,000 before
	}{
		{"the quota is automatic", true, nil, 30_000},
		{"the quota is set", false, nil, 100_000},
		{"all applies", true, func(said llm.Limits) llm.Limits { return said }, 30_000},
		{"nothing applies", true, func(llm.Limits) llm.Limits { return llm.Limits{} }, 100_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCall(newLimits(t, ratelimit.ModelQuota{MaxRPM: 500, MaxTPM: 100_000, Auto: test.auto}, nil))
			c.Applies = test.applies
			admit(t, c)
			said := c.Hear(t.Context(), 200, headers, nil)
			if len(said.Windows) != 2 {
				t.Errorf("Hear returns %+v", said)
			}
			if q, _ := c.Limits.Models.Quota(model); q.MaxTPM != test.want {
				t.Errorf("the quota is %+v", q)
			}
			c.Unanswered(false)
		})
	}
}

// A call that the provider serves ends the pause of its model; MaxPause bounds the pause.
func TestHearEndsPauses(t *testing.T) {
	for _, test := range []struct {
		status int
		ends   bool
	}{{200, true}, {204, true}, {400, false}, {500, false}} {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := newLimits(t, plenty, nil)
				failed := admit(t, newCall(limits))
				failed.MaxPause = 10 * time.Second
				failed.Failed(t.Context(), 429, http.Header{"Retry-After": {"3600"}}, nil)

				next := newCall(limits)
				if d, _ := next.Try(t.Context()); d.Allowed {
					t.Fatal("the model is not paused")
				}
				time.Sleep(10 * time.Second)
				probe := admit(t, newCall(limits))
				probe.Hear(t.Context(), test.status, http.Header{}, nil)
				if d, _ := next.Try(t.Context()); d.Allowed != test.ends {
					t.Errorf("a second call is admitted: %v", d.Allowed)
				}
				probe.Unanswered(true)
				next.Unanswered(false)
			})
		})
	}
}

func TestSettle(t *testing.T) {
	json, stream := http.Header{"Content-Type": {"application/json"}}, http.Header{"Content-Type": {"text/event-stream"}}
	const partial = `data: {"choices":[{"delta":{"content":"Hello"}}]}` + "\n\n"
	for _, test := range []struct {
		name     string
		provider llm.Provider
		header   http.Header
		body     string
		seen     bool // ChargeSeen
		want     charged
		exact    bool
		pauses   bool
	}{
		{"a whole answer", dialect.OpenAI, json, `{"usage":{"prompt_tokens":900,"completion_tokens":7}}`, false, charged{Requests: 1, Input: 900, Output: 7}, true, false},
		{"an answer beyond the reservation", dialect.OpenAI, json, `{"usage":{"prompt_tokens":2000,"completion_tokens":9000}}`, false, charged{Requests: 1, Input: 2000, Output: 9000}, true, false},
		{"a cached prompt", dialect.Anthropic, json, `{"usage":{"input_tokens":100,"cache_read_input_tokens":800,"output_tokens":7}}`, false, charged{Requests: 1, Input: 100, Output: 7}, true, false},
		{"no usage", dialect.OpenAI, json, `{"choices":[]}`, false, charged{Requests: 1, Input: 1141, Output: 1000}, false, false},
		{"a stream that breaks off", dialect.OpenAI, stream, partial, false, charged{Requests: 1, Input: 1141, Output: 1000}, false, false},
		{"the same, charged as seen", dialect.OpenAI, stream, partial, true, charged{Requests: 1, Input: 1141, Output: 1}, false, false},
		{"nothing is seen", dialect.OpenAI, stream, "", true, charged{Requests: 1, Input: 1141, Output: 1000}, false, false},
		{"a stream that ends in an error", dialect.Anthropic, stream, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", false, charged{Requests: 1, Input: 1141, Output: 1000}, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCall(newLimits(t, plenty, nil))
			c.Request, c.ChargeSeen = request(test.provider, 1000), test.seen
			before := estimateOf(c)
			admit(t, c)
			meter := dialect.NewMeter(c.Request.API, test.header)
			meter.Write([]byte(test.body))
			if used := c.Settle(t.Context(), meter, true); used.Exact != test.exact {
				t.Errorf("%+v is used", used)
			}
			c.Unanswered(true) // nothing is left to settle
			testkit.Equal(t, "charged", test.want, chargedTo(c.Limits))
			next := newCall(c.Limits)
			next.Request = c.Request
			if learned := estimateOf(next) != before; learned != test.exact {
				t.Errorf("the estimator has learned: %v", learned)
			}
			if d, _ := newCall(c.Limits).Try(t.Context()); d.Allowed == test.pauses {
				t.Errorf("the next call is admitted: %v", d.Allowed)
			}
		})
	}
}

// Only exact usage lowers a charge. A call whose output is not known is charged at least
// what was reserved, what was seen, and what the estimator expects of such a call.
func TestOnlyExactUsageLowersACharge(t *testing.T) {
	const perMinute = 1_000_000
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 500 {
		limits := newLimits(t, plenty, &project.Limit{TokensPerMinute: perMinute})
		if random.IntN(2) == 0 { // reserve less than the estimator expects
			q := plenty
			q.MaxOutputTPM = 1 + random.IntN(500)
			if err := limits.Models.SetQuota(model, q); err != nil {
				t.Fatal(err)
			}
		}
		c := newCall(limits)
		c.Request = request([]llm.Provider{dialect.OpenAI, dialect.Anthropic, dialect.Gemini}[random.IntN(3)], random.IntN(1+random.IntN(2000)))
		c.Request.MaxOutput = random.IntN(2) * random.IntN(6000)
		for range random.IntN(60) {
			c.Limits.Estimator.Learn(owner, &c.Request, llm.Usage{Input: c.Request.Prompt, Output: random.IntN(50), Exact: true})
		}
		admit(t, c)
		reserved, ofProject := chargedTo(limits), projectTokens(t, limits, perMinute)

		used := llm.Usage{Input: random.IntN(3000) - 1, Output: random.IntN(3000), Exact: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			used.Input = -1
		}
		c.ChargeSeen = random.IntN(2) == 0
		floor := c.Limits.Estimator.Floor(owner, &c.Request)
		c.commit(used, 0)
		got, gotProject := chargedTo(limits), projectTokens(t, limits, perMinute)

		counted := func(output int) int {
			if c.Request.Provider == dialect.Gemini {
				return 0
			}
			return output
		}
		least := max(reserved.Output, counted(used.Output), counted(floor))
		known := used.Exact || c.ChargeSeen && used.Output > 0
		if known && got.Output != counted(used.Output) || !known && got.Output != least {
			t.Errorf("%d: output %d is charged: reserved %+v, used %+v, floor %d, ChargeSeen %v", i, got.Output, reserved, used, floor, c.ChargeSeen)
		}
		if want := max(used.Input, 0); used.Input >= 0 && got.Input != want || used.Input < 0 && got.Input != reserved.Input {
			t.Errorf("%d: input %d is charged: reserved %+v, used %+v", i, got.Input, reserved, used)
		}
		if !known && used.Input < 0 && gotProject < ofProject {
			t.Errorf("%d: the project's charge falls from %d to %d: used %+v", i, ofProject, gotProject, used)
		}
		if want := int64(used.Input + used.Output); known && used.Input >= 0 && gotProject != want {
			t.Errorf("%d: the project is charged %d, want %d", i, gotProject, want)
		}
	}
}

// A call that is settled already is not settled again, whatever is known of its usage.
func TestSettledOnce(t *testing.T) {
	c := newCall(newLimits(t, plenty, nil))
	if d, err := c.Try(t.Context()); err != nil || !d.Allowed {
		t.Fatal(d.Reason(), err)
	}
	for range 2 {
		c.Settle(t.Context(), dialect.NewMeter(dialect.Chat, http.Header{}), false)
	}
}
