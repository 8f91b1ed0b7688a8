package project_test

import (
	"errors"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestTokensApartAndTogether(t *testing.T) {
	l := newLimiter(t, project.Config{})
	for _, c := range []project.Call{
		{Project: "p", Estimated: 1, Tokens: llm.Tokens{Input: 1}},
		{Project: "p", Tokens: llm.Tokens{Input: -1}},
		{Project: "p", Tokens: llm.Tokens{Output: 1 << 60}},
	} {
		if d, err := l.Spend(t.Context(), c); d.Allowed || !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
	}
}
