package ratelimit

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
	"dappco.re/go/core/go-ratelimit/store"
)

// Backends of [Config].
const (
	BackendYAML   = "yaml"   // counts in memory
	BackendSQLite = "sqlite" // counts in a file, which processes on one machine share exactly
	BackendRedis  = "redis"  // counts in Redis, which machines share exactly
)

// Config says how to make a [RateLimiter]. The zero Config is ready to use.
type Config struct {
	// FilePath is where quotas and usage are kept. The default is
	// ~/.core/ratelimits.yaml, or ~/.core/ratelimits.db with SQLite. With
	// Redis it is a URL; the default is redis://127.0.0.1:6379/0.
	FilePath string

	// Backend is BackendYAML, which is the default, BackendSQLite or
	// BackendRedis.
	Backend string

	// OnStoreLoss is what to do while Redis does not answer: "deny", which is
	// the default; "allow"; or "share", with which each limiter enforces its
	// part of every quota. It is for BackendRedis alone.
	OnStoreLoss string

	// Quotas has the quotas of models by their names. They take precedence over
	// those of Providers.
	Quotas map[string]ModelQuota

	// Providers lists the providers whose default quotas to use: see
	// [DefaultProfiles]. The default is Gemini if there are no Quotas either, and
	// none otherwise.
	Providers []Provider

	// NoDefaults makes a limiter without Quotas and Providers begin with no quotas
	// at all, in place of Gemini's: for one whose quotas are set later with SetQuota,
	// or that only limits projects.
	NoDefaults bool

	// MaxPause is the longest time for which a model is paused after its provider has
	// throttled a call. Where the provider asks for more, a single call then finds out
	// whether the provider takes calls again. The default is [DefaultMaxPause].
	MaxPause time.Duration

	// Observer gets an event for everything that happens. It may be nil.
	Observer event.Observer

	// OnError is called with errors that no method can return, as they happen: a Commit
	// that could not be made because the store was lost, a quota in the store that is not
	// valid. Persist and Close return the first of them. It also gets, at the start, the error of a
	// file that others may write to, which they do not return. It may be nil.
	OnError func(error)

	// Log gets a line, once for each model, if the file or the store holds a quota that differs
	// from the one that the program sets, in Quotas or with AddProvider: the one that it holds is used.
	// The default is [slog.Default].
	Log *slog.Logger

	clock        func() int64  // nil: the monotonic clock
	redisTimeout time.Duration // 0: the default of redisstore
}

// New returns a limiter with Gemini's default quotas, whose file is
// ~/.core/ratelimits.yaml. It reads the file when you call Load, and writes it
// when you call Persist.
func New() (*RateLimiter, error) { return NewWithConfig(Config{}) }

// NewWithConfig returns a limiter as cfg describes it.
func NewWithConfig(cfg Config) (*RateLimiter, error) {
	switch cfg.Backend {
	case "", BackendYAML:
		if err := cfg.noStoreLoss(); err != nil {
			return nil, err
		}
		if cfg.clock == nil {
			cfg.clock = clock.New()
		}
		rl, err := newLimiter(cfg, store.NewMemoryAt(cfg.clock), true)
		if err == nil {
			rl.inFile = true
			if path, err := pathOr(cfg.FilePath, "ratelimits.yaml"); err == nil {
				cfg.reportExposed(path)
			}
		}
		return rl, err
	case BackendSQLite:
		return NewWithSQLiteConfig(cfg.FilePath, cfg)
	case BackendRedis:
		return newWithRedis(cfg)
	default:
		return nil, fmt.Errorf("ratelimit: unknown backend %q: it must be %s, %s or %s", cfg.Backend, BackendYAML, BackendSQLite, BackendRedis)
	}
}

// reportExposed calls OnError if others than its owner may write to a file of quotas and counters.
func (cfg Config) reportExposed(path string) {
	if err := statefile.CheckMode(path); err != nil && cfg.OnError != nil {
		cfg.OnError(err)
	}
}

// noStoreLoss returns an error if cfg sets OnStoreLoss. Only Redis can be lost, so other
// backends refuse the setting.
func (cfg Config) noStoreLoss() error {
	if cfg.OnStoreLoss == "" {
		return nil
	}
	return fmt.Errorf("ratelimit: OnStoreLoss is %q: only with the backend %s may it be set", cfg.OnStoreLoss, BackendRedis)
}

// newLimiter returns a limiter with the quotas of cfg that counts in s. A limiter that owns
// the store closes it in Close.
func newLimiter(cfg Config, s Store, owned bool) (*RateLimiter, error) {
	quotas, err := cfg.quotas()
	if err != nil {
		return nil, err
	}
	if cfg.MaxPause < 0 {
		return nil, fmt.Errorf("ratelimit: MaxPause is %v: it must not be negative", cfg.MaxPause)
	}
	if cfg.clock == nil {
		cfg.clock = clock.New()
	}
	rl := &RateLimiter{
		engine: engine.New(engine.Config{
			Store: s, Owned: owned, Clock: cfg.clock, Observer: cfg.Observer, OnError: cfg.OnError,
		}),
		file:         cfg.FilePath,
		withoutQuota: map[string]*model{},
		maxPause:     cmp.Or(cfg.MaxPause, DefaultMaxPause),
		log:          cmp.Or(cfg.Log, slog.Default()),
		declared:     stateQuotas(cfg.Quotas),
		logged:       map[string]bool{},
	}
	rl.quotas.Store(&map[string]*model{})
	if err := rl.setQuotas(quotas); err != nil {
		return nil, err
	}
	return rl, nil
}

// quotas returns the quotas of cfg, all of which are valid.
func (cfg Config) quotas() (map[string]state.Quota, error) {
	providers := cfg.Providers
	if len(providers) == 0 && len(cfg.Quotas) == 0 && !cfg.NoDefaults {
		providers = []Provider{ProviderGemini}
	}
	all := map[string]ModelQuota{}
	for _, provider := range providers {
		profile, err := profileOf(provider)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, profile.Models)
	}
	maps.Copy(all, cfg.Quotas)
	quotas := stateQuotas(all)
	for name, q := range quotas {
		if err := state.Check(name, q); err != nil {
			return nil, err
		}
	}
	return quotas, nil
}

// pathOr returns path, or if it is empty the path of the file in ~/.core.
func pathOr(path, file string) (string, error) {
	if path != "" {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("ratelimit: no file is named, and there is no home directory for the default: %w", err)
	}
	return filepath.Join(home, ".core", file), nil
}
