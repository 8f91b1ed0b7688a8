package ratelimit

import (
	"context"
	"errors"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// Store is where counters live: any store of this module, or one that passes
// storetest.
type Store = store.Store

// NewWithStore returns a limiter with the quotas of cfg whose counters are in a
// store: all limiters on it share their quotas exactly. Of cfg it wants nothing
// but quotas and an observer.
//
// If the store keeps settings, as Redis and SQLite do, quotas are shared too: those
// that it holds take precedence over cfg's, and when others set one, this limiter
// follows. They are not the quotas of [NewWithSQLite], which has a table for them.
// Call Close when done, and close the store after that: it stays yours.
func NewWithStore(s Store, cfg Config) (*RateLimiter, error) {
	if s == nil {
		return nil, errors.New("ratelimit: the store is nil")
	}
	if cfg.Backend != "" || cfg.FilePath != "" || cfg.OnStoreLoss != "" {
		return nil, errors.New("ratelimit: Backend, FilePath and OnStoreLoss are for limiters that make their store: this one is given it")
	}
	return newOnStore(&shared{store: s, remote: !local(s)}, cfg)
}

// local reports whether all who use a store are on this machine, as far as is
// known.
func local(s Store) bool {
	switch s.(type) {
	case *store.Memory, *sqlitestore.Store:
		return true
	}
	return false
}

// newOnStore returns a limiter that counts in a store. If the store keeps
// settings, it loads the quotas from there, and follows them.
func newOnStore(s *shared, cfg Config) (*RateLimiter, error) {
	rl, err := newLimiter(cfg)
	if err != nil {
		return nil, err
	}
	rl.countIn(s)
	values, ok := s.store.(settings.Keeper)
	if !ok {
		return rl, nil
	}
	rl.keeper = &posted{values, rl.miss}
	if err := rl.Load(); err != nil {
		return nil, err
	}
	rl.unfollow = settings.Follow(values, rl.loadUnlessClosed, rl.miss)
	return rl, nil
}

// loadUnlessClosed loads the quotas, which others may have set.
func (rl *RateLimiter) loadUnlessClosed(ctx context.Context) error {
	if err := rl.load(ctx); !errors.Is(err, store.ErrClosed) {
		return err
	}
	return nil
}

// countIn makes a limiter count in a store.
func (rl *RateLimiter) countIn(s *shared) { rl.shared, rl.projects = s, s }

// keeper keeps quotas where all who share the counters find them.
type keeper interface {
	// putQuotas writes quotas.
	putQuotas(quotas map[string]ModelQuota) error

	// addQuotas writes the quotas of models that have none there yet, and
	// returns those that all of the models have now.
	addQuotas(quotas map[string]ModelQuota) (held map[string]ModelQuota, err error)

	// load sets the limiter's quotas as they are kept.
	load(ctx context.Context, rl *RateLimiter) error

	// save writes the limiter's quotas that are not kept yet.
	save(rl *RateLimiter) error
}
