package line

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Fifty come and go as they like, ask and are denied, step aside, are woken and give
// up: all of them pass or give up in the end, never do two ask in one line at a
// time, and nothing is left.
func TestStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		lines := []*Line{o.line(), o.line(), o.line()}
		asking := make([]atomic.Int32, len(lines))
		broken := errors.New("broken")
		var over atomic.Bool
		var passed, crowded, gaveUp, failed atomic.Int64
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				for range 40 {
					i := rand.IntN(len(lines) + 1)
					ticket := Ticket{
						Flow: string(rune('a' + rand.IntN(5))), Weight: 1 + rand.IntN(4), Priority: rand.IntN(2),
						Cost: 1 + rand.Int64N(Whole), Most: rand.IntN(3) * 5,
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
						switch rand.IntN(10) {
						case 0:
							return Answer{}, broken
						case 1, 2, 3:
							return Answer{Done: true}, nil
						case 4, 5, 6:
							return Answer{Again: again}, nil
						default:
							return Answer{Again: again, Aside: true}, nil
						}
					}
					wait := o.hall.Wait
					if i < len(lines) {
						wait = lines[i].Wait
						lines[i].Ahead(ticket.Flow)
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
				switch rand.IntN(3) {
				case 0:
					lines[rand.IntN(len(lines))].Wake()
				case 1:
					o.hall.Wake(string(rune('a' + rand.IntN(5))))
				default:
					o.hall.WakeAll()
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
		time.Sleep(time.Second)
		o.wantNobody()
	})
}
