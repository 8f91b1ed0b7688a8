package redisstore

import (
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Programs of two versions share a server. Each has a library of its own, which keeps the accounts that it has written:
// what the other one writes counts for both.
func TestTwoVersions(t *testing.T) {
	t.Parallel()
	client := dialed(t, redistest.New(t).URL())
	var both [2]*remote
	for i := range both {
		both[i] = newRemote(client, "versions", patient, nil, nil)
		t.Cleanup(func() { both[i].Close() })
	}
	another := both[1].link
	another.name, another.text = library(accounting() + "-- of another version\n")
	if another.name == both[0].link.name {
		t.Fatal("both have one library")
	}
	for name, l := range everyKind(1000) {
		t.Run(name, func(t *testing.T) {
			charges, used := one(name, l, 5), int64(0)
			var receipts [2]store.Receipt
			for step := range 40 {
				i := step % 2
				if step%8 < 4 { // two takes of each, then their settlements
					receipt, decisions, err := both[i].Take(t.Context(), charges)
					if err != nil || receipt == nil {
						t.Fatal(decisions, err)
					}
					if step%8 < 2 {
						receipts[i] = receipt
					}
					used += 5
				} else if step%8 < 6 {
					if err := both[i].Settle(t.Context(), receipts[i], []int64{int64(4 + 2*i)}); err != nil {
						t.Fatal(err)
					}
					used += int64(2*i - 1)
				}
				decisions, err := both[1-i].Peek(t.Context(), charges)
				if err != nil || decisions[0].Used != used && !(isBucket(l) && decisions[0].Used == used-1) { // a bucket leaks
					t.Fatalf("step %d: %+v, %v; want %d used", step, decisions, err, used)
				}
			}
		})
	}
}

// A node keeps the accounts that a denied call, or a peek, has read, and need not read them again.
// Entries that left a window in a denied call are in it again when the clock goes back.
func TestAccountsAreKnownAfterADenial(t *testing.T) {
	t.Parallel()
	server, now := redistest.New(t), noon.UnixNano()
	r := newRemote(dialed(t, server.URL()), "denials", patience, func() int64 { return now }, nil)
	t.Cleanup(func() { r.Close() })
	charge := store.Charge{Key: "key", Limits: []limit.Limit{
		limit.PerMinute(10).Using(limit.SlidingLog), limit.PerHour(100).Using(limit.SlidingLog),
	}, N: 6}
	if receipt, decisions, err := r.Take(t.Context(), []store.Charge{charge}); err != nil || receipt == nil {
		t.Fatal(decisions, err)
	}
	serverDo(t, server, "CONFIG", "RESETSTAT")
	now += int64(2 * time.Minute)
	for range 3 {
		charge.N = 11
		if receipt, decisions, err := r.Take(t.Context(), []store.Charge{charge}); err != nil || receipt != nil || decisions[0].Used != 0 {
			t.Fatal(decisions, err)
		}
		if decisions, err := r.Peek(t.Context(), []store.Charge{charge}); err != nil || decisions[1].Used != 6 {
			t.Fatal(decisions, err)
		}
	}
	if stats := serverDo(t, server, "INFO", "commandstats").(string); strings.Contains(stats, "cmdstat_strlen") {
		t.Errorf("a call has read an account that was known: %s", stats)
	}
	now -= int64(time.Minute + time.Second)
	if decisions, err := r.Peek(t.Context(), []store.Charge{charge}); err != nil || decisions[0].Used != 6 {
		t.Errorf("%+v, %v; want 6 used, after the clock went back", decisions, err)
	}
}

// A log is empty when the newest entry that counts has left it: a later one that was given back does not prolong it.
func TestALogEndsWithWhatCounts(t *testing.T) {
	t.Parallel()
	now := noon.UnixNano()
	r := newRemote(dialed(t, redistest.New(t).URL()), "ends", patience, func() int64 { return now }, nil)
	t.Cleanup(func() { r.Close() })
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{limit.PerMinute(10).Using(limit.SlidingLog)}, N: 3}}
	var receipts [2]store.Receipt
	for i := range receipts {
		var err error
		if receipts[i], _, err = r.Take(t.Context(), charges); err != nil {
			t.Fatal(err)
		}
		now += int64(10 * time.Second)
	}
	if err := r.Settle(t.Context(), receipts[1], []int64{0}); err != nil {
		t.Fatal(err)
	}
	if decisions, err := r.Peek(t.Context(), charges); err != nil || decisions[0].Used != 3 || decisions[0].ResetAfter != 40*time.Second {
		t.Errorf("%+v, %v; want 3 used, which ends in 40 s", decisions, err)
	}
}

// A settlement corrects the windows that the take is still in, and no others.
func TestSettledInTheWindowsOfTheTake(t *testing.T) {
	t.Parallel()
	now := noon.UnixNano()
	r := newRemote(dialed(t, redistest.New(t).URL()), "windows", patience, func() int64 { return now }, nil)
	t.Cleanup(func() { r.Close() })
	limits := []limit.Limit{limit.PerMinute(10).Using(limit.SlidingLog), limit.PerHour(100).Using(limit.SlidingLog)}
	first, _, err := r.Take(t.Context(), []store.Charge{{Key: "key", Limits: limits, N: 5}})
	if err != nil {
		t.Fatal(err)
	}
	now += int64(90 * time.Second)
	if _, _, err := r.Take(t.Context(), []store.Charge{{Key: "key", Limits: limits, N: 2}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(t.Context(), first, []int64{4}); err != nil {
		t.Fatal(err)
	}
	decisions, err := r.Peek(t.Context(), []store.Charge{{Key: "key", Limits: limits, N: 1}})
	if err != nil || decisions[0].Used != 2 || decisions[1].Used != 6 {
		t.Errorf("%+v, %v; want 2 used of the minute, and 6 of the hour", decisions, err)
	}
}
