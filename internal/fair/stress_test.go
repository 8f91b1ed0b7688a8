package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Fifty calls come and go, ask and are denied, step aside, are woken and give up. All of them pass or
// give up in the end, no two have the turn in one line at the same time, and no trace is left.
func TestStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		lines := []*Line{o.line(), o.line(), o.line()}
		asking := make([]atomic.Int32, len(lines))
		broken := errors.New("broken")
		var over atomic.Bool
		var passed, crowded, gaveUp, failed, overtaking atomic.Int64
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				for range 40 {
					i := rand.IntN(len(lines) + 1)
					ticket := Ticket{
						Flow: string(rune('a' + rand.IntN(5))), Rank: rand.IntN(3), Weight: 1 + rand.IntN(4), Priority: rand.IntN(2),
						Cost: 1 + rand.Int64N(WholeTurn), MaxWaiting: rand.IntN(3) * 5,
					}
					if ticket.Flow < "c" {
						ticket.Groups = []string{"ab"}
					}
					ticket.Call, ticket.Overtake = i, func(any, time.Duration) (Answer, error) {
						overtaking.Add(1)
						time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
						return [...]Answer{{Done: true}, {Delays: true}, {Again: time.Millisecond}, {Again: time.Second, Aside: true}}[rand.IntN(4)], nil
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(2000))*time.Millisecond)
					ask := func() (Answer, error) {
						if i < len(lines) {
							if asking[i].Add(1) > 1 {
								t.Error("two ask at a time")
							}
							defer asking[i].Add(-1)
						}
						again := time.Duration(1+rand.IntN(100)) * time.Millisecond
						switch rand.IntN(12) {
						case 0:
							return Answer{}, broken
						case 1, 2, 3:
							return Answer{Done: true}, nil
						case 4, 5, 6:
							return Answer{Again: again}, nil
						case 7, 8:
							return Answer{Again: again, Yield: true, Held: rand.IntN(2) == 0, Group: strings.Join(ticket.Groups, "")}, nil
						default:
							return Answer{Again: again, Aside: true}, nil
						}
					}
					wait := o.hall.Wait
					if i < len(lines) {
						wait = lines[i].Wait
						ahead(lines[i], ticket.Flow)
					}
					switch err := wait(ctx, ticket, ask); {
					case err == nil:
						passed.Add(1)
					case errors.Is(err, ErrCrowded):
						crowded.Add(1)
					case errors.Is(err, context.DeadlineExceeded):
						gaveUp.Add(1)
					case err == broken:
						failed.Add(1)
					default:
						t.Errorf("%v", err)
					}
					cancel()
					time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
				}
			})
		}
		go func() {
			for !over.Load() {
				if rand.IntN(2) == 0 {
					lines[rand.IntN(len(lines))].Wake(true)
					lines[rand.IntN(len(lines))].Wake(false)
				} else {
					o.hall.Wake(string(rune('a' + rand.IntN(5))))
				}
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			}
		}()
		group.Wait()
		over.Store(true)
		all := passed.Load() + crowded.Load() + gaveUp.Load() + failed.Load()
		if all != 2000 || min(passed.Load(), crowded.Load(), gaveUp.Load(), failed.Load()) == 0 {
			t.Errorf("%d passed, %d were too many, %d gave up, %d failed; want 2000, and some of each", passed.Load(), crowded.Load(), gaveUp.Load(), failed.Load())
		}
		if overtaking.Load() == 0 {
			t.Error("nobody has tried to overtake")
		}
		time.Sleep(time.Second)
		o.wantNobody()
	})
}

// No waiter goes on waiting that could pass, whatever is given back, and whenever. The worst time to give something
// back is when a waiter was denied and does not know it yet: half of what it lacks is given back then. In half of the
// rounds one thing happens after another, and in the others everything at the same time.
func TestNoWakeIsLost(t *testing.T) {
	for round := range testkit.Rounds(100, 1000) {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t)
			lines, flows := []*Line{o.line(), o.line(), nil}, []string{"a", "b", "c"}
			for _, flow := range flows {
				o.own[flow] = 0
			}
			giveBack := func(l *Line, flow string) {
				if l == nil {
					o.raiseOwn(flow, 1)
				} else {
					o.raise(l, 1)
				}
			}
			o.denied = func(l *Line, flow string) {
				if rand.IntN(2) == 0 {
					giveBack(l, flow)
				}
			}
			check := func() {
				if round%2 == 0 {
					o.wantNoneAsleep()
				}
			}
			const many = 24
			for i := range many {
				o.start(lines[rand.IntN(3)], fmt.Sprint(i), Ticket{
					Flow: flows[rand.IntN(3)], Rank: rand.IntN(2), Weight: 1 + rand.IntN(3), Cost: 1 + rand.Int64N(WholeTurn), Priority: rand.IntN(2),
					Call: i, Overtake: func(any, time.Duration) (Answer, error) { return Answer{Delays: true}, nil },
				})
				check()
			}
			for range 5 * many {
				giveBack(lines[rand.IntN(3)], flows[rand.IntN(3)])
				check()
			}
			o.wantNoneAsleep()
			for _, l := range lines[:2] {
				o.let(l, many)
			}
			for _, flow := range flows {
				o.give(flow, many)
			}
			if len(o.passed) != many {
				t.Errorf("%d of %d have passed", len(o.passed), many)
			}
			o.wantNobody()
		})
		if t.Failed() {
			return
		}
	}
}

// wantNoneAsleep checks that none of the waiters passes that are woken now for no reason.
func (o *office) wantNoneAsleep() {
	o.t.Helper()
	synctest.Wait()
	denied, before := o.denied, len(o.passed)
	o.denied = nil
	for l := range o.open {
		l.Wake(true)
	}
	for flow := range o.own {
		o.hall.Wake(flow)
	}
	synctest.Wait()
	if late := o.passed[before:]; len(late) > 0 {
		o.t.Fatalf("%q have slept, although they could have passed", late)
	}
	o.denied = denied
}
