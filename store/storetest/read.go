package storetest

import (
	"slices"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
)

// readAccounts: the decisions of an account are those of a peek, the account belongs to the caller,
// and a key that has used nothing has a zero account.
func readAccounts(b *bench, l limit.Limit) {
	b.mustTake(charge("a", 4, l), charge("b", 10, l))
	b.clock.add(l.Period() / 3)
	b.mustTake(charge("a", 1, l))
	keys := []string{"b", "unknown", "a", "b"}
	for _, changed := range []bool{false, true} {
		accounts, at, err := b.store.Read(b.Context(), keys...)
		if err != nil || len(accounts) != len(keys) || at != b.clock.now() {
			b.Fatalf("read %q at %d: %d accounts as of %d, %v", keys, b.clock.now(), len(accounts), at, err)
		}
		for i, a := range accounts {
			for _, n := range []int64{0, 1, 10} {
				want := b.peek(charge(keys[i], n, l))[0]
				if n > 0 && want.Allowed { // a peek takes nothing
					want = b.peek(charge(keys[i], 0, l))[0]
					n = 0
				}
				if got := a.Check(l, at, n); got != want {
					b.Errorf("the account of %q says to %d, read a second time %v: %+v; want %+v", keys[i], n, changed, got, want)
				}
			}
		}
		if empty := accounts[1]; empty.FullAt() > at {
			b.Errorf("a key that has used nothing is in use until %d, at %d", empty.FullAt(), at)
		}
		for _, a := range accounts { // changes of the copies must not reach the store
			if a.Check(l, at, 1).Allowed {
				a.Take([]limit.Limit{l}, at, 1)
			}
		}
	}
	if accounts, at, err := b.store.Read(b.Context()); err != nil || len(accounts) != 0 || at != b.clock.now() {
		b.Errorf("read of no keys at %d: %v as of %d, %v", b.clock.now(), accounts, at, err)
	}
}

// listedKeys: all keys in use that begin with a prefix are listed once, in order, and none that was
// never charged.
func listedKeys(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	l := limit.PerMinute(10)
	list := func(prefix string, want ...string) {
		t.Helper()
		keys, err := b.store.Keys(t.Context(), prefix)
		if err != nil || !slices.Equal(keys, want) {
			t.Errorf("keys that begin with %.20q: %.20q, %v; want %.20q", prefix, keys, err, want)
		}
	}
	list("")
	for _, key := range oddKeys {
		b.mustTake(charge(key, 1, l))
	}
	b.mustTake(charge("a never charged", 0, l))
	b.peek(charge("a peeked", 1, l))
	b.mustNotTake(charge("a denied", 11, l))
	all := slices.Sorted(slices.Values(oddKeys))
	list("", all...)
	list("a%", "a%", "a%b")
	list("\xff", "\xff", "\xff\xff")
	list("none")
	b.reset("a%")
	list("", slices.DeleteFunc(all, func(key string) bool { return key == "a%" || key == "a%b" })...)
}
