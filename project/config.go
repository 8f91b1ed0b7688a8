package project

import (
	"cmp"
	"errors"
	"fmt"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/store"
)

// Config is how a [Limiter] is made. The zero Config is a good one.
type Config struct {
	// Default is the limit of projects that have none of their own. The default
	// is [DefaultLimit].
	Default *Limit

	// Limits is those of projects that have one, by their ids.
	Limits map[string]Limit

	// Store is where to count. All limiters on one store share their limits
	// exactly; it stays yours to close. The default is one in memory.
	Store store.Store

	// MaxWaiting is how many calls of a project may wait at a time, for each
	// model. The default is 1,000.
	MaxWaiting int

	// Observer is told of everything that happens. It may be nil.
	Observer event.Observer

	// OnError is told of errors that no call can return, as they happen: a limit in the
	// store that is not valid, say. The first of them is also Close's. It may be nil.
	OnError func(error)
}

const defaultMaxWaiting = 1000

// New returns a limiter in memory, in which each project may use so much. Without
// a limit it is [DefaultLimit]. A number that is too small or too large counts as the
// nearest that limits: use [NewWithConfig] to be told of it.
func New(defaultLimit *Limit) *Limiter {
	nearest := cmp.Or(defaultLimit, DefaultLimit).nearest()
	l, err := NewWithConfig(Config{Default: &nearest})
	if err != nil { // which a valid limit in memory cannot cause
		panic(err)
	}
	return l
}

// NewWithConfig returns a limiter as cfg describes it. If the store keeps settings,
// as Redis and SQLite do, limits that are set at run time are shared too: those that
// it holds take precedence over cfg's. Call Close when done.
func NewWithConfig(cfg Config) (*Limiter, error) {
	now := clock.New()
	if cfg.Store == nil {
		cfg.Store = store.NewMemoryAt(now)
	}
	return newOn(admission.New(admission.Config{
		Store: cfg.Store, Clock: now, Observer: cfg.Observer, OnError: cfg.OnError,
	}), true, cfg)
}

// NewOn returns a limiter on an engine that has other scopes as well. It is for package
// ratelimit, whose calls are charged to models and projects together.
func NewOn(e *admission.Engine, cfg Config) (*Limiter, error) {
	if cfg.Store != nil || cfg.Observer != nil || cfg.OnError != nil {
		return nil, errors.New("ratelimit: Store, Observer and OnError are those of the limiter of models: they must not be set")
	}
	return newOn(e, false, cfg)
}

func newOn(e *admission.Engine, owned bool, cfg Config) (*Limiter, error) {
	if cfg.MaxWaiting < 0 {
		return nil, fmt.Errorf("ratelimit: MaxWaiting is %d: it must be at least 0, which is %d", cfg.MaxWaiting, defaultMaxWaiting)
	}
	l := &Limiter{engine: e, owned: owned, maxWaiting: cmp.Or(cfg.MaxWaiting, defaultMaxWaiting), plans: newPlans(), scopes: newScopes()}
	l.memory, _ = e.Store().(*store.Memory)
	if err := l.SetDefault(*cmp.Or(cfg.Default, DefaultLimit)); err != nil {
		return nil, err
	}
	if err := l.setPlans(cfg.Limits); err != nil {
		return nil, err
	}
	if keeper, ok := e.Store().(settings.Keeper); ok {
		if err := l.follow(keeper); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}
