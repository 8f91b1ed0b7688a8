// Package store is where counters live: in memory, in a file, on a server.
//
// A [Store] has one verb: take so much of several keys, all or nothing, and
// settle later what it came to. The arithmetic is package limit's, in every
// store; storetest holds any store to it.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Charge is an amount N that a key is charged under each of its limits.
//
// What a key has used still counts after the counts of its limits have changed, or the
// time at which their days begin. A limit with another algorithm or period has used
// nothing, except for a sliding log: a new period covers the entries that the log still
// has. The store may keep Limits: do not change them.
type Charge struct {
	Key    string
	Limits []limit.Limit
	N      int64

	prepared *prepared // nil unless Prepare has made the charge
}

// Store keeps what keys have used. Its methods are safe for concurrent use. An error is a
// fault of the store or of the call, and then nothing has happened. A denial is no error.
type Store interface {
	// Take charges all of the charges, or none if a limit denies one. It
	// returns what each limit says, in the order of the charges and of their
	// limits. See [Allowed] and [Deciding]. A limit of which more is used than
	// it allows denies even a charge of zero. The caller may use the list again for
	// another call: a store keeps a copy of what it needs of it.
	//
	// Every decision says exactly what is used and since when. A store that decides
	// while it cannot reach its server says what it knows: Used is at least the
	// limit's burst less Remaining, and Since is 0 if it does not know the window.
	Take(ctx context.Context, charges []Charge) (Receipt, []limit.Decision, error)

	// Settle corrects what was taken to what was used: one amount for each
	// charge, or a negative one to leave it. Only the first call with a
	// receipt does anything. What was used beyond what was taken is a debt.
	Settle(ctx context.Context, r Receipt, actual []int64) error

	// Peek returns what Take would, and charges nothing. What it says remains
	// is what remains now.
	Peek(ctx context.Context, charges []Charge) ([]limit.Decision, error)

	// Read returns what each of the keys has used, and the time of the reading in Unix
	// nanoseconds. The account of a key that has used nothing is a zero account. The
	// caller may change the accounts.
	Read(ctx context.Context, keys ...string) (accounts []*limit.Account, at int64, err error)

	// Keys returns all keys that begin with prefix of which anything is stored,
	// in order. Some may have nothing in use any more.
	Keys(ctx context.Context, prefix string) ([]string, error)

	// Reset forgets what was used of all keys that begin with prefix.
	Reset(ctx context.Context, prefix string) error

	Close() error
}

// Receipt is what a store must know of a take to settle it. The receipt of a denied take is
// nil, and settling it does nothing.
type Receipt = any

// Errors that callers may want to distinguish.
var (
	ErrClosed  = errors.New("ratelimit: the store is closed")
	ErrInvalid = errors.New("ratelimit: invalid charge") // see [Validate]
	ErrReceipt = errors.New("ratelimit: not a receipt of this store, or not one amount for each charge")
)

// maxLimits is more limits than any key needs.
const maxLimits = 64

// Validate returns what is wrong with the charges and what is allowed, or nil.
// An amount that is larger than a limit is valid: Take denies it for ever.
func Validate(charges []Charge) error {
	for i := range charges {
		c := &charges[i]
		if c.N < 0 {
			return errNegative(c.Key, c.N)
		}
		for k := range i {
			if charges[k].Key == c.Key {
				return errTwice(c.Key)
			}
		}
		if c.isPrepared() {
			continue // its limits were checked
		}
		if len(c.Limits) > maxLimits {
			return fmt.Errorf("%w: %q has %d limits: it may have %d", ErrInvalid, c.Key, len(c.Limits), maxLimits)
		}
		for _, l := range c.Limits {
			if err := l.Validate(); err != nil {
				return fmt.Errorf("%w: %q: %w", ErrInvalid, c.Key, err)
			}
		}
	}
	return nil
}

func errNegative(key string, n int64) error {
	return fmt.Errorf("%w: %d of %q: it must not be negative", ErrInvalid, n, key)
}

func errTwice(key string) error {
	return fmt.Errorf("%w: %q is charged twice: each key may be named once", ErrInvalid, key)
}

// Allowed reports whether all limits allow.
func Allowed(decisions []limit.Decision) bool {
	return !slices.ContainsFunc(decisions, func(d limit.Decision) bool { return !d.Allowed })
}

// Deciding returns the decision that decides: of those that deny, the one that denies
// longest; if all allow, the one with the least left. Without any decisions it allows.
func Deciding(decisions []limit.Decision) limit.Decision {
	if len(decisions) == 0 {
		return limit.Decision{Allowed: true}
	}
	return slices.MinFunc(decisions, func(a, b limit.Decision) int {
		if a.RetryAfter != b.RetryAfter {
			return cmp.Compare(b.RetryAfter, a.RetryAfter)
		}
		return cmp.Compare(a.Remaining, b.Remaining)
	})
}
