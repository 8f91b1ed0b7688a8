package ratelimit

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/transaction"
)

// names is the models without a quota that are counted. Clients may invent any number
// of names, so those beyond mostUnknown are not counted: nothing limits them. What is
// counted already is never forgotten for a newcomer, because the store is shared, and
// another program may have a quota for the name.
type names struct {
	mu    sync.Mutex
	until map[string]int64 // Unix nanoseconds: a day after the name came, when all that counted then is over
}

const (
	mostUnknown  = 1000 // models without a quota that are counted
	unknownCount = 24*time.Hour + time.Minute
)

// admit reports whether a model without a quota is counted, and makes it so if there is
// room.
func (n *names) admit(name string, now int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now < n.until[name] {
		return true
	}
	if len(n.until) >= mostUnknown {
		maps.DeleteFunc(n.until, func(_ string, until int64) bool { return until <= now })
	}
	if len(n.until) >= mostUnknown {
		return false
	}
	if n.until == nil {
		n.until = map[string]int64{}
	}
	n.until[name] = now + int64(unknownCount)
	return true
}

// forget makes room: nothing is used of a model any more.
func (n *names) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.until, name)
}

// counts reports whether what is used of a model is counted: models with a quota always
// are.
func (rl *RateLimiter) counts(name string) bool {
	return (*rl.quotas.Load())[name] != nil || checkName(name) == nil && rl.unknown.admit(name, rl.engine.Now())
}

// forgetUnknown forgets, when a file is opened, what does not count any more, and the
// models without a quota that are too many, which older programs have counted. Of those
// the most used stay.
func (rl *RateLimiter) forgetUnknown(tx transaction.Tx) error {
	if err := tx.Sweep(); err != nil {
		return err
	}
	keys, err := tx.Keys(allModels)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(modelsOf(keys), func(name string) bool { return (*rl.quotas.Load())[name] != nil })
	if len(list) > mostUnknown {
		sortByUse(tx, list)
	}
	for i, name := range list {
		if i < mostUnknown {
			rl.unknown.admit(name, rl.engine.Now())
		} else if err := tx.Delete(keyPrefix(name)); err != nil {
			return err
		}
	}
	return nil
}

// sortByUse puts the models that were used most first. One of which that cannot be read
// comes last.
func sortByUse(tx transaction.Tx, models []string) {
	today, rules := map[string]int{}, unknown()
	for _, name := range models {
		if u, err := readUsage(tx, name, rules); err == nil {
			today[name] = u.stats().DayCount
		}
	}
	slices.SortFunc(models, func(a, b string) int { return cmp.Compare(today[b], today[a]) })
}
