package redisstore

import (
	"bytes"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// anyStored draws an account with leases.
func anyStored(t *rapid.T) stored {
	now := noon.UnixNano()
	s := stored{account: new(limit.Account), revision: rapid.Int64Range(0, 1<<53).Draw(t, "revision")}
	var limits []limit.Limit
	for range rapid.IntRange(1, 4).Draw(t, "limits") {
		limits = append(limits, anyLimit(t))
	}
	s.account.Settle(limits, limit.Receipt{At: now}, now, 1)
	for range rapid.IntRange(0, 10).Draw(t, "takes") {
		now += rapid.Int64Range(0, int64(time.Minute)).Draw(t, "later")
		s.account.Settle(limits, limit.Receipt{At: now}, now, rapid.Int64Range(0, 1<<62).Draw(t, "n"))
	}
	asks := &remote{}
	for range rapid.IntRange(0, 8).Draw(t, "leases") {
		c := store.Charge{Limits: limits[:rapid.IntRange(0, len(limits)).Draw(t, "of")], N: rapid.Int64Range(0, 1<<62).Draw(t, "leased")}
		s.leases = append(s.leases, storedLease{
			name:    rand.Text()[:leaseName],
			ends:    rapid.Int64().Draw(t, "ends"),
			request: asks.take(stepTake, []store.Charge{c}, now).body,
		})
	}
	return s
}

// An account with leases that was encoded and decoded is the same.
func TestLeasesAreWrittenAndRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyStored(t)
		account, ring, _ := s.write()
		read, err := readAccount(account, ring)
		if err != nil {
			t.Fatal(err)
		}
		same := func(a, b storedLease) bool {
			return a.name == b.name && a.ends == b.ends && bytes.Equal(a.request, b.request)
		}
		if !slices.EqualFunc(s.leases, read.leases, same) || read.revision != s.revision {
			t.Fatalf("%+v, revision %d; want %+v, %d", read.leases, read.revision, s.leases, s.revision)
		}
		again, ringAgain, _ := read.write()
		if !bytes.Equal(again, account) || !bytes.Equal(ringAgain, ring) {
			t.Fatal("what was read is written otherwise")
		}
	})
}

// The charge of a lease is decoded as it was encoded.
func TestChargeOfALease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := store.Charge{N: rapid.Int64Range(0, 1<<62).Draw(t, "n")}
		for range rapid.IntRange(0, 4).Draw(t, "limits") {
			want.Limits = append(want.Limits, anyLimit(t))
		}
		asked := (&remote{}).take(stepTake, []store.Charge{want}, noon.UnixNano()).body
		got, err := storedLease{request: asked}.charge()
		if err != nil || got.N != want.N {
			t.Fatalf("%d, %v; want %d", got.N, err, want.N)
		}
		for i, l := range distinct(want.Limits) {
			if got.Limits[i] != l {
				t.Fatalf("limit %d is %v; want %v", i, got.Limits[i], l)
			}
		}
		cut := rapid.IntRange(0, len(asked)-1).Draw(t, "cut")
		if _, err := (storedLease{request: asked[:cut]}).charge(); err == nil {
			t.Fatalf("%d of %d bytes are no fault", cut, len(asked))
		}
	})
}

// Bytes that were cut off, or changed, are an error or another account, and no panic.
func TestLeasesOfForeignBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyStored(t)
		account, ring, _ := s.write()
		if _, err := readAccount(account[:rapid.IntRange(1, len(account)-1).Draw(t, "cut")], ring); err == nil {
			t.Fatal("an account that was cut off is no fault")
		}
		at := rapid.IntRange(0, len(account)-1).Draw(t, "at")
		account[at] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		changed, err := readAccount(account, ring)
		for _, l := range changed.leases {
			l.charge()
		}
		if err == nil {
			changed.write()
		}
	})
}
