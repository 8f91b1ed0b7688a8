package fair

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A waiter that is denied by its flow's own limits lets others pass at once, and asks again at the
// given time.
func TestStepsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.open[l] = 100
		o.own["x"] = 0
		start := time.Now()
		o.join(l, "x1", Ticket{Flow: "x", Cost: WholeTurn})
		o.join(l, "x2", Ticket{Flow: "x", Cost: WholeTurn})
		for i := range 9 {
			o.join(l, fmt.Sprint(i), Ticket{Flow: "a", Cost: WholeTurn})
		}
		if time.Since(start) != 0 {
			t.Errorf("others have waited for %v", time.Since(start))
		}
		o.wantPassed("0 1 2 3 4 5 6 7 8")
		if o.asks() != 10 {
			t.Errorf("asked %d times; want 10: x2 is behind x1", o.asks())
		}
		o.mu.Lock()
		o.own["x"] = 9
		o.mu.Unlock()
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		o.wantPassed("")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		o.wantPassed("x1 x2")
		o.wantNobody()
	})
}

// A flow that comes back has its turns as others do: it has not lost what it had gained, and it has
// not gained while it was aside.
func TestComesBackInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.own["x"] = 0
		for i := range 4 {
			o.join(l, fmt.Sprint("x", i), Ticket{Flow: "x", Cost: WholeTurn})
		}
		for i := range 4 {
			o.join(l, fmt.Sprint("a", i), Ticket{Flow: "a", Cost: WholeTurn})
			o.join(l, fmt.Sprint("b", i), Ticket{Flow: "b", Cost: WholeTurn})
		}
		o.let(l, 2)
		o.wantPassed("a0 b0")
		o.give("x", 9) // a1 has the turn
		o.let(l, 9)
		for round := range slices.Chunk(slices.Clone(o.passed), 3) {
			slices.Sort(round)
			if got := round[0][:1] + round[1][:1] + round[2][:1]; got != "abx" {
				t.Errorf("passed: %q; want one of each of three", o.passed)
			}
		}
		o.passed = nil
		o.let(l, 9)
		o.wantPassed("x3")
		o.wantNobody()
	})
}

// A flow gains nothing by coming back in vain, however often.
func TestComesBackInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.own["x"] = 0
		for i := range 30 {
			o.join(l, fmt.Sprint("x", i), Ticket{Flow: "x", Weight: 3, Cost: WholeTurn / 10})
		}
		for range 300 {
			o.give("x", 0)
		}
		for i := range 30 {
			o.join(l, fmt.Sprint("a", i), Ticket{Flow: "a", Weight: 3, Cost: WholeTurn / 10})
		}
		o.give("x", 99)
		o.let(l, 20)
		count := map[byte]int{}
		for _, name := range o.passed {
			count[name[0]]++
		}
		if count['x'] < 9 || count['x'] > 11 {
			t.Errorf("passed: %q; want half of them to be x's", o.passed)
		}
		o.let(l, 99)
		o.wantNobody()
	})
}

// Waiters of a flow that are aside in several lines come back in the order of their arrival, or of
// their priorities.
func TestAsideInSeveralLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		lines := []*Line{o.line(), o.line(), o.line(), nil} // the last is the flow's own
		for _, l := range lines[:3] {
			o.open[l] = 99
		}
		o.own["x"], o.own["y"] = 0, 0
		for i, on := range []int{1, 3, 0, 2} {
			o.join(lines[on], fmt.Sprint("x", i), Ticket{Flow: "x", Cost: 1})
			o.join(lines[on], fmt.Sprint("y", i), Ticket{Flow: "y", Cost: 1})
		}
		o.give("x", 1)
		o.wantPassed("x0")
		o.join(lines[1], "high", Ticket{Flow: "x", Cost: 1, Priority: 1})
		o.join(lines[1], "late", Ticket{Flow: "x", Cost: 1})
		o.give("x", 1)
		o.wantPassed("high")
		o.give("x", 2)
		o.wantPassed("x1 x2")
		o.give("y", 1)
		o.wantPassed("y0")
		o.cancel("y1")
		o.give("y", 1)
		o.wantPassed("y2")
		o.give("x", 9)
		o.wantPassed("x3 late")
		o.give("y", 1)
		o.wantPassed("y3")
		o.wantNobody()
	})
}

// Of all waiters of a flow that are aside in several lines, only the first one asks.
func TestAsideOneAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.own["x"] = 0
		for i := range 20 {
			l := o.line()
			o.open[l] = 9
			o.join(l, fmt.Sprint(i), Ticket{Flow: "x", Cost: 1})
		}
		time.Sleep(3*time.Hour + time.Minute)
		synctest.Wait()
		if o.asks() != 4 {
			t.Errorf("asked %d times in three hours; want once, and every hour", o.asks())
		}
		o.give("x", 20)
		if len(o.passed) != 20 || o.asks() != 24 {
			t.Errorf("%d passed, asked %d times; want 20, 24", len(o.passed), o.asks())
		}
		o.wantNobody()
	})
}

// A waiter that has come back to a line that denies it waits for the line, and not for its flow's
// own limits: other calls of the flow do not wait for it.
func TestComesBackToAFullLine(t *testing.T) {
	for _, tt := range []struct {
		name string
		turn bool // somebody else has it
	}{{"with the turn", false}, {"in line", true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				full, free := o.line(), o.line()
				o.open[free] = 99
				o.own["x"] = 0
				o.join(full, "first", Ticket{Flow: "x", Cost: 1})
				if tt.turn {
					o.join(full, "other", Ticket{Flow: "a", Cost: 1})
				}
				o.join(free, "second", Ticket{Flow: "x", Cost: 1})
				o.wantPassed("")
				o.give("x", 9)
				o.wantPassed("second")
				if a, any := ahead(free, "x"); any {
					t.Errorf("%+v is ahead in a line where nobody waits", a)
				}
				o.join(free, "third", Ticket{Flow: "x", Cost: 1})
				o.wantPassed("third")
				o.let(full, 9)
				if tt.turn {
					o.wantPassed("other first")
				} else {
					o.wantPassed("first")
				}
				o.wantNobody()
			})
		})
	}
}

// Something is given back to a flow's own limits after a waiter was denied, and before it has
// stepped aside: it asks again at once.
func TestWakeWhileSteppingAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		start, asked := time.Now(), 0
		err := l.Wait(t.Context(), Ticket{Flow: "x", Cost: 1}, func() (Answer, error) {
			if asked++; asked > 1 {
				return Answer{Done: true}, nil
			}
			o.hall.Wake("x")
			return Answer{Again: time.Hour, Aside: true}, nil
		})
		if err != nil || time.Since(start) != 0 {
			t.Errorf("%v, after %v; want it to pass at once", err, time.Since(start))
		}
		o.wantNobody()
	})
}

// Something is given back to a line while the waiter that has the turn asks: it asks again at once.
func TestWakeWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		start, asked := time.Now(), 0
		err := l.Wait(t.Context(), Ticket{Flow: "x", Cost: 1}, func() (Answer, error) {
			if asked++; asked > 1 {
				return Answer{Done: true}, nil
			}
			l.Wake(true)
			return Answer{Again: time.Hour}, nil
		})
		if err != nil || time.Since(start) != 0 {
			t.Errorf("%v, after %v; want it to pass at once", err, time.Since(start))
		}
		o.wantNobody()
	})
}

// Flows that wait for their own limits do not wait for each other, even if the ask of one takes
// long.
func TestOwnLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		slow := make(chan bool)
		go o.hall.Wait(t.Context(), Ticket{Flow: "slow", Cost: 1}, func() (Answer, error) {
			<-slow
			return Answer{Done: true}, nil
		})
		synctest.Wait()
		o.join(nil, "behind-slow", Ticket{Flow: "slow", Cost: 1})
		start := time.Now()
		for i := range 50 {
			flow := fmt.Sprint(i)
			o.own[flow] = i % 2
			o.join(nil, flow+"-1", Ticket{Flow: flow, Cost: WholeTurn})
			o.join(nil, flow+"-2", Ticket{Flow: flow, Cost: WholeTurn})
		}
		if len(o.passed) != 25 {
			t.Errorf("%d have passed; want 25", len(o.passed))
		}
		for i := range 50 {
			o.give(fmt.Sprint(i), 2)
		}
		if len(o.passed) != 100 || time.Since(start) != 0 {
			t.Errorf("%d have passed, after %v; want all but who waits for slow, at once", len(o.passed), time.Since(start))
		}
		o.passed = nil
		close(slow)
		synctest.Wait()
		o.wantPassed("behind-slow")
		o.wantNobody()
	})
}

// While a call of a flow asks in one line, a later call of the flow does not ask in another: it could take what is left of
// the flow's own limits before the first one.
func TestOneOfAFlowAsksAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		slow, quick := o.line(), o.line()
		o.open[slow], o.open[quick], o.own["x"] = 9, 9, 2
		answer := make(chan bool)
		go slow.Wait(t.Context(), Ticket{Flow: "x", Cost: 1}, func() (Answer, error) {
			<-answer
			return o.ask(slow, "x", "first")
		})
		synctest.Wait()
		o.join(quick, "second", Ticket{Flow: "x", Cost: 1})
		o.wantPassed("")
		close(answer)
		synctest.Wait()
		o.wantPassed("first second")
		o.wantNobody()
	})
}
