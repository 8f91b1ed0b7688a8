package call

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Limits of the model make tokens free, because they count for the project. Limits of the
// project cut the estimate itself.
func TestEstimateFitsEveryLimit(t *testing.T) {
	type quota = ratelimit.ModelQuota
	exact := func(c *Call) { c.ExactPrompt = true }
	guessed := func(c *Call) { c.QuotaGuessed = true }
	from := func(p llm.Provider) func(*Call) { return func(c *Call) { c.Request = request(p, 1000) } }
	for _, test := range []struct {
		name    string
		quota   quota
		project *project.Limit
		change  func(*Call)
		want    llm.Tokens
	}{
		{"no limit", quota{}, nil, nil, llm.Tokens{Input: 1141, Output: 1000}},
		{"only requests are limited", quota{MaxRPM: 1, MaxRPD: 1}, &project.Limit{RequestsPerMinute: 1}, nil, llm.Tokens{Input: 1141, Output: 1000}},

		{"room for a part of the output", quota{MaxTPM: 2000}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 141}},
		{"a day's room for a part of the output", quota{MaxTPD: 2000}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 141}},
		{"the smallest of several limits", quota{MaxTPM: 1500, MaxTPD: 2000}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 641}},
		{"room for a part of the input", quota{MaxTPM: 1100}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeInput: 41, FreeOutput: 1000}},
		{"a limit on input", quota{MaxInputTPM: 600}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeInput: 541}},
		{"a limit on output", quota{MaxOutputTPM: 300}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 700}},

		{"certainly too long", quota{MaxTPM: 499}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 1000}},
		{"perhaps not too long", quota{MaxTPM: 500}, nil, nil, llm.Tokens{Input: 1141, Output: 1000, FreeInput: 641, FreeOutput: 1000}},
		{"a counted prompt that is too long", quota{MaxInputTPM: 999}, nil, exact, llm.Tokens{Input: 1141, Output: 1000}},
		{"a counted prompt that fits", quota{MaxInputTPM: 1000}, nil, exact, llm.Tokens{Input: 1141, Output: 1000, FreeInput: 141}},
		{"too long for a guess", quota{MaxTPM: 400}, nil, guessed, llm.Tokens{Input: 1141, Output: 1000, FreeInput: 741, FreeOutput: 1000}},
		{"too long unless it is cached", quota{MaxTPM: 400}, nil, from(dialect.Anthropic), llm.Tokens{Input: 1141, Output: 1000, FreeInput: 741, FreeOutput: 1000}},

		{"the project's minute", quota{}, &project.Limit{TokensPerMinute: 2000}, nil, llm.Tokens{Input: 1141, Output: 859}},
		{"the project's hour", quota{}, &project.Limit{TokensPerHour: 2000}, nil, llm.Tokens{Input: 1141, Output: 859}},
		{"the project's day", quota{}, &project.Limit{TokensPerDay: 2000}, nil, llm.Tokens{Input: 1141, Output: 859}},
		{"the project's month", quota{}, &project.Limit{TokensPerMonth: 2000}, nil, llm.Tokens{Input: 1141, Output: 859}},
		{"certainly too long for the project", quota{}, &project.Limit{TokensPerDay: 499}, guessed, llm.Tokens{Input: 1141}},
		{"the project and the model", quota{MaxTPM: 1500}, &project.Limit{TokensPerMinute: 2000}, nil, llm.Tokens{Input: 1141, Output: 859, FreeOutput: 500}},

		{"a limit above the project", quota{}, &project.Limit{TokensPerDay: 2000}, func(c *Call) { c.Project += "/inner/user" }, llm.Tokens{Input: 1141, Output: 859}},
		{"the project's share of the model", quota{MaxTPM: 20_000, MaxTPD: 10_000}, &project.Limit{MaxShare: 20}, nil, llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 141}},

		{"a provider that does not count output", quota{}, nil, from(dialect.Gemini), llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 1000}},
		{"the same within a limit", quota{MaxTPM: 1100}, nil, from(dialect.Gemini), llm.Tokens{Input: 1141, Output: 1000, FreeInput: 41, FreeOutput: 1000}},
		{"the same within the project's", quota{}, &project.Limit{TokensPerMinute: 2000}, from(dialect.Gemini), llm.Tokens{Input: 1141, Output: 859, FreeOutput: 859}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCall(newLimits(t, test.quota, test.project))
			if test.change != nil {
				test.change(c)
			}
			testkit.Equal(t, "the estimate", test.want, estimateOf(c))
		})
	}
}

// A call that may be charged to several quotas is estimated once, and its estimate is cut down
// to each of them. Observers get an event of a tentative call only if it is admitted.
func TestTryTentatively(t *testing.T) {
	var told testkit.Recorder[event.Event]
	models, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(t.TempDir(), "none.yaml"),
		Quotas:   map[string]ratelimit.ModelQuota{"small": {MaxTPM: 1500}, "large": {MaxTPM: 5000}},
		Observer: &told,
	})
	if err != nil {
		t.Fatal(err)
	}
	models.RecordUsage("small", 1, 0)
	c := newCall(&Limits{Models: models})
	for _, test := range []struct {
		quota   string
		allowed bool
		want    llm.Tokens
	}{
		{"small", false, llm.Tokens{Input: 1141, Output: 1000, FreeOutput: 641}},
		{"large", true, llm.Tokens{Input: 1141, Output: 1000}},
	} {
		c.Model = test.quota
		if d, err := c.TryTentatively(t.Context()); err != nil || d.Allowed != test.allowed {
			t.Errorf("%s: %+v, %v", test.quota, d, err)
		}
		testkit.Equal(t, test.quota, test.want, c.Tokens)
		c.Limits.Estimator.Learn(owner, &c.Request, llm.Usage{Input: 500, Output: 9, Exact: true}) // by other calls
	}
	c.Unanswered(false)
	var kinds []event.Kind
	for _, e := range told.Since() {
		kinds = append(kinds, e.Kind)
	}
	testkit.Equal(t, "told", []event.Kind{event.Admitted, event.Cancelled}, kinds)
}

// What the estimator has learned to be cached is free for the model, within the limits.
func TestEstimateLeavesCachedInputFree(t *testing.T) {
	for _, test := range []struct {
		name     string
		provider llm.Provider
		project  *project.Limit
		free     bool
	}{
		{"cached input is free", dialect.Anthropic, nil, true},
		{"cached input is free for the model of a project", dialect.Anthropic, &project.Limit{TokensPerMinute: 100_000}, true},
		{"cached input counts", dialect.OpenAI, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCall(newLimits(t, ratelimit.ModelQuota{MaxTPM: 100_000}, test.project))
			c.Request = request(test.provider, 1000)
			for range 100 {
				c.Limits.Estimator.Learn(owner, &c.Request, llm.Usage{Input: 1000, Cached: 900, Output: 10, Exact: true})
			}
			got := estimateOf(c)
			if free := got.FreeInput > 800; free != test.free || got.Input < 1000 || got.FreeOutput != 0 {
				t.Errorf("%+v is reserved", got)
			}
		})
	}
}

// An estimate makes no call impossible: limits that nothing has used deny a call only if
// its prompt is certainly longer than one of them, and then for ever.
func TestEstimatesMakeNoCallImpossible(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	limit := func() int { return random.IntN(4) / 3 * (1 + random.IntN(3000)) } // often none
	for range 300 {
		quota := ratelimit.ModelQuota{MaxTPM: limit(), MaxInputTPM: limit(), MaxOutputTPM: limit(), MaxTPD: limit()}
		var of *project.Limit
		if random.IntN(2) == 0 {
			of = &project.Limit{TokensPerMinute: limit(), TokensPerHour: limit(), TokensPerDay: limit(), TokensPerMonth: limit()}
		}
		c := newCall(newLimits(t, quota, of))
		provider := []llm.Provider{dialect.OpenAI, dialect.Anthropic, dialect.Gemini}[random.IntN(3)]
		c.Request = request(provider, random.IntN(3000))
		c.Request.MaxOutput = limit()
		c.ExactPrompt, c.QuotaGuessed = random.IntN(2) == 0, random.IntN(2) == 0

		prompt := c.Request.Prompt
		if !c.ExactPrompt {
			prompt /= 2
		}
		var bounds []int
		if !c.QuotaGuessed && provider != dialect.Anthropic {
			bounds = append(bounds, quota.MaxTPM, quota.MaxInputTPM, quota.MaxTPD)
		}
		if of != nil {
			bounds = append(bounds, of.TokensPerMinute, of.TokensPerHour, of.TokensPerDay, of.TokensPerMonth)
		}
		fits := true
		for _, bound := range bounds {
			fits = fits && (bound == 0 || prompt <= bound)
		}
		d, err := c.Try(t.Context())
		if err != nil || d.Allowed != fits {
			t.Fatalf("allowed is %v, want %v (error %v): prompt %d of %s, exact %v, guessed %v, quota %+v, project %+v",
				d.Allowed, fits, err, c.Request.Prompt, provider, c.ExactPrompt, c.QuotaGuessed, quota, of)
		}
		if !fits && c.Refusal(&d, nil).Code != dialect.CodeNever {
			t.Fatalf("the refusal is not final: %+v", c.Refusal(&d, nil))
		}
	}
}

// No limit of a project above the call's, of its key or of its run makes a call impossible, and neither
// does a MaxShare. The call is expected to use 2,141 tokens.
func TestEstimatesFitTheLimitsOfAllOwners(t *testing.T) {
	for name, set := range map[string]func(*project.Limiter) error{
		"the project of the user": func(l *project.Limiter) error { return l.SetLimit(owner, project.Limit{TokensPerDay: 2000}) },
		"its share of the model":  func(l *project.Limiter) error { return l.SetLimit(owner, project.Limit{MaxShare: 20}) },
		"the user's share":        func(l *project.Limiter) error { return l.SetLimit(owner+"/*", project.Limit{MaxShare: 20}) },
		"the key": func(l *project.Limiter) error {
			return l.SetKeyLimits(map[string]*project.Limit{"k": {TokensPerHour: 2000}})
		},
		"the run": func(l *project.Limiter) error {
			return l.SetRuns(project.RunLimit{Tokens: 2000, Reserve: project.ReserveExpected})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall(newLimits(t, ratelimit.ModelQuota{MaxTPM: 10_000}, &project.Limit{}))
			if err := set(c.Limits.Projects); err != nil {
				t.Fatal(err)
			}
			c.Project, c.RunProject, c.Key, c.Run = owner+"/alice", owner, "k", "r"
			if counted := admit(t, c).Tokens; counted.Input+counted.Output-counted.FreeInput-counted.FreeOutput != 2000 {
				t.Errorf("%+v is reserved, want 2,000 that count", counted)
			}
			again := *c
			d, err := again.Try(t.Context())
			if err != nil || d.Allowed || again.Refusal(&d, nil).Code == dialect.CodeNever {
				t.Errorf("another call: %+v, %v", again.Refusal(&d, nil), err)
			}
		})
	}
}

// estimateOf returns how many tokens the limits are asked for, as they are expected.
func estimateOf(c *Call) llm.Tokens { return c.ready().Tokens }
