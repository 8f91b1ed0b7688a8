package ratelimit

import (
	"errors"
	"maps"
	"slices"
)

// Load reads quotas and usage from the limiter's file. Quotas in the file take
// precedence over those that were set; models of which it does not speak keep
// theirs. Usage in the file takes the place of what was used so far. A missing
// file changes nothing. A file that cannot be read, or is not whole, gives an
// error that says where, and changes nothing either.
//
// A SQLite file is read when it is opened, and its usage is always that of all
// processes: there, Load reads the quotas that others have set since.
func (rl *RateLimiter) Load() error {
	rl.setting.Lock()
	defer rl.setting.Unlock()
	if rl.database != nil {
		return rl.database.load(rl)
	}
	path, err := pathOr(rl.path, "ratelimits.yaml")
	if err != nil {
		return err
	}
	file, err := readYAML(path)
	if err != nil {
		return err
	}
	if file.Quotas == nil && file.State == nil {
		return nil
	}
	if err := rl.setQuotas(file.Quotas); err != nil {
		return err
	}
	names, _ := rl.names()
	for _, name := range slices.AppendSeq(names, maps.Keys(file.State)) {
		rl.with(name, func(m *model) { m.replace(file.State[name], rl.clock()) })
	}
	return nil
}

// Persist writes quotas and usage to the limiter's file: all of it, or nothing.
// What is taken while it writes is not in it, and does not wait for it.
//
// In a SQLite file usage is always up to date. There, Persist writes the quotas
// that the file does not have yet, and the tables requests, tokens and daily,
// for programs that read those. It also returns the first error that a call
// since the last Persist could not return: Commit, Cancel, RecordUsage, Reset,
// Stats and their like have no other way to report one.
func (rl *RateLimiter) Persist() error {
	rl.persisting.Lock()
	defer rl.persisting.Unlock()
	if rl.database != nil {
		return rl.shared.reportMissed(rl.database.save(rl))
	}
	path, err := pathOr(rl.path, "ratelimits.yaml")
	if err != nil {
		return err
	}
	state, err := rl.state()
	if err != nil {
		return err
	}
	return writeYAML(path, saved{Quotas: rl.Quotas(), State: state})
}

// Close releases the SQLite file, and returns an error like Persist's; those who
// wait get an error too. Without such a file it does nothing: usage since the last
// Persist is lost.
func (rl *RateLimiter) Close() error {
	if rl.database == nil {
		return nil
	}
	err := errors.Join(rl.shared.catchUp(), rl.shared.store.Close())
	for _, m := range *rl.quotas.Load() {
		m.line.wake() // and find it closed, one after another
	}
	return rl.shared.reportMissed(err)
}
