package project

import (
	"cmp"
	"errors"
	"fmt"

	ratelimit "dappco.re/go/core/go-ratelimit"
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
	Store ratelimit.Store

	// Models is whose quotas calls are charged to together with their
	// projects' limits. It counts in its own store, so Store must be nil then.
	Models *ratelimit.RateLimiter

	// MaxWaiting is how many calls of a project may wait at a time, for each
	// model. The default is 1,000.
	MaxWaiting int

	// Observer is told of everything that happens. It may be nil. With Models,
	// it is theirs, and must be nil here.
	Observer ratelimit.Observer
}

const defaultMaxWaiting = 1000

// New returns a limiter in memory, in which each project may use so much. Without
// a limit it is [DefaultLimit]. Of a limiter with a limit that is not valid, all
// calls fail: use [NewWithConfig] to be told before.
func New(defaultLimit *Limit) *Limiter {
	l, err := NewWithConfig(Config{Default: defaultLimit})
	if err != nil {
		return &Limiter{broken: err}
	}
	return l
}

// NewWithConfig returns a limiter as cfg describes it. If the store keeps settings,
// as Redis and SQLite do, limits that are set at run time are shared too: those that
// it holds take precedence over cfg's. Call Close when done.
func NewWithConfig(cfg Config) (*Limiter, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Limiter{models: cfg.Models, maxWaiting: cmp.Or(cfg.MaxWaiting, defaultMaxWaiting), plans: newPlans()}
	err := l.SetDefault(*cmp.Or(cfg.Default, DefaultLimit))
	if err != nil {
		return nil, err
	}
	if err := l.setPlans(cfg.Limits); err != nil {
		return nil, err
	}
	if l.models == nil {
		if l.models, err = newModels(cfg); err != nil {
			return nil, err
		}
		l.owned = true
	}
	l.observer = l.models.Projects().Observer()
	l.store = l.models.Projects().Store()
	l.memory, _ = l.store.(*store.Memory)
	if keeper, ok := l.store.(settings.Keeper); ok {
		if err := l.follow(keeper); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Models returns the limiter of models whose quotas calls are charged to: that of
// the Config, or one without quotas.
func (l *Limiter) Models() *ratelimit.RateLimiter { return l.models }

// newModels returns what does the waiting where there are no models.
func newModels(cfg Config) (*ratelimit.RateLimiter, error) {
	s := cfg.Store
	if s == nil {
		s = store.NewMemory()
	}
	return ratelimit.NewWithStore(s, ratelimit.Config{Providers: []ratelimit.Provider{ratelimit.ProviderLocal}, Observer: cfg.Observer})
}

func (cfg *Config) validate() error {
	switch {
	case cfg.Models != nil && cfg.Store != nil:
		return errors.New("ratelimit: Models and Store are both set: projects are counted in the store of Models")
	case cfg.Models != nil && cfg.Observer != nil:
		return errors.New("ratelimit: Models and Observer are both set: the observer belongs into the Config of Models")
	case cfg.MaxWaiting < 0:
		return fmt.Errorf("ratelimit: MaxWaiting is %d: it must be at least 0, which is %d", cfg.MaxWaiting, defaultMaxWaiting)
	}
	return nil
}
