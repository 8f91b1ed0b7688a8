package fair

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A call of a higher priority that comes meanwhile asks when the one does for which its group rests.
func TestAGroupDoesNotRestForACallThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := NewHall().NewLine(), time.Now()
		wait := func(priority int, answers ...Answer) {
			go l.Wait(t.Context(), Ticket{Flow: "a/1", Groups: []string{"a"}, Weight: 1, Priority: priority}, func() (Answer, error) {
				a := answers[0]
				answers = answers[1:]
				return a, nil
			})
			synctest.Wait()
		}
		wait(0, Answer{Yield: true, Group: "a", Again: time.Second}, Answer{Done: true})
		wait(1, Answer{Done: true})
		for l.Waiting() > 0 && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if waited := time.Since(began); waited > 2*time.Second {
			t.Errorf("they have waited for %v", waited)
		}
	})
}

// Flows of a group that its share denies have no turns until the call that was denied asks again, or leaves. Others have
// theirs meanwhile.
func TestFlowsOfAGroupRestTogether(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var (
				l     = NewHall().NewLine()
				mu    sync.Mutex
				asked []string
				began = time.Now()
			)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			wait := func(ctx context.Context, flow string, groups []string, denied int) {
				go l.Wait(ctx, Ticket{Flow: flow, Groups: groups, Weight: 1}, func() (Answer, error) {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, flow+" "+time.Since(began).String())
					if denied--; denied >= 0 {
						return Answer{Yield: true, Group: "a", Again: time.Second}, nil
					}
					return Answer{Done: true}, nil
				})
				synctest.Wait()
			}
			wait(ctx, "a/1", []string{"a"}, 1)
			wait(t.Context(), "a/2", []string{"a"}, 0)
			wait(t.Context(), "b", nil, 0)
			time.Sleep(time.Second / 2)
			want := []string{"a/1 0s", "a/1 1s", "a/2 1s", "b 0s"} // whichever of the group comes first
			if leaves {
				leave()
				want = []string{"a/1 0s", "a/2 500ms", "b 0s"}
			}
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			slices.Sort(asked)
			if !slices.Equal(asked, want) {
				t.Errorf("asked %q; want %q", asked, want)
			}
			mu.Unlock()
			if n := l.Waiting(); n != 0 {
				t.Errorf("%d still wait", n)
			}
		})
	}
}

// A flow that has yielded many times keeps the turn that it has not used, and no more. Otherwise a project that its share
// has denied for a while would have many turns in a row, and the others would wait.
func TestAFlowThatYieldsSavesNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l, denied := o.line(), 20
		go l.Wait(t.Context(), Ticket{Flow: "a", Cost: quantum}, func() (Answer, error) {
			if denied--; denied >= 0 {
				return Answer{Yield: true, Again: time.Second}, nil
			}
			return o.ask(l, "a", "a1")
		})
		synctest.Wait()
		o.join(l, "a2", Ticket{Flow: "a", Cost: quantum})
		o.join(l, "a3", Ticket{Flow: "a", Cost: quantum})
		time.Sleep(time.Minute)
		for _, name := range []string{"b1", "b2", "b3"} {
			o.join(l, name, Ticket{Flow: "b", Cost: quantum})
		}
		o.let(l, 6)
		o.wantPassed("a1 a2 b1 a3 b2 b3")
		o.wantNobody()
	})
}
