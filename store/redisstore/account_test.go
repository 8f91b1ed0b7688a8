package redisstore

import (
	"bytes"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func oneOf[E any](t *rapid.T, name string, of ...E) E {
	return of[rapid.IntRange(0, len(of)-1).Draw(t, name)]
}

// anyLimit draws a limit of any kind.
func anyLimit(t *rapid.T) limit.Limit {
	l := limit.New(oneOf[int64](t, "count", 10, 1, 3, 100, 97), oneOf(t, "period", time.Hour, time.Minute, 999_999_937))
	switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); kind {
	case 0, 1, 2:
		l = l.Using([]limit.Algorithm{limit.GCRA, limit.TokenBucket, limit.LeakyBucket}[kind])
		return l.WithBurst(oneOf(t, "burst", l.Count(), 1, 2*l.Count()))
	case 3:
		return l.Anchored()
	case 4:
		n := l.Count()
		return oneOf(t, "calendar", limit.PerDay(n).ResetAt(0, nil), limit.PerHour(n).ResetHourly(0, nil), limit.PerMonth(n).ResetMonthly(15, 0, nil))
	case 5:
		return l.Using(limit.FixedWindow)
	case 6:
		return l.Using(limit.SlidingCounter)
	default:
		return l.Using(limit.SlidingLog)
	}
}

// anyStored draws an account.
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
	return s
}

// An account that was encoded and decoded is the same.
func TestAccountsAreWrittenAndRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyStored(t)
		account, _ := s.write()
		read, err := readAccount(account)
		if err != nil || read.revision != s.revision {
			t.Fatalf("revision %d, %v; want %d", read.revision, err, s.revision)
		}
		if again, _ := read.write(); !bytes.Equal(again, account) {
			t.Fatal("what was read is written otherwise")
		}
	})
}

// Bytes that were cut off, or changed, are an error or another account, and no panic. Only a log may be cut off: it is
// rebuilt.
func TestAccountsOfForeignBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyStored(t)
		account, _ := s.write()
		cut, err := readAccount(account[:rapid.IntRange(1, len(account)-1).Draw(t, "cut")])
		if err == nil && len(snapshotOf(cut.account).windows) == 0 {
			t.Fatal("an account that was cut off is no fault")
		}
		at := rapid.IntRange(0, len(account)-1).Draw(t, "at")
		account[at] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		if changed, err := readAccount(account); err == nil {
			changed.write()
		}
	})
}
