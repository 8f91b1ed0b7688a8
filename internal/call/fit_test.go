package call

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// microdollars are prices of a millionth of a dollar for a token of the prompt, and ten for one of the answer.
var microdollars = price.Terms{Rates: price.Rates{Input: price.Dollar, Output: 10 * price.Dollar}}

// fittedMaxima are those of the model of fitted calls.
var fittedMaxima = llm.Maxima{Context: 200_000, Output: 16_000}

// newFitted returns a call with a body that may be fitted to at least 256 tokens an answer.
func newFitted(t *testing.T, limits *Limits, body string) *Call {
	t.Helper()
	endpoint := dialect.Endpoint{Provider: dialect.OpenAI, API: dialect.Chat, Model: model}
	if strings.Contains(body, "thinking") {
		endpoint = dialect.Endpoint{Provider: dialect.Anthropic, API: dialect.Messages, Model: model}
	}
	r, err := endpoint.Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	prices := pricesOf(t, microdollars)
	prices.Table = prices.Table.With(price.Override{Model: model, Maxima: fittedMaxima})
	return &Call{Limits: limits, Request: r, Call: ratelimit.Call{Model: model, Project: owner}, Prices: prices, Fit: Fit{Body: []byte(body), Min: 256}}
}

// tokensFor returns the most tokens of a call with a body whose answers have so many each.
func tokensFor(t *testing.T, body string, answer int) (prompt, all int) {
	t.Helper()
	r := newFitted(t, nil, body).Request
	r.MaxOutput = answer
	input, output, ok := r.Most(fittedMaxima)
	if !ok {
		t.Fatalf("the most of %s is not known", body)
	}
	return input, input + output
}

// dollarsFor returns the most that such a call costs.
func dollarsFor(t *testing.T, body string, answer int) price.Amount {
	prompt, all := tokensFor(t, body, answer)
	return price.Amount(prompt+10*(all-prompt)) * price.Dollar / 1e6
}

// left returns what is left of the project's windows, by their names.
func left(t *testing.T, limits *Limits) map[string]int64 {
	t.Helper()
	d, err := limits.Projects.Peek(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, s := range d.Windows() {
		all[s.Window.Name] = s.Remaining
	}
	return all
}

// A call is fitted to what is left of all limits that reserve the most of it, and not below fit_min.
func TestFit(t *testing.T) {
	const bounded, unbounded, four = `{"max_tokens":8192,"messages":[]}`, `{"messages":[]}`, `{"n":4,"max_tokens":8192,"messages":[]}`
	const low = `{"max_tokens":200,"messages":[]}`
	cost := func(body string, answer int) price.Amount { return dollarsFor(t, body, answer) }
	tokens := func(answer int) int { _, all := tokensFor(t, bounded, answer); return all }
	for name, c := range map[string]struct {
		limit project.Limit
		quota ratelimit.ModelQuota
		body  string
		want  int // 0: it is denied; the request's own bound: it is not changed
	}{
		"enough is left":                         {project.Limit{DollarsPerDay: price.Dollar}, ratelimit.ModelQuota{}, bounded, 8192},
		"dollars":                                {project.Limit{DollarsPerDay: cost(bounded, 812)}, ratelimit.ModelQuota{}, bounded, 812},
		"dollars, and part of a token's price":   {project.Limit{Dollars: cost(bounded, 813) - 1}, ratelimit.ModelQuota{}, bounded, 812},
		"dollars, as few as fit_min":             {project.Limit{Dollars: cost(bounded, 256)}, ratelimit.ModelQuota{}, bounded, 256},
		"dollars, fewer than fit_min":            {project.Limit{Dollars: cost(bounded, 256) - 1}, ratelimit.ModelQuota{}, bounded, 0},
		"tokens that reserve the most":           {project.Limit{TokensPerDay: tokens(1000), Reserve: project.ReserveMost}, ratelimit.ModelQuota{}, bounded, 1000},
		"tokens that reserve what is expected":   {project.Limit{TokensPerDay: 4000}, ratelimit.ModelQuota{}, bounded, 8192},
		"tokens and dollars, of which the least": {project.Limit{TokensPerDay: tokens(1000), DollarsPerDay: cost(bounded, 900), Reserve: project.ReserveMost}, ratelimit.ModelQuota{}, bounded, 900},
		"a model's quota that reserves the most": {project.Limit{}, ratelimit.ModelQuota{MaxTPM: tokens(700), ReserveTokens: project.ReserveMost}, bounded, 700},
		"a model's quota and dollars":            {project.Limit{Dollars: cost(bounded, 600)}, ratelimit.ModelQuota{MaxTPM: tokens(700), ReserveTokens: project.ReserveMost}, bounded, 600},
		"four answers, which share":              {project.Limit{Dollars: cost(four, 300)}, ratelimit.ModelQuota{}, four, 300},
		"four answers, too little for each":      {project.Limit{Dollars: cost(four, 255)}, ratelimit.ModelQuota{}, four, 0},
		"a request without a bound":              {project.Limit{Dollars: cost(unbounded, 5000)}, ratelimit.ModelQuota{}, unbounded, 5000},
		"a request whose own bound is low":       {project.Limit{Dollars: cost(low, 199)}, ratelimit.ModelQuota{}, low, 0},
	} {
		t.Run(name, func(t *testing.T) {
			limits := newLimits(t, c.quota, &c.limit)
			call := newFitted(t, limits, c.body)
			own, before := call.Request, left(t, limits)
			d, err := call.Try(t.Context())
			if err != nil || d.Allowed != (c.want > 0) {
				t.Fatalf("%+v, %v", d, err)
			}
			if c.want == 0 {
				if call.Request != own || call.Fitted() != 0 {
					t.Errorf("it was denied, and its bound is %d", call.Request.MaxOutput)
				}
				return
			}
			if call.Request.MaxOutput != c.want || c.want != own.MaxOutput && call.Fitted() != c.want {
				t.Errorf("the bound is %d, and %d by what is said; want %d", call.Request.MaxOutput, call.Fitted(), c.want)
			}
			if call.Fitted() > 0 { // exactly the lower most is reserved
				_, most := tokensFor(t, c.body, c.want)
				for window, n := range left(t, limits) {
					if taken := before[window] - n; strings.HasPrefix(window, "tokens") && taken != int64(most) ||
						strings.HasPrefix(window, "dollars") && taken != int64(dollarsFor(t, c.body, c.want)) {
						t.Errorf("%s: %d are reserved", window, taken)
					}
				}
			}
			call.Unanswered(false)
			testkit.Equal(t, "what is left after the call was not sent", before, left(t, limits))
		})
	}
}

// The bound of a request that thinks stays above its budget for that.
func TestFitLeavesRoomForThinking(t *testing.T) {
	const body = `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":4000},"messages":[]}`
	for tokens, want := range map[int]int{4256: 4256, 4255: 0, 5000: 5000} {
		limits := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{Dollars: dollarsFor(t, body, tokens)})
		c := newFitted(t, limits, body)
		if d, err := c.Try(t.Context()); err != nil || d.Allowed != (want > 0) || c.Fitted() != want {
			t.Errorf("%d tokens are left: %v, %d, %v", tokens, d.Allowed, c.Fitted(), err)
		}
		c.Unanswered(false)
	}
}

// A limit that has nothing to do with the most of a call is not asked again with a lower one.
func TestFitOnlyWhereItHelps(t *testing.T) {
	limits := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{RequestsPerDay: 1, Dollars: price.Dollar / 100})
	first := newFitted(t, limits, `{"max_tokens":300}`)
	admit(t, first)
	c := newFitted(t, limits, `{"max_tokens":8000}`)
	d, err := c.Try(t.Context())
	if err != nil || d.Allowed || c.Fitted() != 0 || c.Request.MaxOutput != 8000 {
		t.Errorf("%+v, %v", d, err)
	}
	first.Unanswered(false)
}

// A call that may wait passes at once if it can be fitted. One that cannot waits with its own bound.
func TestFitBeforeWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const body = `{"max_tokens":8000}`
		limits := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{DollarsPerHour: dollarsFor(t, body, 8000) + dollarsFor(t, body, 500)})
		first := admit(t, newFitted(t, limits, body))
		began := time.Now()
		second := newFitted(t, limits, body)
		if d, err := second.Acquire(t.Context()); err != nil || !d.Allowed || second.Fitted() != 500 || !time.Now().Equal(began) {
			t.Fatalf("%+v, %v, fitted to %d after %v", d, err, second.Fitted(), time.Since(began))
		}
		time.AfterFunc(time.Minute, func() { first.Unanswered(false) })
		third := newFitted(t, limits, body)
		if d, err := third.Acquire(t.Context()); err != nil || !d.Allowed || third.Fitted() != 0 || time.Since(began) != time.Minute {
			t.Errorf("%+v, %v, fitted to %d after %v", d, err, third.Fitted(), time.Since(began))
		}
		second.Unanswered(false)
		third.Unanswered(false)
	})
}

// A call that is sent again is fitted anew, from its own bound.
func TestFitAgain(t *testing.T) {
	const body = `{"max_tokens":8000}`
	limits := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{Dollars: dollarsFor(t, body, 8000) + dollarsFor(t, body, 500)})
	first := admit(t, newFitted(t, limits, body))
	c := admit(t, newFitted(t, limits, body))
	if c.Fitted() != 500 {
		t.Fatalf("it is fitted to %d", c.Fitted())
	}
	c.Unanswered(false)
	first.Unanswered(false)
	admit(t, c)
	if c.Fitted() != 0 || c.Request.MaxOutput != 8000 {
		t.Errorf("it is fitted to %d, with a bound of %d", c.Fitted(), c.Request.MaxOutput)
	}
	if pieces, edited := c.Request.Edited([]byte(body)); edited {
		t.Errorf("it would be sent as %q", pieces)
	}
	c.Unanswered(false)
}

// However many calls are fitted at once, they reserve no more than there is.
func TestFitsAtOnce(t *testing.T) {
	limit := price.Amount(price.Dollar / 10)
	limits := newLimits(t, ratelimit.ModelQuota{}, &project.Limit{Dollars: limit})
	var all sync.WaitGroup
	var mu sync.Mutex
	passed, reserved := 0, price.Amount(0)
	for i := range 200 {
		c := newFitted(t, limits, fmt.Sprintf(`{"max_tokens":%d}`, 3000+i))
		all.Go(func() {
			d, err := c.Try(t.Context())
			mu.Lock()
			if err != nil {
				t.Error(err)
			}
			if d.Allowed {
				passed++
				reserved += c.reserved
			}
			mu.Unlock()
		})
	}
	all.Wait()
	if remains := left(t, limits)["dollars"]; reserved > limit || int64(limit-reserved) != remains || passed < 4 {
		t.Errorf("%d have passed, which reserve %v of %v; %v are left", passed, reserved, limit, price.Amount(remains))
	}
}
