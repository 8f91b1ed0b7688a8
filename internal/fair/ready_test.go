package fair

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// Flows of a higher rank have their turns first, by weight among each other. Flows of a lower rank
// have theirs when none of these waits.
func TestTurnsByRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.join(l, "first", Ticket{Flow: "low", Rank: -1, Cost: 1})
		for i := range 24 {
			o.join(l, fmt.Sprint("z", i), Ticket{Flow: "low", Rank: -1, Weight: 1000, Cost: WholeTurn / 60})
			o.join(l, fmt.Sprint("a", i), Ticket{Flow: "a", Weight: 3, Cost: WholeTurn / 60})
			o.join(l, fmt.Sprint("b", i), Ticket{Flow: "b", Weight: 1, Cost: WholeTurn / 60})
		}
		o.join(l, "high", Ticket{Flow: "high", Rank: 1, Cost: WholeTurn})
		o.let(l, 25)
		got := strings.Join(o.passed, " ")
		if a, b := strings.Count(got, "a"), strings.Count(got, "b"); o.passed[0] != "high" || a != 18 || b != 6 {
			t.Fatalf("%s: want the highest, and of the others 18 to 6", got)
		}
		o.let(l, 24)
		if slices.Contains(o.passed, "first") {
			t.Errorf("%q: the lowest has had a turn while others wait", o.passed)
		}
		o.let(l, 25)
		if got := o.passed[49:]; len(got) != 25 || got[0] != "first" || got[24] != "z23" {
			t.Errorf("%q", got)
		}
		o.wantNobody()
	})
}

// A waiter loses its turn to one of a higher rank, and has it back after that.
func TestOutranked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.join(l, "low", Ticket{Flow: "low", Cost: WholeTurn})
		o.join(l, "high", Ticket{Flow: "high", Rank: 1, Cost: WholeTurn})
		asks := o.asks()
		if asks != 2 {
			t.Errorf("asked %d times; want once each", asks)
		}
		o.let(l, 1)
		o.wantPassed("high")
		o.cancel("low")
		o.wantPassed("")
		o.wantNobody()
	})
}

// A waiter that asks while one of a higher rank comes may pass: it is not interrupted, and no other
// asks meanwhile.
func TestOutrankedAsItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		answer := make(chan Answer)
		go l.Wait(t.Context(), Ticket{Flow: "low", Cost: 1}, func() (Answer, error) { return <-answer, nil })
		synctest.Wait()
		o.let(l, 1)
		o.join(l, "high", Ticket{Flow: "high", Rank: 1, Cost: 1})
		o.wantPassed("")
		answer <- Answer{Again: o.again}
		synctest.Wait()
		o.wantPassed("high")
		answer <- Answer{Done: true} // it has the turn again
		o.wantNobody()
	})
}

// A flow of a higher rank that has stepped aside leaves turns to others, and has the next turn when
// it comes back.
func TestAsideOutranksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.own["high"] = 0
		o.join(l, "high", Ticket{Flow: "high", Rank: 1, Cost: 1})
		o.join(l, "a", Ticket{Flow: "low", Cost: 1})
		o.join(l, "b", Ticket{Flow: "low", Cost: 1})
		o.let(l, 1)
		o.wantPassed("a")
		o.give("high", 1)
		o.wantPassed("")
		o.let(l, 1)
		o.wantPassed("high")
		o.let(l, 1)
		o.wantPassed("b")
		o.wantNobody()
	})
}

// A flow has the rank of the last call that has joined it.
func TestRankChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.join(l, "a", Ticket{Flow: "a", Rank: 5, Cost: 1})
		o.join(l, "b", Ticket{Flow: "b", Rank: 1, Cost: 1})
		o.join(l, "a too", Ticket{Flow: "a", Rank: 0, Cost: 1})
		o.let(l, 1)
		o.wantPassed("b")
		o.join(l, "c", Ticket{Flow: "c", Rank: 1, Cost: 1})
		o.join(l, "a three", Ticket{Flow: "a", Rank: 2, Cost: 1})
		o.let(l, 9)
		o.wantPassed("a a too a three c")
		o.wantNobody()
	})
}

// New calls of the rank of a line's waiters, and of lower ranks, must wait.
func TestHeldByRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		check := func(rank int, want bool) {
			t.Helper()
			if _, blocked := l.Ahead("", rank); blocked != want {
				t.Errorf("rank %d: blocked is %t; want %t", rank, blocked, want)
			}
		}
		o.join(l, "low", Ticket{Flow: "low", Rank: 3, Cost: 1})
		check(2, true)
		check(3, true)
		check(4, false)
		o.join(l, "high", Ticket{Flow: "high", Rank: 5, Cost: 1})
		check(4, true)
		check(5, true)
		check(6, false)
		o.own["high"] = 0
		l.Wake(true)
		synctest.Wait() // it steps aside
		check(4, false)
		check(3, true)
		o.cancel("low", "high")
		check(0, false)
		o.wantNobody()
	})
}
