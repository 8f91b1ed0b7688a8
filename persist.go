package ratelimit

import (
	"context"
	"errors"

	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Load reads quotas and usage from the limiter's YAML file. Quotas in the file take
// precedence over those that were set; models that are not in it keep theirs. Usage in
// the file replaces what was used so far. A missing file changes nothing. A file that
// cannot be read, or is incomplete, changes nothing either, and the error says where the
// fault is.
//
// In SQLite and Redis usage is always up to date. There Load reads the quotas that other
// limiters have set since; limiters follow those by themselves, too, a little later. On other
// stores Load does nothing.
func (rl *RateLimiter) Load() error { return rl.load(context.Background()) }

func (rl *RateLimiter) load(ctx context.Context) error {
	rl.setting.Lock()
	defer rl.setting.Unlock()
	if rl.keeper != nil {
		quotas, err := rl.keeper.Quotas(ctx)
		if err != nil {
			return err
		}
		return rl.setQuotas(quotas)
	}
	if !rl.inFile {
		return nil
	}
	path, err := pathOr(rl.file, "ratelimits.yaml")
	if err != nil {
		return err
	}
	file, err := statefile.Read(path)
	if err != nil {
		return err
	}
	if file.Quotas == nil && file.State == nil {
		return nil
	}
	rl.logStored(file.Quotas)
	if err := rl.setQuotas(file.Quotas); err != nil {
		return err
	}
	return rl.replaceUsage(ctx, file.State)
}

// replaceUsage replaces the usage in memory by a file's. Each key changes in one step, so
// no call finds less used than the memory had or the file has.
func (rl *RateLimiter) replaceUsage(ctx context.Context, saved map[string]state.Usage) error {
	memory, now := rl.engine.Store().(*store.Memory), rl.engine.Now()
	keys, err := memory.Keys(ctx, state.AllModels)
	if err != nil {
		return err
	}
	accounts := map[string]*limit.Account{}
	for _, key := range keys {
		accounts[key] = new(limit.Account)
	}
	for name, usage := range saved {
		if rl.counts(name) {
			for unit, account := range usage.Accounts(rl.find(name).quota(), now) {
				accounts[state.Key(name, unit)] = account
			}
		}
	}
	for key, account := range accounts {
		err = errors.Join(err, memory.Put(key, account))
	}
	for _, m := range *rl.quotas.Load() {
		rl.engine.Wake(m.scope)
	}
	return err
}

// Persist writes quotas and usage to the limiter's YAML file: all of them, or nothing.
// Calls do not wait for it, and what they take while it writes is not in the file.
//
// In SQLite and Redis usage is always up to date. To a SQLite file Persist writes the
// quotas that the file does not have yet, and the tables requests, tokens and daily for
// programs that read those; to Redis it writes nothing.
//
// Persist also returns the first error since the last Persist that no method could
// return: Commit, Cancel, RecordUsage, Reset and Stats return none, and a quota in Redis
// that is not valid belongs to no call. See [Config].OnError.
func (rl *RateLimiter) Persist() error {
	rl.persisting.Lock()
	defer rl.persisting.Unlock()
	return rl.engine.Missed(rl.persist())
}

func (rl *RateLimiter) persist() error {
	if rl.keeper != nil {
		return rl.keeper.Save(rl.stateQuotas())
	}
	if !rl.inFile {
		return nil
	}
	path, err := pathOr(rl.file, "ratelimits.yaml")
	if err != nil {
		return err
	}
	used, err := rl.state()
	if err != nil {
		return err
	}
	return statefile.Write(path, statefile.File{Quotas: rl.stateQuotas(), State: used})
}

// Close releases the SQLite file or the connections to Redis. Calls that wait get an
// error, and so do later calls. A store that was given to NewWithStore stays open. Close
// returns the first error since the last Persist that no method could return.
//
// A limiter with [BackendYAML] counts in memory and has nothing to release: calls still
// work after Close, except those that name a project after NewProjects. Close does not
// write the YAML file; Persist does.
func (rl *RateLimiter) Close() error {
	if projects := rl.Projects(); projects != nil {
		projects.Close()
	}
	if rl.inFile {
		return rl.engine.Missed(nil)
	}
	if rl.unfollow != nil {
		rl.unfollow()
	}
	return rl.engine.Close()
}
