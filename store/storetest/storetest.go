// Package storetest tests that a store keeps the promises of package store: exact
// answers, all or nothing, never more than the limit, settled once.
//
// A store's own test is one call:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
//			s := open(t.TempDir(), clock)
//			t.Cleanup(func() { s.Close() })
//			return s
//		})
//	}
package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// Run tests a store against the promises of package store. newStore returns an empty store whose
// clock is the given function (Unix nanoseconds); t.Cleanup should close it.
//
// A store reads its clock once a decision. The clock may show any time: it moves on, stands still,
// and goes back. Random histories come from rapid: -rapid.checks makes more of them, -short fewer.
func Run(t *testing.T, newStore func(t *testing.T, clock func() int64) store.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, newStore opener)
	}{
		{"random histories", histories(counts)},
		{"random histories of huge numbers", histories(huge)},
		{"random changes of a limit's count", countsThatChange},

		{"exactly the limit passes, however many ask at once", ofEvery(60, exactlyTheLimit)},
		{"all keys are charged or none, in any order at once", allOrNothing},
		{"takes of keys in opposite orders do not deadlock", orders},
		{"no window holds more than the limit, over time", ofEvery(30, neverMoreOverTime)},
		{"a log of very many entries is hardly stricter", manyEntries},

		{"a receipt is settled once", ofEvery(100, settledOnce)},
		{"a negative amount leaves a take as it is", ofEvery(10, leftAsItIs)},
		{"debts delay later takes", ofEvery(10, debtsDelay)},
		{"a debt denies zero", ofEvery(10, debtsDenyZero)},
		{"an amount that is charged whatever the limits say counts as used", chargedWhatever},
		{"a take of zero that used something owes it", ofEvery(10, debtsOfNothing)},
		{"refunds are no headroom in a later window", ofEvery(10, refundsAreNoHeadroom)},
		{"a take is settled in its own window, late or not", ofEvery(10, settledLate)},
		{"a day whose only take was given back has not begun", ofEvery(10, daysThatHaveNotBegun)},
		{"refunds of a bucket do not add up", refundsDoNotAddUp},
		{"a take from before a reset is not given back", ofEvery(10, resetVoidsReceipts)},
		{"other receipts change nothing", foreignReceipts},
		{"the caller's charges are not kept", ownCopies},

		{"a clock that went back grants and freezes nothing", ofEvery(10, clockWentBack)},
		{"a peek while the clock is back frees nothing", ofEvery(10, peekedWhileBack)},
		{"random clocks let no more pass than the limit", anyClock},
		{"a clock that steps back over a boundary grants nothing", ofEvery(10, stepsBack)},
		{"a clock that steps back in turns, while counts change, grants nothing", ofEveryChange(time.Minute, stepsInTurns)},
		{"a debt counts, though the clock went back", ofEvery(10, owedWhileBack)},

		{"never and later are different answers", ofEvery(10, neverAndLater)},
		{"a take of zero passes without a debt", ofEvery(10, nothing)},
		{"invalid charges charge nothing", invalidCharges},
		{"no charges pass", noCharges},
		{"any bytes are a key, and a prefix", odd},
		{"accounts are read", ofEvery(10, readAccounts)},
		{"keys are listed", listedKeys},

		{"used amounts stay when a count changes", ofEveryChange(time.Minute, raisedAndLowered)},
		{"used amounts stay when a count is 1 for a moment", ofEveryChange(24*time.Hour, loweredForAMoment)},
		{"takes from before and after a change are settled", ofEveryChange(time.Minute, changedWhileOpen)},
		{"takes from before a change are settled for more and less", ofEveryChange(time.Minute, owedAfterAChange)},
		{"a peek under another count changes nothing", ofEveryChange(time.Minute, peekedUnderAnother)},
		{"a take that is denied after a change passes at its RetryAfter", ofEveryChange(time.Hour, passesWhenToldAfterAChange)},
		{"the used amount of a day stays when days begin at another time", otherDays},
		{"another algorithm or period begins anew", begunAnew},

		{"a context that has ended", endedContext},
		{"a store that is closed", closed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newStore) })
	}
}

type opener = func(t *testing.T, clock func() int64) store.Store

// clock is a clock that stands still until it is moved.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.set(starts[0])
	return c
}

func (c *clock) now() int64          { return c.at.Load() }
func (c *clock) set(t time.Time)     { c.at.Store(t.UnixNano()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }
