package project_test

import (
	"errors"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Where prompt and output are known apart, a model that limits each of them is asked
// for each; the project for both together.
func TestTokensApart(t *testing.T) {
	quota := ratelimit.ModelQuota{MaxInputTPM: 1000, MaxOutputTPM: 100}
	for _, c := range []struct {
		name  string
		call  project.Call
		twice bool
	}{
		{"apart", project.Call{Project: "p", Model: "m", Tokens: ratelimit.Tokens{Input: 400, Output: 50}}, true},
		{"together", project.Call{Project: "p", Model: "m", Estimated: 450}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLimiter(t, project.Config{Default: &project.Limit{TokensPerMinute: 1000}, Models: models(t, quota)})
			for i, want := range []bool{true, c.twice} {
				res, d, err := l.Take(t.Context(), c.call)
				if err != nil || d.Allowed != want || (res != nil) != want {
					t.Fatalf("call %d: %+v, %v", i, d, err)
				}
			}
			used := int64(450)
			if c.twice {
				used *= 2
			}
			if left := left(t, l, "p")["tokens-minute"]; left != 1000-used {
				t.Errorf("%d tokens of the project are left; want %d", left, 1000-used)
			}
		})
	}
}

func TestTokensApartAndTogether(t *testing.T) {
	l := newLimiter(t, project.Config{})
	for _, c := range []project.Call{
		{Project: "p", Estimated: 1, Tokens: ratelimit.Tokens{Input: 1}},
		{Project: "p", Tokens: ratelimit.Tokens{Input: -1}},
		{Project: "p", Tokens: ratelimit.Tokens{Output: 1 << 60}},
	} {
		if d, err := l.Spend(t.Context(), c); d.Allowed || !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
	}
}
