package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/unreported"
	"dappco.re/go/core/go-ratelimit/store"
)

// The prefixes of the settings' names in the store.
const (
	projectPrefix = "control/project/"
	modelPrefix   = "control/model/"
	keyPrefix     = "control/key/"
	gatewayPrefix = "control/gateway/"
	endedPrefix   = "control/ended/"
	termPrefix    = "control/term/"
)

// Board holds the State as it is now, and changes it. Its methods may be called concurrently. While the
// store does not answer, a Board goes on with the State that it has.
type Board struct {
	state  atomic.Pointer[State]
	keeper settings.Keeper // nil: the State is only in memory
	stop   func()
	missed unreported.Error

	mu       sync.Mutex // locked while the State is changed or loaded
	watchers settings.Watchers
}

// Open returns the Board of a store, and follows the changes that other gateways make there. With a nil
// keeper, the State is only in memory.
func Open(k settings.Keeper) (*Board, error) {
	b := &Board{keeper: k, stop: func() {}}
	b.state.Store(&State{})
	if k == nil {
		return b, nil
	}
	if err := b.Load(context.Background()); err != nil {
		return nil, err
	}
	b.stop = settings.Follow(k, b.follow, b.missed.Keep)
	return b, nil
}

// State returns the State as it is now.
func (b *Board) State() *State { return b.state.Load() }

// Load reads the State from the store, with what other gateways have changed a moment ago.
func (b *Board) Load(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.load(ctx)
	return err
}

// load is Load for a caller that has locked mu. It returns all settings of the store.
func (b *Board) load(ctx context.Context) (all map[string]string, err error) {
	if b.keeper == nil {
		return nil, nil
	}
	if all, err = b.keeper.Settings(ctx); err != nil {
		return nil, err
	}
	s := &State{}
	s.projects, _ = settings.Parse(all, projectPrefix, checkProject, b.missed.Keep)
	s.models, _ = settings.Parse(all, modelPrefix, checkModel, b.missed.Keep)
	s.keys, _ = settings.Parse(all, keyPrefix, checkKey, b.missed.Keep)
	s.gateway, _ = settings.Parse(all, gatewayPrefix, checkGateway, b.missed.Keep)
	s.terms, _ = settings.Parse(all, termPrefix, checkTerm, b.missed.Keep)
	s.ended, _ = settings.Parse(all, endedPrefix, checkEnded, b.missed.Keep)
	b.set(s)
	return all, nil
}

// follow is Load for a follower: a store that was closed is no error.
func (b *Board) follow(ctx context.Context) error {
	if err := b.Load(ctx); !errors.Is(err, store.ErrClosed) {
		return err
	}
	return nil
}

// SetProject sets what a project has. The zero Project sets nothing: all is as the file says.
func (b *Board) SetProject(ctx context.Context, id string, p Project) error {
	_, err := b.putProject(ctx, id, nil, p)
	return err
}

// ReplaceProject sets what a project has if the project still has was, and reports whether it has. So of
// several gateways that change different fields at the same time, none undoes what another has done.
func (b *Board) ReplaceProject(ctx context.Context, id string, was, p Project) (bool, error) {
	return b.putProject(ctx, id, &was, p)
}

func (b *Board) putProject(ctx context.Context, id string, was *Project, p Project) (bool, error) {
	if err := checkProject(id, p); err != nil {
		return false, err
	}
	return put(ctx, b, projectPrefix, id, was, p, func(s *State) *map[string]Project { return &s.projects })
}

// SetModel sets what the quota of a model has.
func (b *Board) SetModel(ctx context.Context, quota string, m Model) error {
	_, err := b.putModel(ctx, quota, nil, m)
	return err
}

// ReplaceModel is ReplaceProject of what the quota of a model has.
func (b *Board) ReplaceModel(ctx context.Context, quota string, was, m Model) (bool, error) {
	return b.putModel(ctx, quota, &was, m)
}

func (b *Board) putModel(ctx context.Context, quota string, was *Model, m Model) (bool, error) {
	if err := checkModel(quota, m); err != nil {
		return false, err
	}
	return put(ctx, b, modelPrefix, quota, was, m, func(s *State) *map[string]Model { return &s.models })
}

// SetKey sets what a key has.
func (b *Board) SetKey(ctx context.Context, id string, k Key) error {
	if err := checkKey(id, k); err != nil {
		return err
	}
	_, err := put(ctx, b, keyPrefix, id, nil, k, func(s *State) *map[string]Key { return &s.keys })
	return err
}

// SetGateway sets what all gateways on the store have.
func (b *Board) SetGateway(ctx context.Context, g Gateway) error {
	if err := checkGateway(allGateways, g); err != nil {
		return err
	}
	_, err := put(ctx, b, gatewayPrefix, allGateways, nil, g, func(s *State) *map[string]Gateway { return &s.gateway })
	return err
}

// maxEnded is how many sessions the store remembers as ended. Those that would end first by themselves are forgotten.
const maxEnded = 1000

// EndSession ends a session of the admin API, for all gateways on the store, until it would end by itself.
func (b *Board) EndSession(ctx context.Context, id string, ends int64) error {
	for {
		if err := b.Load(ctx); err != nil {
			return err
		}
		was := b.State().ended[allGateways]
		now, next := time.Now().Unix(), map[string]int64{id: ends}
		for _, other := range slices.SortedFunc(maps.Keys(was), func(x, y string) int { return cmp.Compare(was[y], was[x]) }) {
			if was[other] > now && len(next) < maxEnded {
				next[other] = was[other]
			}
		}
		done, err := put(ctx, b, endedPrefix, allGateways, &was, next, func(s *State) *map[string]map[string]int64 { return &s.ended })
		if done || err != nil {
			return err
		}
	}
}

// put sets one value in the store and in the State, unless it is not was any more; a nil was is any value. It
// reports whether it did. of returns the values of its kind.
func put[V any](ctx context.Context, b *Board, prefix, name string, was *V, value V, of func(*State) *map[string]V) (done bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all map[string]string
	if was != nil {
		if all, err = b.load(ctx); err != nil {
			return false, err
		}
		if !reflect.DeepEqual((*of(b.State()))[name], *was) {
			return false, nil
		}
	}
	stored := &value
	if reflect.ValueOf(value).IsZero() {
		stored = nil
	}
	switch {
	case b.keeper == nil:
		done = true
	case was == nil:
		_, err = settings.Put(ctx, b.keeper, prefix, map[string]*V{name: stored}, false)
		done = err == nil
	default:
		done, err = settings.Swap(ctx, b.keeper, all, prefix, name, stored)
	}
	if !done {
		return false, err
	}
	next := *b.state.Load()
	values := map[string]V{}
	maps.Copy(values, *of(&next))
	values[name] = value
	if stored == nil {
		delete(values, name)
	}
	*of(&next) = values
	b.set(&next)
	return true, nil
}

// set replaces the State and calls the watchers.
func (b *Board) set(s *State) {
	s.hasTerms, s.modes, s.pausesModels = false, s.Gateway().Mode != "", false
	for _, p := range s.projects {
		s.hasTerms = s.hasTerms || p.treatsCalls() || len(p.Models) > 0
		s.modes = s.modes || p.Mode != ""
	}
	for _, m := range s.models {
		s.modes = s.modes || m.Mode != ""
		s.pausesModels = s.pausesModels || m.Paused
	}
	b.state.Store(s)
	b.watchers.Notify()
}

// Watch calls changed with each new State, and once with the present one, until stop is called. changed
// must return soon.
func (b *Board) Watch(changed func(*State)) (stop func()) {
	return b.watchers.Add(func() { changed(b.state.Load()) })
}

// Missed returns the first error, since it was last called, of following the store.
func (b *Board) Missed() error { return b.missed.Take() }

// Close stops following the store.
func (b *Board) Close() { b.stop() }
