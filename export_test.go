package ratelimit

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/store"
)

// Ahead reports whether calls of a project wait for one of its limits, for which, and when
// the first of them asks again.
func (rl *RateLimiter) Ahead(project string) (again time.Duration, by string, waiting bool) {
	scope, err := rl.projectScope(project)
	if err != nil {
		panic(err)
	}
	a, waiting := rl.engine.Ahead(scope, admission.Whole)
	return a.Again, a.By, waiting
}

// Counters returns where the limiter counts.
func (rl *RateLimiter) Counters() store.Store { return rl.engine.Store() }

// TheObserver returns the limiter's observer.
func (rl *RateLimiter) TheObserver() Observer { return rl.engine.Observer() }
