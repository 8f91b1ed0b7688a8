package project_test

import (
	"errors"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// A limit is replaced only if it is still the one that was read: its own, or the default.
func TestReplaceLimit(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			usual, first, second := project.Limit{RequestsPerMinute: 10}, project.Limit{RequestsPerMinute: 1}, project.Limit{TokensPerDay: 2}
			l := newLimiter(t, kind(t, project.Config{Default: &usual}))
			for i, step := range []struct {
				was, limit project.Limit
				replaced   bool
				now        project.Limit
			}{
				{first, second, false, usual},
				{usual, first, true, first},
				{usual, second, false, first},
				{first, second, true, second},
				{second, second, true, second},
			} {
				replaced, err := l.ReplaceLimit(t.Context(), "p", step.was, step.limit)
				if replaced != step.replaced || err != nil || l.Limit("p") != step.now {
					t.Errorf("step %d: %v, %v, %+v", i, replaced, err, l.Limit("p"))
				}
			}
			for id, limit := range map[string]project.Limit{"p": {Weight: -1}, "a//b": {}} {
				if replaced, err := l.ReplaceLimit(t.Context(), id, l.Limit(id), limit); replaced || err == nil {
					t.Errorf("%q: %v, %v", id, replaced, err)
				}
			}
			l.Close()
			if _, err := l.ReplaceLimit(t.Context(), "p", second, first); !errors.Is(err, store.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}
