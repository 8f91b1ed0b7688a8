package ratelimit

import (
	"context"
	"errors"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/store"
)

// Store is where a limiter counts usage: one of this module's stores, or another one that
// passes storetest.
type Store = store.Store

// Store returns the store in which the limiter counts.
func (rl *RateLimiter) Store() Store { return rl.engine.Store() }

// NewWithStore returns a limiter with the quotas of cfg whose counters are in a
// store: all limiters on it share their quotas exactly. Backend, FilePath and
// OnStoreLoss of cfg must not be set.
//
// If the store keeps settings, as Redis and SQLite do, quotas are shared too: those
// that it holds take precedence over cfg's, and when another limiter sets one, this
// limiter follows. (They are not the quotas that [NewWithSQLite] keeps in its file,
// which has a table of its own for them.) Call Close when done, and close the store after
// that: it stays yours.
func NewWithStore(s Store, cfg Config) (*RateLimiter, error) {
	if s == nil {
		return nil, errors.New("ratelimit: the store is nil")
	}
	if cfg.Backend != "" || cfg.FilePath != "" || cfg.OnStoreLoss != "" {
		return nil, errors.New("ratelimit: Backend, FilePath and OnStoreLoss are for limiters that make their store: this one is given it")
	}
	return newOnStore(s, false, cfg)
}

// newOnStore returns a limiter that counts in a store. If the store keeps
// settings, it loads the quotas from there, and follows them.
func newOnStore(s Store, owned bool, cfg Config) (*RateLimiter, error) {
	rl, err := newLimiter(cfg, s, owned)
	if err != nil {
		return nil, err
	}
	values := hidden.Of[settings.Keeper](s)
	if values == nil {
		return rl, nil
	}
	rl.keeper = &settingsKeeper{rl, values}
	if err := rl.Load(); err != nil {
		return nil, err
	}
	rl.logStored(rl.stateQuotas())
	rl.unfollow = settings.Follow(values, rl.loadUnlessClosed, rl.engine.Miss)
	return rl, nil
}

// loadUnlessClosed loads the quotas, which another limiter may have set. A store that was
// closed meanwhile is no error.
func (rl *RateLimiter) loadUnlessClosed(ctx context.Context) error {
	if err := rl.load(ctx); !errors.Is(err, store.ErrClosed) {
		return err
	}
	return nil
}

// keeper keeps quotas in the store, where all limiters on the store find them.
type keeper interface {
	// PutQuotas writes quotas.
	PutQuotas(quotas map[string]state.Quota) error

	// SwapQuota writes the quota of a model if the model has the quota was in the store, or none. It
	// reports whether it did.
	SwapQuota(ctx context.Context, model string, was, quota state.Quota) (bool, error)

	// AddQuotas writes the quotas of models that have none in the store yet. It
	// returns the quotas in the store of all models in quotas.
	AddQuotas(quotas map[string]state.Quota) (stored map[string]state.Quota, err error)

	// Quotas returns all quotas in the store.
	Quotas(ctx context.Context) (map[string]state.Quota, error)

	// Save writes the quotas of models that have none in the store yet, and the usage.
	Save(quotas map[string]state.Quota) error
}
