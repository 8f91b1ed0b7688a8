// A store of one's own: seven methods over a plain map, and the limiters count in it.
//
//	go run ./examples/store
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// mapStore is a [store.Store] in a map. One that keeps its accounts elsewhere, in a database say, reads and writes
// their binary form (AppendBinary and UnmarshalBinary), in one transaction for each method.
type mapStore struct {
	clock func() int64 // Unix nanoseconds

	mu       sync.Mutex
	closed   bool
	accounts map[string]*limit.Account // what each key has used
}

func newMapStore(clock func() int64) *mapStore {
	return &mapStore{clock: clock, accounts: map[string]*limit.Account{}}
}

// receipt is what Settle must know of a take.
type receipt struct {
	store   *mapStore
	charges []store.Charge
	taken   []limit.Receipt // of each charge
	settled bool
}

// begin locks the store, or returns why it cannot be asked. If it returns nil, the caller unlocks the store.
func (s *mapStore) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("not asked: %w", err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.ErrClosed
	}
	return nil
}

// Take implements [store.Store]. It reads the clock once, asks all limits, and charges all keys or none.
func (s *mapStore) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := store.Validate(charges); err != nil {
		return nil, nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	all := s.accountsOf(charges)
	decisions := ask(charges, all, now)
	if !store.Allowed(decisions) {
		return nil, untaken(charges, all, now, decisions), nil
	}
	r := &receipt{store: s, charges: slices.Clone(charges)}
	for i, c := range charges {
		r.taken = append(r.taken, all[i].Take(c.Limits, now, c.N))
		s.keep(c.Key, all[i], now)
	}
	return r, decisions, nil
}

// Peek implements [store.Store].
func (s *mapStore) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := store.Validate(charges); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.clock()
	all := s.accountsOf(charges)
	for i := range all {
		all[i] = all[i].Fork() // a look changes nothing
	}
	return untaken(charges, all, now, ask(charges, all, now)), nil
}

// accountsOf returns the account of each charge's key: a new one if nothing is known of it.
func (s *mapStore) accountsOf(charges []store.Charge) []*limit.Account {
	all := make([]*limit.Account, len(charges))
	for i, c := range charges {
		all[i] = s.accounts[c.Key]
		if all[i] == nil {
			all[i] = new(limit.Account)
		}
	}
	return all
}

// keep keeps the account of a key, unless nothing is in use: that is the same as none.
func (s *mapStore) keep(key string, a *limit.Account, now int64) {
	if now >= a.FullAt() {
		delete(s.accounts, key)
	} else {
		s.accounts[key] = a
	}
}

// ask returns what each limit says to its charge.
func ask(charges []store.Charge, all []*limit.Account, now int64) (decisions []limit.Decision) {
	for i, c := range charges {
		all[i].Fit(c.Limits, now) // they may have changed
		for _, l := range c.Limits {
			decisions = append(decisions, all[i].Check(l, now, c.N))
		}
	}
	return decisions
}

// untaken corrects decisions of limits that allow a charge which is not taken: they say what remains without it.
func untaken(charges []store.Charge, all []*limit.Account, now int64, decisions []limit.Decision) []limit.Decision {
	at := 0
	for i, c := range charges {
		for _, l := range c.Limits {
			if decisions[at].Allowed {
				decisions[at] = all[i].Check(l, now, 0)
			}
			at++
		}
	}
	return decisions
}

// Settle implements [store.Store].
func (s *mapStore) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	own, ok := r.(*receipt)
	if !ok || own.store != s || len(actual) != len(own.taken) {
		return store.ErrReceipt
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if own.settled {
		return nil
	}
	own.settled = true
	now := s.clock()
	all := s.accountsOf(own.charges)
	for i, c := range own.charges {
		if actual[i] >= 0 {
			all[i].Settle(c.Limits, own.taken[i], now, actual[i])
			s.keep(c.Key, all[i], now)
		}
	}
	return nil
}

// Read implements [store.Store].
func (s *mapStore) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	if err := s.begin(ctx); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	copies := make([]*limit.Account, len(keys))
	for i, key := range keys {
		copies[i] = new(limit.Account)
		if a := s.accounts[key]; a != nil {
			form, err := a.AppendBinary(nil)
			if err == nil {
				err = copies[i].UnmarshalBinary(form)
			}
			if err != nil {
				return nil, 0, err
			}
		}
	}
	return copies, s.clock(), nil
}

// Keys implements [store.Store].
func (s *mapStore) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	keys := slices.Sorted(maps.Keys(s.accounts))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) }), nil
}

// Reset implements [store.Store].
func (s *mapStore) Reset(ctx context.Context, prefix string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	maps.DeleteFunc(s.accounts, func(key string, _ *limit.Account) bool { return strings.HasPrefix(key, prefix) })
	return nil
}

// Close implements [store.Store].
func (s *mapStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run limits a project in a store of its own.
func run(w io.Writer) error {
	counters := newMapStore(func() int64 { return time.Now().UnixNano() })
	defer counters.Close()
	limiter, err := project.NewWithConfig(project.Config{Store: counters, Default: &project.Limit{RequestsPerMinute: 2}})
	if err != nil {
		return err
	}
	defer limiter.Close()
	for i := range 3 {
		d, err := limiter.Spend(context.Background(), project.Call{Project: "acme"})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "request %d: allowed %t\n", i+1, d.Allowed)
	}
	keys, err := counters.Keys(context.Background(), "")
	fmt.Fprintf(w, "the store counts %s\n", strings.Join(keys, ", "))
	return err
}
