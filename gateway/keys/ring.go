package keys

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/store"
)

// Ring is all keys of a gateway. Its methods may be called at a time. While what it is
// kept in cannot be asked, it goes by what it knows.
type Ring struct {
	entries atomic.Pointer[map[string]*entry] // by id; replaced, never changed
	keeper  settings.Keeper                   // nil: there is none
	most    int                               // keys
	gone    func(n int)                       // may be nil
	stop    func()

	// mu is held while keys are changed or loaded, and guards what follows.
	mu      sync.Mutex
	records map[string][]*record // of each key, by its id, in the order of their turns
	loaded  map[string]string    // the settings that they were read from; nil: they have changed since

	missing sync.Mutex
	missed  error // the first
}

const mostKeys = 10_000

// Open returns the keys that are kept beside the counters of a store, and follows
// what others change there. Without a keeper they are in memory. If the store has
// forgotten some that nobody has revoked, gone is told how many, unless it is nil.
func Open(k settings.Keeper, gone func(n int)) (*Ring, error) {
	r := &Ring{keeper: k, most: mostKeys, gone: gone, stop: func() {}}
	r.set(map[string][]*record{}, nil)
	if k == nil {
		return r, nil
	}
	if err := r.reload(context.Background()); err != nil {
		return nil, err
	}
	r.stop = settings.Follow(k, r.load, r.miss)
	return r, nil
}

// load goes by what is kept.
func (r *Ring) load(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.reload(ctx)
	if errors.Is(err, store.ErrClosed) {
		return nil // there will be no more
	}
	return err
}

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
		if strings.HasPrefix(setting, kind) {
			ours[setting] = text
		}
	}
	if r.loaded != nil && maps.Equal(ours, r.loaded) { // most often it is others' settings that change
		return nil
	}
	if n := r.forgotten(ours); n > 0 && r.gone != nil {
		r.gone(n)
	}
	r.set(parse(ours, r.miss), ours)
	return nil
}

// forgotten returns how many keys are not in the store any more. Of those that were
// revoked, it keeps that they were.
func (r *Ring) forgotten(ours map[string]string) (n int) {
	for id := range r.records {
		if _, kept := ours[kind+id]; !kept {
			n++
		}
	}
	return n
}

// set goes by records from now on, which were read from settings, or else were not.
func (r *Ring) set(records map[string][]*record, loaded map[string]string) {
	entries, now := make(map[string]*entry, len(records)), time.Now()
	for id, secrets := range records {
		entries[id] = newEntry(secrets, now)
	}
	r.records, r.loaded = records, loaded
	r.entries.Store(&entries)
}

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

// miss keeps an error that nobody could be told.
func (r *Ring) miss(err error) {
	r.missing.Lock()
	defer r.missing.Unlock()
	if r.missed == nil {
		r.missed = err
	}
}

// Missed returns what went wrong while it followed others, the first since it was last
// asked: keys that could not be loaded, or one that is not valid and left out.
func (r *Ring) Missed() error {
	r.missing.Lock()
	defer r.missing.Unlock()
	err := r.missed
	r.missed = nil
	return err
}

// Close stops following what others change.
func (r *Ring) Close() { r.stop() }
