package rate

import (
	"math"
	"sync"
	"testing"
	"time"
)

// An act is one step with reservations: it reserves n and expects the delay, or cancels the reservation of an earlier
// act.
type act struct {
	at     time.Duration
	n      int
	cancel int // the number of an act, from 1
	delay  time.Duration
	tokens float64 // what is left afterwards
}

func TestReservations(t *testing.T) {
	const never = InfDuration
	cases := []struct {
		name  string
		limit Limit
		burst int
		acts  []act
	}{
		{"from the future", 10, 2, []act{
			{at: 0, n: 2}, {at: 0, n: 2, delay: 200 * ms, tokens: -2}, {at: 300 * ms, n: 2, delay: 100 * ms, tokens: -1},
		}},
		{"more than the burst", 10, 2, []act{{at: 0, n: 3, delay: never, tokens: 2}, {cancel: 1, tokens: 2}}},
		{"no refill", 0, 2, []act{{at: 0, n: 2}, {at: 0, n: 1, delay: never, tokens: -1}, {at: time.Hour, cancel: 2}}},
		{"a wait beyond all durations", 1e-10, 1, []act{
			{at: 0, n: 1}, {at: 0, n: 1, delay: never, tokens: -1}, {at: 0, n: 1, delay: never, tokens: -2},
		}},
		{"infinity", Inf, 0, []act{{at: 0, n: 5}, {at: 0, cancel: 1}}},
		{"a debt that needs coarser units", 1, 2000, []act{
			{at: 0, n: 2000}, {at: 0, n: 2000, delay: 2000 * time.Second, tokens: -2000},
			{at: 0, n: 2000, delay: 4000 * time.Second, tokens: -4000}, {at: 0, n: 2000, delay: 6000 * time.Second, tokens: -6000},
			{at: 0, n: 2000, delay: 8000 * time.Second, tokens: -8000}, {at: 0, n: 2000, delay: 10000 * time.Second, tokens: -10000},
			{at: 0, cancel: 6, tokens: -8000}, {at: 1000 * time.Second, n: 2000, delay: 9000 * time.Second, tokens: -9000},
		}},
		{"a debt of all that can be owed", 1, math.MaxInt, []act{
			{at: 0, n: math.MaxInt}, {at: 0, n: math.MaxInt, delay: never, tokens: -1}, {at: 0, n: 1, delay: never, tokens: -1},
		}},
		{"time goes back", 10, 2, []act{
			{at: 100 * ms, n: 2}, {at: 0, n: 1, delay: 100 * ms, tokens: -1}, {at: 200 * ms, n: 2, delay: 100 * ms, tokens: -1},
			{at: 0, n: 3, delay: never, tokens: -1}, {at: 200 * ms, n: 1, delay: 200 * ms, tokens: -2},
		}},
		{"goroutines overtake each other", 1000, 1, []act{
			{at: ms, n: 1}, {at: ms / 2, n: 1, delay: 3 * ms / 2, tokens: -1}, {at: ms, n: 1, delay: 2 * ms, tokens: -2},
		}},
		{"cancel the last", 10, 2, []act{
			{at: 0, n: 2}, {at: 0, n: 2, delay: 200 * ms, tokens: -2}, {at: 100 * ms, cancel: 2, tokens: 1},
			{at: 100 * ms, n: 2, delay: 100 * ms, tokens: -1},
		}},
		{"cancel twice", 10, 2, []act{
			{at: 0, n: 2}, {at: 0, n: 2, delay: 200 * ms, tokens: -2}, {at: 0, cancel: 2}, {at: 0, cancel: 2},
		}},
		{"cancel at the last moment", 10, 2, []act{
			{at: 0, n: 2}, {at: 0, n: 1, delay: 100 * ms, tokens: -1}, {at: 100 * ms, cancel: 2, tokens: 1},
		}},
		{"cancel too late", 10, 2, []act{
			{at: 0, n: 2}, {at: 0, n: 2, delay: 200 * ms, tokens: -2}, {at: 200*ms + 1, cancel: 2, tokens: 1e-8},
		}},
		{"cancel what all of a later one was built on", 10, 2, []act{
			{at: 0, n: 2}, {at: 0, n: 1, delay: 100 * ms, tokens: -1}, {at: 0, n: 1, delay: 200 * ms, tokens: -2},
			{at: 0, cancel: 2, tokens: -2},
		}},
		{"cancel what part of a later one was built on", 10, 2, []act{
			{at: 0, n: 2}, {at: 0, n: 2, delay: 200 * ms, tokens: -2}, {at: 0, n: 1, delay: 300 * ms, tokens: -3},
			{at: 200 * ms, cancel: 2}, {at: 200 * ms, n: 2, delay: 200 * ms, tokens: -2},
		}},
		{"cancel the last, then an earlier one", 10, 4, []act{
			{at: 0, n: 4}, {at: 0, n: 3, delay: 300 * ms, tokens: -3}, {at: 0, n: 1, delay: 400 * ms, tokens: -4},
			{at: 0, n: 1, delay: 500 * ms, tokens: -5}, {at: 100 * ms, cancel: 4, tokens: -3}, {at: 100 * ms, cancel: 2, tokens: -1},
			{at: 100 * ms, n: 3, delay: 400 * ms, tokens: -4},
		}},
		{"cancel at a time that has gone back", 10, 2, []act{
			{at: 100 * ms, n: 2}, {at: 100 * ms, n: 2, delay: 200 * ms, tokens: -2}, {at: 100 * ms, n: 1, delay: 300 * ms, tokens: -3},
			{at: 0, cancel: 2, tokens: -2}, {at: 100 * ms, n: 2, delay: 300 * ms, tokens: -3},
		}},
		{"what was taken meanwhile counts as later", 10, 2, []act{
			{at: 0, n: 1, tokens: 1}, {at: time.Second, n: 1, tokens: 1}, {at: 0, cancel: 1, tokens: 1},
		}},
		{"nothing to cancel", 10, 2, []act{{at: 0, n: 0, tokens: 2}, {at: 0, cancel: 1, tokens: 2}}},
		{"a negative number of tokens", 10, 2, []act{{at: 0, n: 2}, {at: 0, n: -1, tokens: 1}, {at: 0, cancel: 2, tokens: 1}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			lim := NewLimiter(c.limit, c.burst)
			reservations := make([]*Reservation, len(c.acts))
			for i, a := range c.acts {
				if a.cancel > 0 {
					reservations[a.cancel-1].CancelAt(at(a.at))
				} else {
					reservations[i] = lim.ReserveN(at(a.at), a.n)
					if got := reservations[i].DelayFrom(at(a.at)); got != a.delay {
						t.Errorf("act %d: delay %v, want %v", i+1, got, a.delay)
					}
					if got := reservations[i].OK(); got != (a.n <= c.burst || c.limit == Inf) {
						t.Errorf("act %d: OK = %v", i+1, got)
					}
				}
				if got := lim.TokensAt(at(a.at)); math.Abs(got-a.tokens) > 1e-12 {
					t.Errorf("act %d: %v tokens, want %v", i+1, got, a.tokens)
				}
			}
		})
	}
}

func TestDelayShrinksWithTime(t *testing.T) {
	lim := NewLimiter(1, 1)
	lim.ReserveN(at(0), 1)
	r := lim.ReserveN(at(0), 1)
	for from, want := range map[time.Duration]time.Duration{0: time.Second, 300 * ms: 700 * ms, time.Second: 0, time.Hour: 0, -time.Hour: time.Hour + time.Second} {
		if got := r.DelayFrom(at(from)); got != want {
			t.Errorf("DelayFrom(%v) = %v, want %v", from, got, want)
		}
	}
}

func TestZeroReservation(t *testing.T) {
	var r Reservation
	if r.OK() || r.Delay() != InfDuration {
		t.Errorf("OK = %v, Delay = %v", r.OK(), r.Delay())
	}
	r.Cancel()
	r.CancelAt(at(0))
}

// A reservation keeps its time when the parameters change, and gives back what it took.
func TestReservationsOutliveTheirParameters(t *testing.T) {
	cases := []struct {
		name   string
		set    func(lim *Limiter)
		delay  time.Duration // of one more token at 400 ms
		tokens float64       // after the reservation was cancelled at 400 ms, before that one more
	}{
		{"a higher limit", func(lim *Limiter) { lim.SetLimitAt(at(200*ms), 10) }, 0, 2},
		{"no limit", func(lim *Limiter) { lim.SetLimitAt(at(200*ms), Inf) }, 0, 2},
		{"no refill", func(lim *Limiter) { lim.SetLimitAt(at(200*ms), 0) }, 0, 1},
		{"a larger burst", func(lim *Limiter) { lim.SetBurstAt(at(200*ms), 1<<40) }, 0, 2},
		{"a smaller burst", func(lim *Limiter) { lim.SetBurstAt(at(200*ms), 1) }, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			lim := NewLimiter(5, 2)
			lim.ReserveN(at(0), 2)
			r := lim.ReserveN(at(0), 2)
			c.set(lim)
			if got := r.DelayFrom(at(0)); got != 400*ms {
				t.Errorf("delay %v, want 400ms", got)
			}
			r.CancelAt(at(400 * ms))
			if got := lim.TokensAt(at(400 * ms)); math.Abs(got-c.tokens) > 1e-5 {
				t.Errorf("%v tokens, want %v", got, c.tokens)
			}
			if got := lim.ReserveN(at(400*ms), 1).DelayFrom(at(400 * ms)); got != c.delay {
				t.Errorf("delay %v, want %v", got, c.delay)
			}
		})
	}
}

// A reservation without limit took nothing, and so gives nothing back once there is a limit.
func TestCancelWhatWasInfinite(t *testing.T) {
	lim := NewLimiter(Inf, 2)
	r := lim.ReserveN(at(0), 2)
	lim.SetLimitAt(at(0), 1)
	lim.AllowN(at(0), 2)
	r.CancelAt(at(0))
	if got := lim.TokensAt(at(0)); got != 0 {
		t.Errorf("%v tokens, want none", got)
	}
}

// Goroutines that reserve and cancel create no tokens.
func TestConcurrentCancel(t *testing.T) {
	lim := NewLimiter(1e-6, 10)
	lim.AllowN(time.Now(), 10)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				r := lim.Reserve()
				if lim.Allow() {
					t.Error("an event was admitted")
				}
				r.Cancel()
			}
		})
	}
	wg.Wait()
	if got := lim.Tokens(); got > 1 {
		t.Errorf("%v tokens, want none", got)
	}
}
