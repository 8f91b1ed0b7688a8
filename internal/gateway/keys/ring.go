package keys

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/unreported"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Ring is all keys of a gateway. Its methods may be called concurrently. While the store
// of the keys does not answer, a Ring goes on with the keys that it has loaded.
type Ring struct {
	entries    atomic.Pointer[map[string]*entry] // by id; the map is replaced, never changed
	keeper     settings.Keeper                   // the store of the keys; nil: they are only in memory
	prefix     string                            // of the names of their settings: keyPrefix or tokenPrefix
	maxKeys    int
	onVanished func(n int)                           // may be nil
	onLimits   func(map[string]*project.Limit) error // nil: nobody wants to know
	stop       func()
	missed     unreported.Error
	watchers   settings.Watchers

	mu      sync.Mutex           // locked while keys are changed or loaded
	records map[string][]*record // the secrets of each key, by its id, in the order of their numbers
	loaded  map[string]string    // the settings that records were read from; nil: this ring has changed a key since
}

const (
	defaultMaxKeys = 10_000
	maxTokens      = 1_000
)

// Open returns the keys that a store keeps beside its counters, and follows the changes
// that other gateways make there. With a nil keeper, keys are only in memory. If keys vanish
// from the store that nobody has revoked, Open calls onVanished with their number, unless it
// is nil.
func Open(k settings.Keeper, onVanished func(n int)) (*Ring, error) {
	return open(k, keyPrefix, defaultMaxKeys, onVanished)
}

// OpenTokens is Open for the tokens of the admin API.
func OpenTokens(k settings.Keeper, onVanished func(n int)) (*Ring, error) {
	return open(k, tokenPrefix, maxTokens, onVanished)
}

func open(k settings.Keeper, prefix string, most int, onVanished func(n int)) (*Ring, error) {
	r := &Ring{keeper: k, prefix: prefix, maxKeys: most, onVanished: onVanished, stop: func() {}}
	r.set(map[string][]*record{}, nil)
	if k == nil {
		return r, nil
	}
	if err := r.reload(context.Background()); err != nil {
		return nil, err
	}
	r.stop = settings.Follow(k, r.Load, r.missed.Keep)
	return r, nil
}

// Load reads the keys from the store, with what other gateways have changed a moment ago. A ring follows
// its store by itself, a little later.
func (r *Ring) Load(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.reload(ctx)
	if errors.Is(err, store.ErrClosed) {
		return nil // no change can follow
	}
	return err
}

// reload is Load for a caller that has locked mu.
func (r *Ring) reload(ctx context.Context) error {
	if r.keeper == nil {
		return nil
	}
	all, err := r.keeper.Settings(ctx)
	if err != nil {
		return err
	}
	ours := map[string]string{}
	for setting, text := range all {
		if strings.HasPrefix(setting, r.prefix) {
			ours[setting] = text
		}
	}
	if r.loaded != nil && maps.Equal(ours, r.loaded) { // only other settings have changed, as is usual
		return nil
	}
	if n := r.vanished(ours); n > 0 && r.onVanished != nil {
		r.onVanished(n)
	}
	r.set(r.parse(ours), ours)
	return nil
}

// vanished returns how many keys are in the ring and not in the store. Revoked keys do not
// count: the store keeps an empty setting for each.
func (r *Ring) vanished(ours map[string]string) (n int) {
	for id := range r.records {
		if _, kept := ours[r.prefix+id]; !kept {
			n++
		}
	}
	return n
}

// set replaces all keys. loaded is the settings that records were read from, or nil.
func (r *Ring) set(records map[string][]*record, loaded map[string]string) {
	entries, now := make(map[string]*entry, len(records)), time.Now()
	for id, secrets := range records {
		entries[id] = newEntry(secrets, now)
	}
	before := r.entries.Load()
	r.records, r.loaded = records, loaded
	r.limit(before, entries, true) // before a key is found that has a limit, and after it is not found any more
	r.entries.Store(&entries)
	r.watchers.Notify() // before the limits of the revoked keys are gone
	r.limit(before, entries, false)
}

// Watch calls changed whenever keys have changed, and once now, until stop is called. A key that expires is no
// change: see [Ring.End]. changed must return soon.
func (r *Ring) Watch(changed func()) (stop func()) { return r.watchers.Add(changed) }

// List returns all keys, in the order of their projects and their ids.
func (r *Ring) List() []Key {
	entries, now := *r.entries.Load(), time.Now()
	all := make([]Key, 0, len(entries))
	for _, e := range entries {
		k := e.key
		k.PreviousUntil = e.previousUntil(now)
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Projects returns the projects of all keys, in no order. One that has several keys is there several
// times.
func (r *Ring) Projects() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, e := range *r.entries.Load() {
			if !yield(e.key.Project) {
				return
			}
		}
	}
}

// Missed returns the first error, since it was last called, of following the store: the
// keys could not be loaded, or a key is not valid and was left out.
func (r *Ring) Missed() error { return r.missed.Take() }

// Close stops following the store.
func (r *Ring) Close() { r.stop() }
