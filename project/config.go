package project

import (
	"cmp"
	"errors"
	"fmt"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/store"
)

// Config says how to make a [Limiter]. The zero Config is ready to use.
type Config struct {
	// Default is the limit of each project that has none of its own and is not below
	// one that has: "owner/a" and "owner/b" have nothing in common as long as "owner" has no
	// limit of its own. The default is [DefaultLimit]; an empty Limit leaves such projects
	// unlimited.
	Default *Limit

	// Limits has the limits of projects that have one of their own, by their ids, and of
	// templates. Such a project takes nothing from Default: what its Limit leaves 0 is
	// unlimited. It also counts what all projects below it use, and these have no limits
	// but their own.
	Limits map[string]Limit

	// Runs is what each run of an agent may use. A zero RunLimit leaves runs unlimited.
	Runs RunLimit

	// Thresholds are percents, from 1 to 100, of every budget: of each limit of a project, a key
	// or a run that is of an hour or longer, or a total. When a budget reaches one, Observer gets
	// an event of the kind [event.Threshold], once a window, on a goroutine of its own. The
	// default is none.
	Thresholds []int

	// Store is where to count. All limiters on one store share their limits
	// exactly; it stays yours to close. The default is one in memory.
	Store store.Store

	// MaxWaiting is how many calls of a project with one key, or with none, may wait at a time, for each
	// model. The default is 1,000.
	MaxWaiting int

	// Observer gets an event for everything that happens. It may be nil.
	Observer event.Observer

	// OnError is called with errors that no method can return, as they happen: a limit in
	// the store that is not valid, say. Close returns the first of them. It may be nil.
	OnError func(error)
}

const defaultMaxWaiting = 1000

// New returns a limiter that counts in memory and gives each project the same limit: nil
// is [DefaultLimit]. New does not fail: it replaces a number that is negative or too
// large by the nearest valid one, and leaves out a MinShare, which a default limit cannot
// have. [NewWithConfig] returns an error instead.
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
	if joined, ok := cfg.Store.(engine.Joined); ok {
		return newOn(joined.Engine, false, cfg)
	}
	now := clock.New()
	if cfg.Store == nil {
		cfg.Store = store.NewMemoryAt(now)
	}
	return newOn(engine.New(engine.Config{
		Store: cfg.Store, Clock: now, Observer: cfg.Observer, OnError: cfg.OnError,
	}), true, cfg)
}

func newOn(e *engine.Engine, owned bool, cfg Config) (*Limiter, error) {
	if cfg.MaxWaiting < 0 {
		return nil, fmt.Errorf("ratelimit: MaxWaiting is %d: it must be at least 0, which is %d", cfg.MaxWaiting, defaultMaxWaiting)
	}
	l := &Limiter{engine: e, owned: owned, maxWaiting: cmp.Or(cfg.MaxWaiting, defaultMaxWaiting), plans: newPlans(), minima: map[string]Limit{}}
	l.scopes = newScopes(e, l.newScope, l.planOf)
	l.scopes.isCurrent = l.isRooted
	l.users = newScopes(e, l.newUserScope, l.planOfUser)
	l.users.isCurrent = l.isOfProject
	l.keyPlans, l.keys = newPlans(), newScopes(e, l.newKeyScope, l.planOfKey)
	l.runs = newScopes(e, l.newRunScope, l.planOfRun)
	l.inner, _ = newPlan(Limit{}, l.maxWaiting)
	l.memory, _ = e.Store().(*store.Memory)
	if err := l.SetThresholds(cfg.Thresholds); err != nil {
		return nil, err
	}
	if err := l.SetDefault(*cmp.Or(cfg.Default, DefaultLimit)); err != nil {
		return nil, err
	}
	if err := l.SetRuns(cfg.Runs); err != nil {
		return nil, fmt.Errorf("ratelimit: the limit of runs: %s", message.Plain(err))
	}
	if err := l.setPlans(cfg.Limits); err != nil {
		return nil, err
	}
	if keeper := hidden.Of[settings.Keeper](e.Store()); keeper != nil {
		if err := l.follow(keeper); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}
