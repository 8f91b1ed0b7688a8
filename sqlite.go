package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"dappco.re/go/core/go-ratelimit/internal/database"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
)

// NewWithSQLite returns a limiter with Gemini's default quotas whose counters
// are in a SQLite file. Every decision is a transaction there: any number of
// processes on one machine that use the same file share its quotas exactly, and
// one that is killed loses nothing that was admitted. Call Close when done.
func NewWithSQLite(dbPath string) (*RateLimiter, error) {
	return NewWithSQLiteConfig(dbPath, Config{})
}

// NewWithSQLiteConfig is NewWithSQLite with the quotas of cfg. Quotas that the
// file holds take precedence over them. The default path is cfg's, or else
// ~/.core/ratelimits.db.
func NewWithSQLiteConfig(dbPath string, cfg Config) (*RateLimiter, error) {
	if err := cfg.noStoreLoss(); err != nil {
		return nil, err
	}
	quotas, err := cfg.quotas()
	if err != nil {
		return nil, err
	}
	dbPath, err = pathOr(cmp.Or(dbPath, cfg.FilePath), "ratelimits.db")
	if err != nil {
		return nil, err
	}
	file, found, err := database.Open(dbPath, quotas, mostUnknown)
	if err != nil {
		return nil, err
	}
	cfg.reportExposed(dbPath)
	rl, err := newLimiter(cfg, file, true)
	if err == nil {
		rl.keeper = file
		rl.logStored(found.Quotas)
		err = rl.setQuotas(found.Quotas)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	for _, name := range found.Unknown {
		rl.unknown.admit(name, rl.engine.Now())
	}
	kept := hidden.Of[settings.Keeper](file)
	rl.unfollow = settings.Follow(kept, rl.loadUnlessClosed, rl.engine.Miss)
	return rl, nil
}

// MigrateYAMLToSQLite writes the quotas and the usage of a YAML file into a
// SQLite file, in place of those that it holds. Limiters that have the file open follow
// within a second. It can be repeated. If it fails, the SQLite file is as it was.
func MigrateYAMLToSQLite(yamlPath, sqlitePath string) error {
	if _, err := os.Stat(yamlPath); err != nil {
		return fmt.Errorf("ratelimit: nothing to migrate: %w", err)
	}
	file, err := statefile.Read(yamlPath)
	if err != nil {
		return err
	}
	return database.Replace(sqlitePath, file.Quotas, file.State)
}
