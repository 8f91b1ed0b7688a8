package fair

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// tank is a limit of so much in any minute, and the waiters that ask it.
type tank struct {
	t     *testing.T
	line  *Line
	count int

	mu       sync.Mutex
	taken    []drop // the oldest first
	passed   []string
	overtook []string // of those that have passed
	tried    []string // to overtake
	due      map[string]time.Time
	late     []string // waiters that had the turn and passed later than they were told at first
	quit     context.CancelFunc
	ctx      context.Context
}

type drop struct {
	at time.Time
	n  int
}

func newTank(t *testing.T, count int) *tank {
	k := &tank{t: t, line: NewHall().NewLine(), count: count, due: map[string]time.Time{}}
	k.ctx, k.quit = context.WithCancel(context.Background())
	t.Cleanup(k.quit)
	return k
}

// free returns how much is free after a time, if nothing else passes.
func (k *tank) free(after time.Duration) int {
	n, at := k.count, time.Now().Add(after)
	for _, d := range k.taken {
		if at.Before(d.at.Add(time.Minute)) {
			n -= d.n
		}
	}
	return n
}

// ask takes n, or says when there is as much.
func (k *tank) ask(name string, n int) Answer {
	for _, d := range append([]drop{{at: time.Now().Add(-time.Minute)}}, k.taken...) {
		after := max(time.Until(d.at.Add(time.Minute)), 0)
		if k.free(after) < n {
			continue
		}
		if after > 0 {
			return Answer{Again: after, By: "tank"}
		}
		k.taken = append(k.taken, drop{time.Now(), n})
		k.passed = append(k.passed, name)
		return Answer{Done: true}
	}
	panic("never")
}

func (k *tank) ticket(name string, n int, t Ticket) Ticket {
	t.Cost = int64(n) * WholeTurn / int64(k.count)
	t.Call = n
	t.Overtake = func(first any, deniedFor time.Duration) (Answer, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.tried = append(k.tried, name)
		if k.free(deniedFor) < n+first.(int) {
			return Answer{Delays: true}, nil
		}
		a := k.ask(name, n)
		if a.Done {
			k.overtook = append(k.overtook, name)
		}
		return a, nil
	}
	return t
}

// join lets a call of n wait, and returns when it does or has passed.
func (k *tank) join(name string, n int, t Ticket) {
	go func() {
		err := k.line.Wait(k.ctx, k.ticket(name, n, t), func() (Answer, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			a := k.ask(name, n)
			if due, told := k.due[name]; a.Done && told && time.Now().After(due) {
				k.late = append(k.late, name)
			} else if !a.Done && !told {
				k.due[name] = time.Now().Add(a.Again)
			}
			return a, nil
		})
		if err != nil && k.ctx.Err() == nil {
			k.t.Error(err)
		}
	}()
	synctest.Wait()
}

// want checks which waiters have passed, have overtaken and have tried to since the last check.
func (k *tank) want(passed, overtook, tried string) {
	k.t.Helper()
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range []struct {
		what string
		got  *[]string
		want string
	}{{"passed", &k.passed, passed}, {"overtook", &k.overtook, overtook}, {"tried", &k.tried, tried}} {
		if got := strings.Join(*c.got, " "); got != c.want {
			k.t.Errorf("%s: %q; want %q", c.what, got, c.want)
		}
		*c.got = nil
	}
}

// While a large call gathers, small calls of other flows pass that fit beside it at its time. Of each
// flow the first tries, and no call tries that costs at least as much as one that was refused.
func TestSmallCallsOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTank(t, 100)
		k.join("old", 80, Ticket{Flow: "x"})
		k.want("old", "", "")
		time.Sleep(time.Second)
		k.join("large", 90, Ticket{Flow: "x"})
		k.join("b20", 20, Ticket{Flow: "b"})
		k.want("", "", "b20")
		k.join("c20", 20, Ticket{Flow: "c"})
		k.join("d95", 95, Ticket{Flow: "d"})
		k.want("", "", "") // as large as a call that would delay the first, and larger than it
		k.join("e6", 6, Ticket{Flow: "e"})
		k.join("x1", 1, Ticket{Flow: "x"})
		k.join("e1", 1, Ticket{Flow: "e"})
		k.join("f6", 6, Ticket{Flow: "f"})
		k.join("g2", 2, Ticket{Flow: "g"})
		k.want("e6 e1 g2", "e6 e1 g2", "e6 e1 f6 g2")
		time.Sleep(59 * time.Second)
		k.want("large x1", "", "")
		k.quit()
		synctest.Wait()
	})
}

// A call that fits beside the first one at its time, and not yet, tries again when it fits.
func TestOvertakesWhenItFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTank(t, 100)
		for _, n := range []int{50, 30, 20} {
			k.join("old", n, Ticket{Flow: "x"})
			time.Sleep(time.Second)
		}
		k.join("large", 60, Ticket{Flow: "x"})
		k.join("small", 20, Ticket{Flow: "a"})
		k.want("old old old", "", "small")
		time.Sleep(57*time.Second - 1)
		k.want("", "", "")
		time.Sleep(time.Nanosecond)
		k.want("small", "small", "small")
		time.Sleep(time.Second)
		k.want("large", "", "")
	})
}

// What is given back is offered to all again.
func TestOvertakesAfterAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTank(t, 100)
		k.join("old", 100, Ticket{Flow: "x"})
		k.join("large", 90, Ticket{Flow: "x"})
		k.join("small", 5, Ticket{Flow: "a"})
		k.want("old", "", "small")
		k.mu.Lock()
		k.taken[0].n = 90
		k.mu.Unlock()
		k.line.Wake(true)
		k.want("small", "small", "small")
		time.Sleep(time.Minute)
		k.want("large", "", "")
	})
}

// A flow of a lower rank does not overtake.
func TestDoesNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTank(t, 1000)
		k.join("old", 1000, Ticket{Flow: "x"})
		k.want("old", "", "")
		time.Sleep(30 * time.Second)
		k.mu.Lock()
		k.taken = []drop{{k.taken[0].at, 960}}
		k.mu.Unlock()
		k.join("large", 100, Ticket{Flow: "x", Rank: 1})
		k.join("low", 10, Ticket{Flow: "low"})
		k.want("", "", "")
		k.join("high", 10, Ticket{Flow: "high", Rank: 1})
		k.want("high", "high", "high")
		time.Sleep(30 * time.Second)
		k.want("large low", "", "")
	})
}

// Flows that overtake have their turns one after another.
func TestOvertakingGoesRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTank(t, 1000)
		k.join("old", 500, Ticket{Flow: "x"})
		k.mu.Lock()
		k.taken[0].n = 1000
		k.mu.Unlock()
		k.join("large", 900, Ticket{Flow: "x"})
		for _, flow := range []string{"a", "b"} {
			for i := range 3 {
				k.join(fmt.Sprint(flow, i), 10, Ticket{Flow: flow})
			}
		}
		k.want("old", "", "a0 b0")
		k.mu.Lock()
		k.taken[0].n = 960
		k.mu.Unlock()
		k.line.Wake(true)
		k.want("a0 b0 a1 b1", "a0 b0 a1 b1", "a0 b0 a1 b1 a2 b2")
		k.quit()
		synctest.Wait()
	})
}

// A call that does not wait overtakes once, or leaves no trace.
func TestTryOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTank(t, 100)
		try := func(name string, n int, want bool) {
			t.Helper()
			passed, err := k.line.TryOvertake(k.ticket(name, n, Ticket{Flow: name, Priority: 1}))
			if err != nil || passed != want {
				t.Errorf("%s: %t, %v; want %t", name, passed, err, want)
			}
		}
		try("nobody waits", 1, false)
		k.join("old", 80, Ticket{Flow: "x"})
		k.join("large", 90, Ticket{Flow: "x"})
		try("a", 11, false)
		try("x", 1, false)
		try("b", 10, true)
		k.want("old b", "b", "a b")
		time.Sleep(time.Minute)
		k.want("large", "", "")
		if k.line.Waiting() != 0 || len(k.line.flows) != 0 || k.line.overtaking != nil {
			t.Errorf("%d wait, of %d flows", k.line.Waiting(), len(k.line.flows))
		}
	})
}

// Whatever calls of one rank come, in whatever order, the call that has the turn passes no later than it would if no
// call overtook it. And no call that may overtake is forgotten.
func TestOvertakingDelaysNobody(t *testing.T) {
	overtook := 0
	seeds := testkit.Rounds(100, 300)
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			k := newTank(t, 1000)
			calls := 0
			for range 60 {
				n := 1 + random.IntN([]int{10, 100, 1000}[random.IntN(3)])
				k.join(fmt.Sprint(calls), n, Ticket{Flow: string(rune('a' + random.IntN(6))), Weight: 1 + random.IntN(3)})
				calls++
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
				}
				synctest.Wait()
				k.wantNoneForgotten(seed)
			}
			time.Sleep(3 * time.Hour)
			synctest.Wait()
			if len(k.passed) != calls || len(k.late) > 0 {
				t.Errorf("seed %d: %d of %d have passed; late: %v", seed, len(k.passed), calls, k.late)
			}
			if k.line.overtaking != nil || k.line.turn != nil {
				t.Errorf("seed %d: %v overtakes, %v has the turn", seed, k.line.overtaking, k.line.turn)
			}
			overtook += len(k.overtook)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of %d calls overtook", overtook, seeds*60)
	if overtook < seeds {
		t.Errorf("%d calls overtook; want more, or this shows nothing", overtook)
	}
}

// wantNoneForgotten checks that no call waits that may overtake.
func (k *tank) wantNoneForgotten(seed uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.line.hall.mu.Lock()
	defer k.line.hall.mu.Unlock()
	l := k.line
	if l.turn == nil || l.gathering != l.turn {
		return
	}
	for name, f := range l.flows {
		w := f.first()
		if w == l.turn || f.rank != l.turn.flow.rank || !l.mayOvertake(w) {
			continue
		}
		if n := w.Call.(int); n <= k.free(0) && n+l.turn.Call.(int) <= k.free(time.Until(l.due)) {
			k.t.Errorf("seed %d: a call of %d of %s waits, and may overtake", seed, n, name)
		}
	}
	if !slices.IsSortedFunc(k.taken, func(a, b drop) int { return a.at.Compare(b.at) }) {
		k.t.Errorf("seed %d: %v", seed, k.taken)
	}
}
