package limit

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Decisions on other keys forget the keys that are not used any more, and free their
// memory.
func TestSweepForgetsFullCounters(t *testing.T) {
	tests := []struct {
		keys   int
		limits []Limit
	}{
		{testkit.Rounds(20_000, 100_000), []Limit{PerMinute(10)}},
		{5_000, []Limit{PerMinute(10), PerHour(1000)}},
		{5_000, []Limit{PerMinute(10).Using(SlidingLog)}},
		{5_000, []Limit{PerMinute(10).Using(FixedWindow)}},
		{5_000, []Limit{PerMinute(10).Using(SlidingCounter)}},
	}
	for _, test := range tests {
		inBubble(t, fmt.Sprint(test.limits), func(t *testing.T) {
			l := NewLimiter(itself[int], test.limits...)
			for key := range test.keys {
				l.Allow(key)
			}
			if l.Len() != test.keys {
				t.Fatalf("Len is %d with %d keys in use", l.Len(), test.keys)
			}
			grown := slotsOf(l)
			time.Sleep(5 * time.Minute)
			for range 3000 {
				l.Allow(0)
				time.Sleep(time.Millisecond)
			}
			if l.Len() > 20 {
				t.Errorf("Len is %d with one key in use", l.Len())
			}
			if got := slotsOf(l); got > grown/20 {
				t.Errorf("%d slots of %d are left", got, grown)
			}
		})
	}
}

func slotsOf[In any, K comparable](l *Limiter[In, K]) int {
	if l.parts[0].book.words != nil {
		return tableSlots(l.parts[0].book.words)
	}
	return tableSlots(l.parts[0].book.cells)
}

// Every method of a limiter sweeps, and needs no time between decisions for it: after a time without decisions, those
// on a busy key catch up on the sweeps that were missed.
func TestEveryDoorSweeps(t *testing.T) {
	doors := map[string]func(l *Limiter[int, int]){
		"Allow":    func(l *Limiter[int, int]) { l.Allow(0) },
		"denied":   func(l *Limiter[int, int]) { l.AllowN(0, 10) },
		"Take":     func(l *Limiter[int, int]) { l.Take(0, 1) },
		"Peek":     func(l *Limiter[int, int]) { l.Peek(0) },
		"Reserve":  func(l *Limiter[int, int]) { l.Reserve(0) },
		"Combined": func(l *Limiter[int, int]) { Combine[int](l).Allow(0) },
	}
	for name, door := range doors {
		for _, limits := range [][]Limit{{PerMinute(10)}, {PerMinute(10), roomy}} {
			inBubble(t, fmt.Sprintf("%s %d", name, len(limits)), func(t *testing.T) {
				l := NewLimiter(itself[int], limits...)
				for key := range 3000 {
					l.Allow(key)
				}
				time.Sleep(time.Hour)
				for range 200 {
					door(l)
				}
				if l.Len() > 50 {
					t.Errorf("Len is %d with one key in use", l.Len())
				}
			})
		}
	}
}

// Keys with a long backlog are decided on as if there were no others, while the table
// is swept, grows and shrinks.
func TestSweepForgetsNothingInUse(t *testing.T) {
	day := 24 * time.Hour
	for _, w := range everyWay(1000, day)[1:] {
		inBubble(t, w.name, func(t *testing.T) {
			const heavy = 200
			l := NewLimiter(itself[int], w.limits...)
			alone := NewLimiter(itself[int], w.limits...)
			time.Sleep(time.Hour)
			for key := range heavy {
				l.AllowN(-1-key, 1000)
			}
			alone.AllowN(0, 1000)
			light := 0
			for round := range 4 {
				for range 3000 { // most of them are full again soon, where anything drains
					l.AllowN(light, 0)
					if light%10 == 0 {
						l.AllowN(light, 1)
					}
					light++
				}
				time.Sleep(2 * time.Hour)
				for range 500 {
					l.Peek(light)
					time.Sleep(time.Millisecond)
				}
				want := alone.Peek(0)
				for key := range heavy {
					if got := l.Peek(-1 - key); got != want {
						t.Fatalf("round %d, key %d:\n got %+v\nwant %+v", round, key, got, want)
					}
				}
			}
		})
	}
}

// Sweeps do not disturb decisions: the requests of many goroutines, each of which
// sweeps, are all decided exactly.
func TestSweepWhileOthersDecide(t *testing.T) {
	for _, limits := range [][]Limit{{PerHour(30)}, {PerHour(30), roomy}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			for round := range 8 {
				for key := range 2000 { // full within two minutes
					l.Allow(1000 + key + round*2000)
				}
				time.Sleep(time.Hour)
				var admitted [10]atomic.Int64
				inParallel(goroutines, func(i int) {
					for k := range 100 {
						key := (i + k) % len(admitted)
						if l.Allow(key) {
							admitted[key].Add(1)
						}
					}
				})
				for key := range admitted {
					if got := admitted[key].Load(); got != 30 {
						t.Fatalf("round %d, key %d: admitted %d of 30", round, key, got)
					}
				}
			}
			if l.Len() > 4000 {
				t.Errorf("Len is %d with 10 keys in use", l.Len())
			}
		})
	}
}
