package call

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// usual are the prices of the model in these tests: of a million tokens, and $0.01 a request.
var usual = price.Terms{
	Rates: price.Rates{Input: 2 * price.Dollar, CachedInput: price.Dollar / 5, CacheWrite: 4 * price.Dollar, Output: 10 * price.Dollar, Request: price.Dollar / 100},
	Above: []price.Above{{Tokens: 200_000, Rates: price.Rates{Input: 4 * price.Dollar, CacheWrite: 8 * price.Dollar}}},
	Flex:  price.Service{Percent: 50},
	Fast:  price.Service{Percent: 600},
}

// pricesOf returns prices of the model.
func pricesOf(t *testing.T, terms ...price.Terms) *Prices {
	t.Helper()
	p, err := price.New(terms...)
	if err != nil {
		t.Fatal(err)
	}
	return &Prices{Table: price.Known().With(price.Override{Model: model, Price: p})}
}

// newPricedCall returns a call of a project that may use $100 in total. It is estimated to use 1,141
// tokens of input and 1,000 of output.
func newPricedCall(t *testing.T) *Call {
	c := newCall(newLimits(t, plenty, &project.Limit{Dollars: 100 * price.Dollar, Reserve: project.ReserveExpected}))
	c.Prices = pricesOf(t, usual)
	return c
}

// spent returns what the project has spent of its $100.
func spent(t *testing.T, limits *Limits) price.Amount {
	t.Helper()
	d, err := limits.Projects.Peek(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return 100*price.Dollar - price.Amount(d.Windows()[0].Remaining)
}

// What is reserved is the dearest that the call may be.
func TestReservedPrice(t *testing.T) {
	for _, test := range []struct {
		name   string
		tier   string
		prompt int
		want   price.Amount
	}{
		{"every token of the prompt may be written to a cache", "", 1000, 10_000_000 + 1141*4_000 + 1000*10_000},
		{"no less in a cheaper tier, for the provider may not serve it there", "flex", 1000, 10_000_000 + 1141*4_000 + 1000*10_000},
		{"more in a dearer tier", "fast", 1000, 60_000_000 + 1141*24_000 + 1000*60_000},
		{"above a size", "", 200_000, 10_000_000 + 225_016*8_000 + 2048*10_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newPricedCall(t)
			c.Request.Prompt, c.Request.Tier = test.prompt, test.tier
			if got := spent(t, admit(t, c).Limits); got != test.want {
				t.Errorf("%v is reserved, want %v", got, test.want)
			}
			c.Unanswered(false)
			if got := spent(t, c.Limits); got != 0 {
				t.Errorf("%v stays reserved for a call that was not sent", got)
			}
		})
	}
}

// Where an estimate is higher than a limit in dollars, all of the limit is reserved: only what the
// request states itself makes a call impossible.
func TestEstimatesInDollarsMakeNoCallImpossible(t *testing.T) {
	for _, test := range []struct {
		name     string
		provider llm.Provider
		prompt   int
		output   int // the most that the request allows
		want     price.Amount
	}{
		{"learned", dialect.OpenAI, 1000, 0, 100 * price.Dollar},
		{"an output that the provider does not count", dialect.Anthropic, 1000, 50_000_000, 100 * price.Dollar},
		{"a prompt that may be shorter", dialect.OpenAI, 20_000_000, 0, 100 * price.Dollar},
		{"a prompt that is longer", dialect.OpenAI, 30_000_000, 0, 0},
		{"an output that the provider counts", dialect.OpenAI, 1000, 50_000_000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newPricedCall(t)
			c.Request = request(test.provider, test.prompt)
			c.Request.MaxOutput = test.output
			short := c.Request
			short.Prompt = 2
			c.Limits.Estimator.Learn(owner, &short, llm.Usage{Input: 10_000_000, Output: 11_000_000, Exact: true})
			d, err := c.Try(t.Context())
			if err != nil || d.Allowed != (test.want > 0) || spent(t, c.Limits) != test.want {
				t.Fatalf("%v is reserved, want %v: %+v, %v", spent(t, c.Limits), test.want, d, err)
			}
			if !d.Allowed && c.Refusal(&d, nil).Code != dialect.CodeNever {
				t.Errorf("the refusal is not final: %+v", c.Refusal(&d, nil))
			}
		})
	}
}

// A call costs what its response reports, each part at its own price.
func TestSettledPrice(t *testing.T) {
	const reserved = 10_000_000 + 1141*4_000 + 1000*10_000
	for _, test := range []struct {
		name       string
		provider   llm.Provider
		used       llm.Usage
		chargeSeen bool
		want       price.Amount
	}{
		{"exact", dialect.OpenAI, llm.Usage{Input: 1000, Cached: 600, CacheWrite: 100, Output: 50, Exact: true}, false, 10_000_000 + 300*2_000 + 600*200 + 100*4_000 + 50*10_000},
		{"in the tier that it was served in", dialect.OpenAI, llm.Usage{Input: 1000, Output: 50, Tier: "flex", Exact: true}, false, 5_000_000 + 1000*1_000 + 50*5_000},
		{"more than was reserved", dialect.OpenAI, llm.Usage{Input: 2000, Output: 9000, Exact: true}, false, 10_000_000 + 2000*2_000 + 9000*10_000},
		{"unknown", dialect.OpenAI, unknownUsage, false, reserved},
		{"cut off", dialect.OpenAI, llm.Usage{Input: 1000, Output: 10}, false, reserved},
		{"cut off after more than was reserved", dialect.OpenAI, llm.Usage{Input: -1, Output: 3000}, false, 10_000_000 + 1141*4_000 + 3000*10_000},
		{"cut off, and what was seen is charged", dialect.OpenAI, llm.Usage{Input: 1000, Output: 10}, true, 10_000_000 + 1000*2_000 + 10*10_000},
		{"an unknown prompt", dialect.OpenAI, llm.Usage{Input: -1, Output: 10, Exact: true}, false, 10_000_000 + 1141*4_000 + 10*10_000},
		{"told by the provider", dialect.OpenRouter, llm.Usage{Input: 1000, Output: 10, Cost: 123_456, CostTold: true, Exact: true}, false, 123_456},
		{"told by a provider that means something else", dialect.OpenAI, llm.Usage{Input: 1000, Output: 10, Cost: 123_456, CostTold: true, Exact: true}, false, 10_000_000 + 1000*2_000 + 10*10_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newPricedCall(t)
			c.Request = request(test.provider, 1000)
			c.ChargeSeen = test.chargeSeen
			admit(t, c)
			c.commit(test.used, c.usedPrice(test.used))
			if got := spent(t, c.Limits); got != test.want || c.Cost != test.want {
				t.Errorf("it costs %v, and the project has spent %v; want %v", c.Cost, got, test.want)
			}
		})
	}
}

// The response says in which tier a call was served. If it does not, a call that asked for a dearer
// tier was served there, and one that asked for a cheaper tier was not: only the provider lowers a
// price.
func TestSettledPriceOfTheTierAskedFor(t *testing.T) {
	const usual, half, sixfold price.Amount = 10_000_000 + 1000*2_000 + 50*10_000, 5_000_000 + 1000*1_000 + 50*5_000, 60_000_000 + 1000*12_000 + 50*60_000
	for _, test := range []struct {
		asked, told string
		want        price.Amount
	}{
		{"flex", "", usual}, {"flex", "standard", usual}, {"flex", "flex", half}, {"", "flex", half},
		{"fast", "", sixfold}, {"fast", "standard", usual}, {"fast", "fast", sixfold}, {"", "fast", sixfold},
	} {
		c := newPricedCall(t)
		c.Request = request(dialect.OpenAI, 1000)
		c.Request.Tier = test.asked
		admit(t, c)
		used := llm.Usage{Input: 1000, Output: 50, Tier: test.told, Exact: true}
		c.commit(used, c.usedPrice(used))
		if c.Cost != test.want {
			t.Errorf("asked for %q, told %q: it costs %v, want %v", test.asked, test.told, c.Cost, test.want)
		}
	}
}

// An error of the provider costs nothing, unless the call may have been served and its project has had
// too many of them in this minute, or is to pay for all. Then it costs what was reserved, however long
// an answer the estimator expects.
func TestFailedCallsInDollars(t *testing.T) {
	const reserved = 10_000_000 + 1141*4_000 + 1000*10_000
	for _, test := range []struct {
		status, failures int
		charge           bool
		want             price.Amount
	}{
		{400, 0, true, 0},
		{429, 0, true, 0},
		{503, 0, true, 0},
		{500, 0, false, 0},
		{500, maxFreeFailures - 1, false, 0},
		{500, maxFreeFailures, false, reserved},
		{500, 0, true, reserved},
	} {
		c := newPricedCall(t)
		for range test.failures {
			c.Limits.failures.take(owner, time.Now())
		}
		c.ChargeFailed = test.charge
		admit(t, c)
		c.Limits.Estimator.Learn(owner, &c.Request, llm.Usage{Input: 1000, Output: 7000, Exact: true})
		c.Failed(t.Context(), test.status, http.Header{}, nil)
		if got := spent(t, c.Limits); got != test.want {
			t.Errorf("%+v: it costs %v", test, got)
		}
	}
}

// The failures of a project are counted by the minute, and those of one project do not concern another.
func TestFreeFailures(t *testing.T) {
	var f freeFailures
	now := time.Now()
	for range maxFreeFailures {
		if !f.take("p", now) {
			t.Fatal("a failure is not free")
		}
	}
	if f.take("p", now.Add(time.Minute-1)) || !f.take("q", now) || !f.take("p", now.Add(time.Minute)) {
		t.Error("want the failures of p free again after a minute, and those of q always")
	}
}

// A call whose answer was cut off, or whose caller has left, costs all the output that it allows. Without a bound that is
// all that its model can write, in dollars, but no more tokens than are expected: those pace calls.
func TestCutCallsCostWhatTheyAllow(t *testing.T) {
	for name, end := range map[string]func(*Call){
		"cut":  func(c *Call) { c.Settle(t.Context(), dialect.NewMeter(c.Request.API, http.Header{}), false) },
		"left": func(c *Call) { c.Abandoned(true) },
	} {
		for _, test := range []struct{ bound, dollars, tokens int }{{64_000, 64_000, 64_000}, {0, 128_000, 1000}} {
			c := newPricedCall(t)
			c.Request = request(dialect.Anthropic, 1000)
			c.Request.MaxOutput = test.bound
			c.Prices.Table = c.Prices.Table.With(price.Override{Model: model, Maxima: llm.Maxima{Output: 128_000}})
			end(admit(t, c))
			want := price.Amount(10_000_000 + 1141*4_000 + test.dollars*10_000)
			if c.Cost != want || c.Charged.Output != int64(test.tokens) {
				t.Errorf("%s, %+v: it costs %v and %d tokens of output, want %v", name, test, c.Cost, c.Charged.Output, want)
			}
		}
	}
}

func TestCallsWithoutAPrice(t *testing.T) {
	denied := newPricedCall(t)
	denied.Prices = &Prices{Table: price.Known()}
	d, err := denied.Try(t.Context())
	if !Denied(t.Context(), err) {
		t.Fatalf("%+v, %v", d, err)
	}
	r := denied.Refusal(&d, err)
	for _, says := range []string{`not sent: the price of model "some-model" is not known, and project "some-project" has a limit in dollars`, "prices", "unpriced"} {
		if !strings.Contains(r.Message, says) {
			t.Errorf("%s; want %s", r.Message, says)
		}
	}
	if r.Status != http.StatusForbidden || r.Retry || spent(t, denied.Limits) != 0 {
		t.Errorf("%+v, and %v is spent", r, spent(t, denied.Limits))
	}
	without := newPricedCall(t)
	without.Prices = nil
	if d, err := without.Try(t.Context()); d.Allowed || err == nil {
		t.Error("without prices, a call is free")
	}
	admit(t, newCall(newLimits(t, plenty, &project.Limit{RequestsPerDay: 1}))) // nothing limits dollars

	other := newPricedCall(t)
	each, _ := price.New(price.Terms{Rates: price.Rates{Request: price.Dollar}})
	other.Prices = &Prices{Table: price.Known(), Unpriced: each}
	if got := spent(t, admit(t, other).Limits); got != price.Dollar {
		t.Errorf("%v is reserved by the price of models without one", got)
	}
}

// A price holds from its date on, and a call keeps the price that it began with.
func TestPricesWithADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later := price.Terms{From: time.Now().Add(time.Hour), Rates: price.Rates{Request: 2 * price.Dollar}}
		prices := pricesOf(t, price.Terms{Rates: price.Rates{Request: price.Dollar}}, later)
		limits := newLimits(t, plenty, &project.Limit{Dollars: 100 * price.Dollar, Reserve: project.ReserveExpected})
		begin := func() *Call {
			c := newCall(limits)
			c.Prices = prices
			return admit(t, c)
		}
		old := begin()
		time.Sleep(time.Hour)
		begin()
		old.commit(llm.Usage{Exact: true}, old.usedPrice(llm.Usage{Exact: true}))
		if got := spent(t, limits); got != 3*price.Dollar {
			t.Errorf("%v is spent, want $3.00", got)
		}
	})
}

// To look up a price allocates nothing.
func TestPricesAllocateNothing(t *testing.T) {
	c := newPricedCall(t)
	estimateOf(c)
	if n := testing.AllocsPerRun(100, func() {
		c.quoted = quoted{}
		c.expectedPrice(&engine.Caps{})
		c.usedPrice(llm.Usage{Input: 1, Output: 1, Exact: true})
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A call of a user whose answer was cut off costs what it would cost the project, by which the estimator
// learns, however long the answers of other projects are.
func TestUsersCostWhatTheirProjectDoes(t *testing.T) {
	var costs [2]price.Amount
	for i, user := range []string{"", "/alice"} {
		c := newPricedCall(t)
		for range 50 {
			c.Limits.Estimator.Learn(owner, &c.Request, llm.Usage{Input: 1000, Output: 10, Exact: true})
			c.Limits.Estimator.Learn("other", &c.Request, llm.Usage{Input: 1000, Output: 9000, Exact: true})
		}
		c.Project, c.RunProject = owner+user, owner
		admit(t, c).Unanswered(true)
		costs[i] = c.Cost
	}
	if costs[0] != costs[1] {
		t.Errorf("a call of the project costs %v, and one of its user %v", costs[0], costs[1])
	}
}

// How an attempt has ended says nothing of the next one: an error that quotes a long answer costs the answer, although
// the provider has failed before.
func TestEachAttemptHasItsOwnEnding(t *testing.T) {
	c := newPricedCall(t)
	c.Request = request(dialect.Groq, 1000)
	admit(t, c)
	c.Failed(t.Context(), http.StatusInternalServerError, http.Header{}, nil)
	admit(t, c)
	quoted := `{"error":{"code":"json_validate_failed","failed_generation":"` + strings.Repeat("x", 60_000) + `"}}`
	c.Failed(t.Context(), http.StatusBadRequest, http.Header{}, []byte(quoted))
	if want := price.Amount(10_000_000 + 1141*4_000 + len(quoted)/bytesPerToken*10_000); c.Cost != want {
		t.Errorf("it costs %v, want %v", c.Cost, want)
	}
}
