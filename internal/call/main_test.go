package call

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	model = "some-model"
	owner = "some-project"
)

// newLimits returns limits in memory: a quota of one model, and the limit of every
// project, which is nil for no projects.
func newLimits(t *testing.T, quota ratelimit.ModelQuota, limit *project.Limit) *Limits {
	t.Helper()
	models, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(t.TempDir(), "none.yaml"),
		Quotas:   map[string]ratelimit.ModelQuota{model: quota},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { models.Close() })
	limits := &Limits{Models: models}
	if limit == nil {
		return limits
	}
	limits.Projects, err = models.NewProjects(project.Config{Default: limit, MaxWaiting: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { limits.Projects.Close() })
	return limits
}

// request is a request to a provider with a prompt of so many tokens. Nothing bounds its
// output.
func request(provider llm.Provider, prompt int) dialect.Request {
	api := dialect.Chat
	switch provider {
	case dialect.Anthropic:
		api = dialect.Messages
	case dialect.Gemini:
		api = dialect.Generate
	}
	return dialect.Request{Endpoint: dialect.Endpoint{Provider: provider, API: api, Model: model}, Prompt: prompt, Answers: 1}
}

// newCall returns a call of the model with a prompt of 1,000 tokens, of which the
// estimator knows nothing: it is estimated to use 1,141 tokens of input and 1,000 of output.
func newCall(limits *Limits) *Call {
	return &Call{Limits: limits, Request: request(dialect.OpenAI, 1000), Call: ratelimit.Call{Model: model, Project: owner}}
}

// admit reserves what a call is estimated to use, which must be possible at once.
func admit(t *testing.T, c *Call) *Call {
	t.Helper()
	if d, err := c.Try(t.Context()); err != nil || !d.Allowed {
		t.Fatalf("the call is not admitted: %+v, %v", d, err)
	}
	return c
}

// projectTokens returns how many tokens the project has used this minute, of a limit.
func projectTokens(t *testing.T, limits *Limits, limit int64) int64 {
	t.Helper()
	d, err := limits.Projects.Peek(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Windows() {
		if s.Window.Name == "tokens_per_minute" {
			return limit - s.Remaining
		}
	}
	t.Fatal("the project has no limit on tokens a minute")
	return 0
}
