package call

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// visible returns a call of a stream of Anthropic's whose answer may have so many tokens, with an estimator that has seen
// answers of 200 tokens.
func visible(t *testing.T, limits *Limits, most int) *Call {
	t.Helper()
	r, err := dialect.Endpoint{Provider: dialect.Anthropic, API: dialect.Messages}.Read(fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"Hi"}]}`, most))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		limits.Estimator.Learn(owner, &r, llm.Usage{Input: 10, Output: 200, Exact: true})
	}
	return &Call{Limits: limits, Request: r, Call: ratelimit.Call{Model: model, Project: owner}}
}

var cutAt = func(tokens int) *project.Limit {
	return &project.Limit{TokensPerMinute: tokens, OnOverrun: project.OverrunCut}
}

// A stream of 8,192 tokens of five letters is extended eight times at most, and by no more than its answer can have.
func TestSlicesGrow(t *testing.T) {
	for _, letters := range []int{1, 2, 5} {
		c := admit(t, visible(t, newLimits(t, plenty, cutAt(1_000_000)), 50_000))
		extended := 0
		for came := 1; came <= 8192*letters; came++ {
			before := c.stream.output
			if !c.Extend(t.Context(), came) || c.stream.output < came+inFlight {
				t.Fatalf("%d have come, and %d are reserved", came, c.stream.output)
			}
			if c.stream.output > before {
				extended++
			}
		}
		if extended > 8 || extended < 2 {
			t.Errorf("%d letters: it was extended %d times, up to %d", letters, extended, c.stream.output)
		}
	}
	c := admit(t, visible(t, newLimits(t, plenty, cutAt(1_000_000)), 1000))
	for came := range 9000 { // the letters of a thousand tokens
		if !c.Extend(t.Context(), came) {
			t.Fatal("denied")
		}
	}
	if c.stream.output != 1000 {
		t.Errorf("%d are reserved, and the answer has a thousand at most", c.stream.output)
	}
}

// A stream reserves several times what is expected of its answer, up to an eighth of its limits and no less than what is
// expected; one whose provider counts as it comes reserves that alone.
func TestStreamsReserveMoreThanIsExpectedAtFirst(t *testing.T) {
	const many = 1_000_000
	quota := ratelimit.ModelQuota{MaxTPM: 8000, OnOverrun: project.OverrunCut}
	dollars := &project.Limit{DollarsPerDay: price.Dollar / 10, Reserve: project.ReserveExpected, OnOverrun: project.OverrunCut}
	first := func(l *Limits, api dialect.API) (first, expected int) {
		c := visible(t, l, 50_000)
		c.Prices, c.Request.API = &Prices{Table: price.Known()}, api
		admit(t, c)
		return c.stream.first.Output, c.Tokens.Output
	}
	got, expected := first(newLimits(t, plenty, cutAt(many)), dialect.Messages)
	if got != firstTimes*expected {
		t.Errorf("%d are reserved, and %d expected", got, expected)
	}
	if got, expected := first(newLimits(t, plenty, cutAt(many)), dialect.Generate); got != expected {
		t.Errorf("%d are reserved of an answer that is counted as it comes, and %d expected", got, expected)
	}
	if got, _ := first(newLimits(t, quota, nil), dialect.Messages); got != 1000 {
		t.Errorf("%d are reserved of a quota of 8,000", got)
	}
	if got, expected := first(newLimits(t, plenty, cutAt(8*expected-80)), dialect.Messages); got != expected {
		t.Errorf("%d are reserved of a small limit, and %d expected", got, expected)
	}
	if got, expected := first(newLimits(t, plenty, dollars), dialect.Messages); got < expected || got*15_000 > price.Dollar/10/8 {
		t.Errorf("%d are reserved of $0.10, and %d expected", got, expected)
	}
}

// Near the limit, a stream gets smaller slices, down to what it needs, and is cut off when less is left.
func TestSlicesNearTheLimit(t *testing.T) {
	limits := newLimits(t, plenty, cutAt(5000))
	c := admit(t, visible(t, limits, 8000))
	came := 0
	for c.Extend(t.Context(), came) {
		came++
	}
	if used := projectTokens(t, limits, 5000); used > 5000 || used < 5000-2*inFlight {
		t.Errorf("%d are reserved", used)
	}
	if refused := c.Cut(); refused == nil || refused.Status != 429 || !strings.HasPrefix(refused.Message, `cut off: the limit "tokens_per_minute" of project "`+owner+`" has no more for this answer: try again in `) {
		t.Errorf("%+v", refused)
	}
	m := dialect.NewMeter(dialect.Messages, nil)
	fmt.Fprintf(m, "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":%q}}\n\n", strings.Repeat("x", came))
	before := projectTokens(t, limits, 5000)
	c.Settle(t.Context(), m, true)
	if used := projectTokens(t, limits, 5000); used != before {
		t.Errorf("%d are charged, and %d were reserved: nobody knows what was used", used, before)
	}
	if c.Charged.Output < int64(came) {
		t.Errorf("%+v", c.Charged)
	}
}

// What a stream has used is charged when its provider says it, whatever was reserved.
func TestExtendedStreamsAreSettled(t *testing.T) {
	limits := newLimits(t, plenty, cutAt(50_000))
	c := admit(t, visible(t, limits, 8000))
	c.Extend(t.Context(), 3000)
	m := dialect.NewMeter(dialect.Messages, nil)
	fmt.Fprint(m, "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":11}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":777}}\n\ndata: {\"type\":\"message_stop\"}\n\n")
	c.Settle(t.Context(), m, true)
	if used := projectTokens(t, limits, 50_000); used != 788 {
		t.Errorf("%d are charged", used)
	}
}

// Limits in dollars that reserve what is expected, and quotas of models, cut streams too.
func TestDollarsAndQuotasCut(t *testing.T) {
	for name, limits := range map[string]*Limits{
		"dollars": newLimits(t, plenty, &project.Limit{DollarsPerDay: price.Dollar / 100, Reserve: project.ReserveExpected, OnOverrun: project.OverrunCut}),
		"quota":   newLimits(t, ratelimit.ModelQuota{MaxOutputTPM: 5000, OnOverrun: project.OverrunCut}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			c := visible(t, limits, 8000)
			c.Prices = &Prices{Table: price.Known()}
			admit(t, c)
			came := 0
			for c.Extend(t.Context(), came) {
				if came++; came > 8000 {
					t.Fatal("it was not cut off")
				}
			}
			if came < 300 || c.Cut() == nil || c.Cut().Status != http.StatusTooManyRequests {
				t.Errorf("%d have come: %+v", came, c.Cut())
			}
			t.Log(came, c.Cut().Message)
		})
	}
}

// A call that no limit cuts, or whose answer cannot be cut, is not extended.
func TestWhatIsNotExtended(t *testing.T) {
	for name, c := range map[string]*Call{
		"debt":            visible(t, newLimits(t, plenty, &project.Limit{TokensPerMinute: 50_000}), 8000),
		"the most":        visible(t, newLimits(t, plenty, &project.Limit{TokensPerMinute: 50_000, Reserve: project.ReserveMost, OnOverrun: project.OverrunCut}), 8000),
		"no limit at all": visible(t, newLimits(t, plenty, nil), 8000),
	} {
		admit(t, c)
		if c.Extends() {
			t.Errorf("%s: it is extended", name)
		}
	}
	limits := newLimits(t, plenty, cutAt(50_000))
	c := visible(t, limits, 8000)
	c.Request.Stream = false
	admit(t, c)
	if c.Extends() || projectTokens(t, limits, 50_000) < 8000 {
		t.Errorf("a whole answer has reserved %d", projectTokens(t, limits, 50_000))
	}
}

// Of an answer that cannot be cut, limits in dollars that cut reserve the most, too.
func TestWholeAnswersReserveTheMostDollars(t *testing.T) {
	limits := newLimits(t, plenty, &project.Limit{DollarsPerDay: price.Dollar, Reserve: project.ReserveExpected, OnOverrun: project.OverrunCut})
	c := visible(t, limits, 8000)
	c.Request.Stream, c.Prices = false, &Prices{Table: price.Known()}
	admit(t, c)
	if d, err := limits.Projects.Peek(t.Context(), owner); err != nil || d.Windows()[0].Used < int64(8000*15_000) { // $15 a million
		t.Errorf("%+v, %v", d.Windows(), err)
	}
}

// A denial of a limit that cuts says what the call would have reserved of it: the most of its prompt, too.
func TestDenialsOfLimitsThatCut(t *testing.T) {
	c := visible(t, newLimits(t, plenty, cutAt(1500)), 8000)
	admit(t, c)
	again := visible(t, c.Limits, 8000)
	d, err := again.Try(t.Context())
	if err != nil || d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	first := again.stream.first
	if first.Input < 50 || first.Input+first.Output <= 750 {
		t.Fatalf("%+v are reserved at first", first)
	}
	want := fmt.Sprintf("needs %d (prompt %d, answer up to %d)", first.Input+first.Output, first.Input, first.Output)
	if got := again.Refusal(&d, nil).Message; !strings.Contains(got, want) {
		t.Errorf("%s; want %s", got, want)
	}
}
