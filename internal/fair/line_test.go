package fair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// Each waiter waits on its own goroutine, so none is left when all have passed or given up.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// office is a hall, and the limits that its waiters ask: those of each line, and those of each flow.
type office struct {
	t    *testing.T
	hall *Hall

	mu     sync.Mutex
	open   map[*Line]int              // how many more a line lets pass; a flow's own line lets all pass
	own    map[string]int             // how many more a flow may have; a missing flow: any number
	again  time.Duration              // when a denied waiter is told to ask again
	denied func(l *Line, flow string) // is called when a limit has denied a waiter that does not know it yet: that of the line or, if l is nil, of the flow
	asking map[*Line]int
	asked  int
	passed []string
	errs   map[string]error
	quit   map[string]context.CancelFunc
}

func newOffice(t *testing.T) *office {
	o := &office{
		t: t, again: time.Hour, hall: NewHall(), open: map[*Line]int{}, own: map[string]int{}, asking: map[*Line]int{},
		errs: map[string]error{}, quit: map[string]context.CancelFunc{},
	}
	t.Cleanup(func() {
		for _, quit := range o.quit {
			quit()
		}
	})
	return o
}

// line returns a line that lets nothing pass yet.
func (o *office) line() *Line {
	l := o.hall.NewLine()
	o.open[l] = 0
	return l
}

// ask asks the limits, and records the name if it has passed. A nil line is a flow's own.
func (o *office) ask(l *Line, flow, name string) (Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	if l != nil {
		o.asking[l]++
		if o.asking[l] > 1 {
			o.t.Errorf("%s asks, and is not the only one", name)
		}
		o.mu.Unlock() // lets others ask, if they may
		o.mu.Lock()
		defer func() { o.asking[l]-- }()
	}
	left, limited := o.own[flow]
	switch {
	case limited && left == 0:
		return o.deny(nil, flow, Answer{Again: o.again, Aside: true, By: "own"}), nil
	case l != nil && o.open[l] == 0:
		return o.deny(l, flow, Answer{Again: o.again, By: "line"}), nil
	}
	if limited {
		o.own[flow]--
	}
	if l != nil {
		o.open[l]--
	}
	o.passed = append(o.passed, name)
	return Answer{Done: true}, nil
}

// deny returns the answer to a waiter that is denied. The caller holds mu.
func (o *office) deny(l *Line, flow string, a Answer) Answer {
	if o.denied != nil {
		o.mu.Unlock()
		defer o.mu.Lock()
		o.denied(l, flow)
	}
	return a
}

// join puts a waiter into a line, and returns when it waits or has passed.
func (o *office) join(l *Line, name string, t Ticket) {
	o.t.Helper()
	o.start(l, name, t)
	synctest.Wait()
}

// start is join without the wait.
func (o *office) start(l *Line, name string, t Ticket) {
	ctx, cancel := context.WithCancel(context.Background())
	o.mu.Lock()
	o.quit[name] = cancel
	o.mu.Unlock()
	wait := o.hall.Wait
	if l != nil {
		wait = l.Wait
	}
	go func() {
		err := wait(ctx, t, func() (Answer, error) { return o.ask(l, t.Flow, name) })
		o.mu.Lock()
		defer o.mu.Unlock()
		o.errs[name] = err
	}()
}

// let raises the limit of a line by n, and returns when all wait or have passed.
func (o *office) let(l *Line, n int) {
	o.raise(l, n)
	synctest.Wait()
}

// raise is let without the wait.
func (o *office) raise(l *Line, n int) {
	o.mu.Lock()
	o.open[l] += n
	o.mu.Unlock()
	l.Wake(true)
}

// give raises the limit of a flow by n, and returns when all wait or have passed.
func (o *office) give(flow string, n int) {
	o.raiseOwn(flow, n)
	synctest.Wait()
}

// raiseOwn is give without the wait.
func (o *office) raiseOwn(flow string, n int) {
	o.mu.Lock()
	o.own[flow] += n
	o.mu.Unlock()
	o.hall.Wake(flow)
}

// cancel lets some waiters give up.
func (o *office) cancel(names ...string) {
	for _, name := range names {
		o.quit[name]()
	}
	synctest.Wait()
}

// wantPassed checks that these waiters have passed since the last check, in this order. The names
// are separated by spaces.
func (o *office) wantPassed(names string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if got := strings.Join(o.passed, " "); got != names {
		o.t.Fatalf("passed: %q; want %q", got, names)
	}
	o.passed = nil
}

// asks returns how often ask was called.
func (o *office) asks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// ahead returns what comes before a new call of a flow.
func ahead(l *Line, flow string) (Ahead, bool) {
	if a, waiting := l.hall.Ahead(flow); waiting {
		return a, true
	}
	return l.Ahead(flow, 0)
}

// wantNobody checks that no trace of any waiter is left.
func (o *office) wantNobody() {
	o.t.Helper()
	synctest.Wait()
	h := o.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.aside) != 0 || len(h.ownWaits) != 0 || len(h.own) != 0 || len(h.asking) != 0 || h.busy.Load() != 0 {
		o.t.Errorf("the hall has %d aside, %d flows that wait for their own limits, %d own lines, %d asking (%d); want none",
			len(h.aside), len(h.ownWaits), len(h.own), len(h.asking), h.busy.Load())
	}
	for l := range o.open {
		if len(l.flows) != 0 || l.yielded.Len() != 0 || len(l.ready) != 0 || l.turn != nil || l.overtaking != nil || l.denying || l.waiting.Load() != 0 {
			o.t.Errorf("a line has %d flows, %d ready, %d waiting, turn %v; want none", len(l.flows), len(l.ready), l.waiting.Load(), l.turn)
		}
	}
}

// Within a flow it is first come, first served, whatever the turns cost.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprint(i))
			o.join(l, names[i], Ticket{Flow: "a", Cost: []int64{1, WholeTurn, WholeTurn / 3}[i%3]})
		}
		if l.Waiting() != 40 {
			t.Errorf("%d wait; want 40", l.Waiting())
		}
		for i := 0; i < 40; i += 5 {
			o.let(l, 5)
			o.wantPassed(strings.Join(names[i:i+5], " "))
		}
		o.wantNobody()
	})
}

// The waiter that has the turn asks once, and then at the time that it was given. The others do not
// ask.
func TestOneAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		for i := range 30 {
			o.join(l, fmt.Sprint(i), Ticket{Flow: string(rune('a' + i%3)), Cost: 1})
		}
		if o.asks() != 1 {
			t.Errorf("asked %d times; want once", o.asks())
		}
		time.Sleep(5*time.Hour + time.Minute)
		synctest.Wait()
		if o.asks() != 6 {
			t.Errorf("asked %d times in five hours; want once more every hour", o.asks())
		}
		o.mu.Lock()
		o.open[l] = 30
		o.mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		if o.asks() != 36 || len(o.passed) != 30 {
			t.Errorf("asked %d times, %d passed; want each to have asked once", o.asks(), len(o.passed))
		}
		o.wantNobody()
	})
}

// Within a flow a higher priority comes first, whatever has the turn meanwhile. A priority does not
// count between flows.
func TestPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.join(l, "has-the-turn", Ticket{Flow: "a", Cost: WholeTurn})
		o.join(l, "low", Ticket{Flow: "a", Cost: WholeTurn, Priority: -1})
		o.join(l, "high", Ticket{Flow: "a", Cost: WholeTurn, Priority: 2})
		o.join(l, "high-too", Ticket{Flow: "a", Cost: WholeTurn, Priority: 2})
		o.join(l, "middle", Ticket{Flow: "a", Cost: WholeTurn, Priority: 1})
		o.let(l, 1)
		o.wantPassed("high")
		o.join(l, "highest", Ticket{Flow: "a", Cost: WholeTurn, Priority: 9})
		o.join(l, "other", Ticket{Flow: "b", Cost: WholeTurn, Priority: -9})
		o.let(l, 2)
		o.wantPassed("highest other")
		o.let(l, 9)
		o.wantPassed("high-too middle has-the-turn low")
		o.wantNobody()
	})
}

// A waiter of a higher priority comes before one that is aside, and is denied for itself.
func TestPriorityWhileAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.own["a"] = 0
		o.join(l, "first", Ticket{Flow: "a", Cost: 1})
		o.join(l, "second", Ticket{Flow: "a", Cost: 1})
		o.join(l, "high", Ticket{Flow: "a", Cost: 1, Priority: 1})
		if o.asks() != 2 {
			t.Errorf("asked %d times; want the first and the high one to have", o.asks())
		}
		o.open[l] = 9
		o.give("a", 1)
		o.wantPassed("high")
		o.join(l, "another", Ticket{Flow: "a", Cost: 1, Priority: 1})
		o.cancel("another")
		o.give("a", 2)
		o.wantPassed("first second")
		o.wantNobody()
	})
}

// While a waiter asks, one of a higher priority comes: the first loses its turn only if it is
// denied.
func TestPriorityWhileAsking(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer Answer
		want   string
	}{
		{"passes", Answer{Done: true}, "first high"},
		{"denied", Answer{Again: time.Hour}, "high first"},
		{"aside", Answer{Again: time.Hour, Aside: true}, "high first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				l := o.line()
				inside, goOn := make(chan bool), make(chan bool)
				asked := 0
				go l.Wait(t.Context(), Ticket{Flow: "a", Cost: 1}, func() (Answer, error) {
					if asked++; asked == 1 {
						close(inside)
						<-goOn
						if tt.answer.Done {
							o.passed = append(o.passed, "first")
						}
						return tt.answer, nil
					}
					return o.ask(l, "a", "first")
				})
				<-inside
				o.join(l, "high", Ticket{Flow: "a", Cost: 1, Priority: 1})
				o.open[l] = 9
				close(goOn)
				synctest.Wait()
				o.wantPassed(tt.want)
				o.wantNobody()
			})
		})
	}
}

// Exactly MaxWaiting calls of a flow may wait. Other flows and lines are not affected.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l, other := o.line(), o.line()
		ticket := Ticket{Flow: "a", Cost: 1, MaxWaiting: 2}
		o.join(l, "1", ticket)
		o.join(l, "2", ticket)
		for _, priority := range []int{0, 5} {
			ticket.Priority = priority
			err := l.Wait(t.Context(), ticket, func() (Answer, error) { return o.ask(l, "a", "crowded") })
			if !errors.Is(err, ErrCrowded) || !strings.Contains(err.Error(), "2") {
				t.Errorf("%v; want %v, and how many", err, ErrCrowded)
			}
		}
		ticket.Priority = 0
		o.join(other, "another-line", ticket)
		o.join(l, "any", Ticket{Flow: "a", Cost: 1})
		ticket.Flow = "b"
		o.join(l, "another-flow", ticket)
		if l.Waiting() != 4 || other.Waiting() != 1 {
			t.Errorf("%d and %d wait; want 4 and 1", l.Waiting(), other.Waiting())
		}
		o.cancel("2", "any")
		ticket.Flow = "a"
		o.join(l, "there-is-room", ticket)
		o.let(l, 9)
		o.let(other, 9)
		if len(o.passed) != 4 || o.errs["there-is-room"] != nil {
			t.Errorf("passed %q; want 4, %v", o.passed, o.errs)
		}
		o.wantNobody()
	})
}

// An error of ask ends that waiter alone, and the next has its turn.
func TestFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		broken := errors.New("broken")
		o.join(l, "1", Ticket{Flow: "a", Cost: 1})
		errs := make(chan error, 1)
		go func() {
			errs <- l.Wait(t.Context(), Ticket{Flow: "a", Cost: WholeTurn, Priority: 1}, func() (Answer, error) { return Answer{}, broken })
		}()
		if err := <-errs; err != broken {
			t.Errorf("%v; want %v", err, broken)
		}
		synctest.Wait()
		if l.Waiting() != 1 {
			t.Errorf("%d wait; want 1", l.Waiting())
		}
		o.let(l, 1)
		o.wantPassed("1")
		o.wantNobody()
	})
}

// A waiter that gives up, at any position in the line, leaves no trace, and the others go on in order.
func TestGivesUp(t *testing.T) {
	for _, tt := range []struct {
		name, who string
		rest      string
	}{
		{"with the turn", "a1", "a2 b1 b2"}, // its flow has gained a turn, and keeps it
		{"next", "b1", "a1 b2 a2"},
		{"in line", "a2", "a1 b1 b2"},
		{"last", "b2", "a1 b1 a2"},
		{"aside", "x1", "a1 b1 a2 b2"},
		{"behind a waiter that is aside", "x2", "a1 b1 a2 b2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				l := o.line()
				o.own["x"] = 0
				for _, name := range []string{"x1", "x2", "a1", "b1", "a2", "b2"} {
					o.join(l, name, Ticket{Flow: name[:1], Cost: WholeTurn})
				}
				time.Sleep(time.Minute)
				o.cancel(tt.who)
				err := o.errs[tt.who]
				if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "ratelimit: ") {
					t.Errorf("%v; want %v", err, context.Canceled)
				}
				if told := strings.Contains(fmt.Sprint(err), "1h0m0s"); told != (tt.who == "x1" || tt.who == "a1") {
					t.Errorf("%v; want it to say what it was told, if it was", err)
				}
				if l.Waiting() != 5 {
					t.Errorf("%d wait; want 5", l.Waiting())
				}
				o.let(l, 99)
				o.wantPassed(tt.rest)
				o.give("x", 2)
				o.wantPassed(strings.Join(slices.DeleteFunc([]string{"x1", "x2"}, func(s string) bool { return s == tt.who }), " "))
				o.wantNobody()
			})
		})
	}
}

// With a context that has already ended, a call may pass at once, but does not wait.
func TestContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o.join(l, "1", Ticket{Flow: "a", Cost: 1})
		err := l.Wait(ctx, Ticket{Flow: "b", Cost: 1}, func() (Answer, error) { return o.ask(l, "b", "2") })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v; want %v", err, context.DeadlineExceeded)
		}
		err = l.Wait(ctx, Ticket{Flow: "b", Cost: 1}, func() (Answer, error) { return o.ask(l, "b", "3") })
		if !errors.Is(err, context.DeadlineExceeded) || l.Waiting() != 1 {
			t.Errorf("%v, %d wait", err, l.Waiting())
		}
		o.cancel("1")
		o.wantNobody()
	})
}

// A wake without a reason changes nothing.
func TestSpuriousWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l, other := o.line(), o.line()
		o.own["x"] = 0
		wake := func() {
			for range 3 {
				l.Wake(true)
				other.Wake(true)
				o.hall.Wake("x")
				o.hall.Wake("a")
				o.hall.Wake("nobody")
				for _, f := range l.flows {
					for e := f.waiters.Front(); e != nil; e = e.Next() {
						e.Value.(*waiter).wake()
					}
				}
				synctest.Wait()
			}
		}
		wake()
		for _, name := range []string{"x1", "a1", "b1", "a2", "x2", "b2"} {
			o.join(l, name, Ticket{Flow: name[:1], Cost: WholeTurn})
			wake()
		}
		if l.Waiting() != 6 || len(o.passed) != 0 {
			t.Errorf("%d wait, %q passed", l.Waiting(), o.passed)
		}
		o.let(l, 2)
		wake()
		o.wantPassed("a1 b1")
		o.let(l, 9)
		wake()
		o.wantPassed("a2 b2")
		o.give("x", 2)
		wake()
		o.wantPassed("x1 x2")
		o.wantNobody()
	})
}

// Ahead reports the waiting calls that come before a new one.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l, other := o.line(), o.line()
		want := func(what string, a Ahead, any bool, wantAhead Ahead, wantAny bool) {
			t.Helper()
			if !wantAny && !any {
				return
			}
			if a != wantAhead || any != wantAny {
				t.Errorf("%s: %+v, %t; want %+v, %t", what, a, any, wantAhead, wantAny)
			}
		}
		check := func(l *Line, flow string, wantAhead Ahead, wantAny bool) {
			t.Helper()
			a, any := ahead(l, flow)
			want("line, "+flow, a, any, wantAhead, wantAny)
		}
		check(l, "a", Ahead{}, false)
		o.own["x"] = 0
		o.join(l, "x1", Ticket{Flow: "x", Cost: 1})
		time.Sleep(10 * time.Minute)
		own := Ahead{Again: 50 * time.Minute, By: "own", Own: true}
		check(l, "x", own, true)
		check(other, "x", own, true)
		check(l, "a", Ahead{}, false)
		a, any := o.hall.Ahead("x")
		want("hall", a, any, own, true)
		a, any = o.hall.Ahead("a")
		want("hall", a, any, Ahead{}, false)
		o.join(l, "a1", Ticket{Flow: "a", Cost: 1})
		time.Sleep(10 * time.Minute)
		check(l, "a", Ahead{Again: 50 * time.Minute, By: "line"}, true)
		check(l, "b", Ahead{Again: 50 * time.Minute, By: "line"}, true)
		check(other, "a", Ahead{}, false)
		check(l, "x", Ahead{Again: 40 * time.Minute, By: "own", Own: true}, true)
		a, any = o.hall.Ahead("a")
		want("hall", a, any, Ahead{}, false)
		o.cancel("a1", "x1")
		check(l, "a", Ahead{}, false)
		check(l, "x", Ahead{}, false)
		o.wantNobody()
	})
}

// New calls must wait from the first denial of a line until all waiters that it has denied have passed.
// A waiter that only tries, for the first time or again after it was aside, does not make other flows
// wait.
func TestHeld(t *testing.T) {
	for _, tt := range []struct {
		name    string
		denied  bool     // before it came
		answers []Answer // the last is done
		blocked []bool   // as it asks
	}{
		{"passes at once", false, []Answer{{Done: true}}, []bool{false}},
		{"was denied before", true, []Answer{{Done: true}}, []bool{true}},
		{"denied", false, []Answer{{Again: 1}, {Again: 1}, {Done: true}}, []bool{false, true, true}},
		{"aside", false, []Answer{{Again: 1, Aside: true}, {Again: 1, Aside: true}, {Done: true}}, []bool{false, false, false}},
		{"aside, then denied", false, []Answer{{Again: 1, Aside: true}, {Again: 1}, {Done: true}}, []bool{false, false, true}},
		{"denied, then aside", false, []Answer{{Again: 1}, {Again: 1, Aside: true}, {Again: 1}, {Done: true}}, []bool{false, true, false, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				l := o.line()
				asked := 0
				err := l.Wait(t.Context(), Ticket{Flow: "a", Cost: 1, Denied: tt.denied}, func() (Answer, error) {
					if _, blocked := ahead(l, "b"); blocked != tt.blocked[asked] {
						t.Errorf("at %d, blocked is %t; want %t", asked, blocked, tt.blocked[asked])
					}
					asked++
					return tt.answers[asked-1], nil
				})
				if err != nil || asked != len(tt.answers) {
					t.Errorf("%v, asked %d times", err, asked)
				}
				if _, blocked := ahead(l, "b"); blocked {
					t.Error("blocked when all have passed")
				}
				o.wantNobody()
			})
		})
	}
}

// After a waiter has passed, new calls must still wait for the next one, which may have to wait for
// the same limit.
func TestHeldForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.join(l, "first", Ticket{Flow: "a", Cost: 1})
		blocked := false
		go l.Wait(t.Context(), Ticket{Flow: "b", Cost: 1}, func() (Answer, error) {
			_, blocked = ahead(l, "c")
			return Answer{Done: true}, nil
		})
		synctest.Wait()
		o.let(l, 1)
		o.wantPassed("first")
		if !blocked {
			t.Error("a new call may pass before the next waiter")
		}
		o.wantNobody()
	})
}

// When a waiter that the line has denied has the turn again, new calls must wait, whatever the answers
// to the waiters in between were.
func TestHeldByWhoWasDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		var blocked []bool
		go l.Wait(t.Context(), Ticket{Flow: "a", Cost: 1}, func() (Answer, error) {
			_, is := ahead(l, "b")
			blocked = append(blocked, is)
			return Answer{Again: time.Hour, Done: len(blocked) == 2}, nil
		})
		synctest.Wait()
		o.own["a"] = 0
		o.join(l, "high", Ticket{Flow: "a", Cost: 1, Priority: 1})
		if _, is := ahead(l, "b"); is {
			t.Error("a waiter that is aside blocks new calls")
		}
		o.cancel("high")
		if !slices.Equal(blocked, []bool{false, true}) {
			t.Errorf("blocked as it asked: %v; want false, then true", blocked)
		}
		o.wantNobody()
	})
}
