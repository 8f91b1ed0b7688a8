package ratelimit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
)

// Ahead reports whether calls of a project wait for a limit of the project, for which, and
// when the first of them asks again.
func (rl *RateLimiter) Ahead(project string) (again time.Duration, by string, waiting bool) {
	scopes, err := rl.appendProject(nil, &Call{Project: project})
	if err != nil {
		panic(err)
	}
	var r engine.Result
	if err := rl.engine.Look(context.Background(), &engine.Call{}, scopes, &r); err != nil {
		panic(err)
	}
	return r.Ahead.Again, r.Ahead.By, r.Behind
}

// Patient returns a configuration whose limiter waits for Redis longer than a busy machine takes.
func (cfg Config) Patient() Config {
	cfg.redisTimeout = 2 * time.Second
	return cfg
}

// TheObserver returns the limiter's observer.
func (rl *RateLimiter) TheObserver() event.Observer { return rl.engine.Observer() }
