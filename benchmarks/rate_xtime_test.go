package main_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/rate"
	xrate "golang.org/x/time/rate"
)

// TestRateLikeXTimeRate drives rate and golang.org/x/time/rate through the same random histories, with times that stand
// still, leap and go back, and wants the same answers from both. Every other history is exact: it keeps to numbers that
// floating point hardly rounds, and no disagreement is put down to rounding.
func TestRateLikeXTimeRate(t *testing.T) {
	const histories, length = 10_000, 60
	steps := 0
	for seed := range uint64(histories) {
		h := newHistory(seed)
		for range length {
			if !h.step() {
				break
			}
			steps++
		}
		if h.wrong != "" {
			t.Fatalf("history %d: %s\n%s", seed, h.wrong, strings.Join(h.log, "\n"))
		}
	}
	if steps < histories*length/3 {
		t.Errorf("only %d steps were taken: too many histories end early", steps)
	}
}

// A history is two limiters with the same past.
type history struct {
	*rand.Rand
	ours   *rate.Limiter
	theirs *xrate.Limiter
	limit  float64
	burst  int

	exact bool
	grain time.Duration // what times are multiples of
	now   time.Time
	lasts []time.Time // when the limiters may have changed last
	held  []reserved
	drift float64 // how many tokens rounding may have put between them

	log   []string
	wrong string
}

type reserved struct {
	n      int
	limit  float64
	ours   *rate.Reservation
	theirs *xrate.Reservation
}

const (
	inf = float64(rate.Inf)
	// back is how much a time must be behind the last one for ours to turn the clock back.
	back = time.Millisecond + 1
)

func newHistory(seed uint64) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 1)), exact: seed%2 == 0}
	h.now = pick(h, time.Now(), time.Time{}, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	h.grain = pick(h, 1, time.Microsecond, time.Millisecond, 100*time.Millisecond)
	if h.exact {
		h.grain = time.Second / 64
	}
	h.limit, h.burst = h.someLimit(), h.someBurst()
	h.ours, h.theirs = rate.NewLimiter(rate.Limit(h.limit), h.burst), xrate.NewLimiter(xrate.Limit(h.limit), h.burst)
	h.note("NewLimiter(%v, %d)", h.limit, h.burst)
	return h
}

func (h *history) someLimit() float64 {
	if h.exact {
		return pick(h, 0, -1, 0.5, 1, 2, 64, inf)
	}
	if h.IntN(2) == 0 {
		return float64(rate.Every(time.Duration(1+h.IntN(1000)) * pick(h, time.Microsecond, time.Millisecond, time.Second)))
	}
	return pick(h, 0, -1, 1e-10, 0.001, 1.0/3, 1, 3, 10, 64, 1000, 1e6, inf)
}

func (h *history) someBurst() int {
	if h.exact {
		return pick(h, 0, 1, 2, 3, 5, 10, 1000)
	}
	return pick(h, 0, 1, 2, 3, 5, 10, 1000, 1<<40)
}

func (h *history) someN() int {
	return pick(h, 0, 1, 1, 1, 1+h.IntN(4), 1+h.IntN(4), h.burst, h.burst+1, -h.IntN(3))
}

func pick[T any](h *history, from ...T) T { return from[h.IntN(len(from))] }

func (h *history) note(format string, a ...any) { h.log = append(h.log, fmt.Sprintf(format, a...)) }

func (h *history) fail(format string, a ...any) bool {
	h.wrong = fmt.Sprintf(format, a...)
	return false
}

// rounding ends the history, unless it is exact.
func (h *history) rounding(format string, a ...any) bool {
	return h.exact && h.fail(format, a...)
}

// step lets time pass and does one thing to both limiters; false ends the history.
func (h *history) step() bool {
	h.move()
	if !h.sameTokens() {
		return false
	}
	switch h.IntN(12) {
	case 0:
		h.limit = h.someLimit()
		h.note("%v SetLimitAt(%v)", h.now, h.limit)
		h.ours.SetLimitAt(h.now, rate.Limit(h.limit))
		h.theirs.SetLimitAt(h.now, xrate.Limit(h.limit))
		h.changed()
	case 1:
		h.burst = h.someBurst()
		h.note("%v SetBurstAt(%v)", h.now, h.burst)
		h.ours.SetBurstAt(h.now, h.burst)
		h.theirs.SetBurstAt(h.now, h.burst)
		h.changed()
	case 2, 3, 4:
		return h.cancel()
	case 5, 6, 7:
		return h.reserve()
	default:
		return h.allow()
	}
	return true
}

// move lets time pass, or go back by more than goroutines that overtake each other would explain.
func (h *history) move() {
	h.now = h.now.Add(h.grain * time.Duration(pick(h, 0, 0, 1, h.IntN(10), h.IntN(1000))))
	if h.IntN(12) == 0 {
		behind := h.grain * time.Duration(h.IntN(100))
		if behind < back {
			behind += h.grain * (1 + back/h.grain)
		}
		h.now = h.now.Add(-behind)
	}
	slices.SortFunc(h.lasts, time.Time.Compare)
	for _, last := range h.lasts {
		if behind := last.Sub(h.now); behind > 0 && behind < back {
			h.now = last
		}
	}
}

// changed notes that this has become the limiters' last time.
func (h *history) changed() {
	h.lasts = append(h.lasts[:0], h.now)
	if h.exact {
		return
	}
	h.drift += (float64(h.burst) + math.Abs(h.theirs.TokensAt(h.now))) / (1 << 48)
	if h.limit < inf {
		h.drift += max(h.limit, 0) * 2e-9
	}
}

func (h *history) sameTokens() bool {
	ours, theirs := h.ours.TokensAt(h.now), h.theirs.TokensAt(h.now)
	if math.Abs(ours-theirs) > h.tolerance() {
		return h.fail("%v TokensAt = %v, theirs %v", h.now, ours, theirs)
	}
	return true
}

func (h *history) tolerance() float64 {
	return 1e-9 + h.drift + math.Abs(h.theirs.TokensAt(h.now))/(1<<50)
}

func (h *history) allow() bool {
	n := h.someN()
	close := h.close(n)
	ours, theirs := h.ours.AllowN(h.now, n), h.theirs.AllowN(h.now, n)
	h.note("%v AllowN(%d) = %v", h.now, n, ours)
	switch {
	case ours == theirs && ours && h.limit < inf:
		h.changed()
	case ours != theirs && close:
		return h.rounding("AllowN = %v, theirs %v", ours, theirs)
	case ours != theirs:
		return h.fail("AllowN = %v, theirs %v", ours, theirs)
	}
	return h.sameTokens()
}

// close reports whether it is a matter of rounding if n tokens are there.
func (h *history) close(n int) bool {
	missing, nanosecond := float64(n)-h.theirs.TokensAt(h.now), max(h.limit, 0)*1e-9
	return math.Abs(missing) <= h.tolerance() ||
		math.Abs(missing-nanosecond) <= h.tolerance()+nanosecond/32 ||
		math.Abs(missing/nanosecond-1<<63) < 1e6 // theirs takes a wait of just InfDuration for a negative one
}

func (h *history) reserve() bool {
	n := h.someN()
	close := h.close(n)
	ours, theirs := h.ours.ReserveN(h.now, n), h.theirs.ReserveN(h.now, n)
	a, b := ours.DelayFrom(h.now), theirs.DelayFrom(h.now)
	h.note("%v ReserveN(%d) = %v", h.now, n, a)
	if ours.OK() != theirs.OK() {
		return h.fail("OK = %v, theirs %v", ours.OK(), theirs.OK())
	}
	apart := 1.0
	if !h.exact && h.limit > 0 {
		apart = 2 + h.tolerance()/h.limit*1e9 + float64(b)*1e-14
	}
	if math.Abs(float64(a)-float64(b)) > apart && close {
		return h.rounding("DelayFrom = %v, theirs %v", a, b)
	}
	if math.Abs(float64(a)-float64(b)) > apart {
		return h.fail("DelayFrom = %v, theirs %v", a, b)
	}
	if ours.OK() && h.limit < inf {
		h.held = append(h.held, reserved{n, h.limit, ours, theirs})
		h.changed()
	}
	return h.sameTokens()
}

// cancel cancels a reservation, once.
func (h *history) cancel() bool {
	if len(h.held) == 0 {
		return true
	}
	i := h.IntN(len(h.held))
	r := h.held[i]
	h.held = slices.Delete(h.held, i, i+1)
	before := h.theirs.TokensAt(h.now)
	r.ours.CancelAt(h.now)
	r.theirs.CancelAt(h.now)
	h.note("%v CancelAt of %d due in %v", h.now, r.n, r.ours.DelayFrom(h.now))
	h.lasts = append(h.lasts, h.now)
	given := h.theirs.TokensAt(h.now) - before
	if given > float64(r.n) {
		return false // ours does not give back more than was taken
	}
	// How much is given back hangs on whether two times are the same to the nanosecond; and whether this is now the last
	// time, on whether it is nothing or next to nothing.
	apart := h.ours.TokensAt(h.now) - h.theirs.TokensAt(h.now)
	trifle := !h.exact && math.Abs(given) <= h.tolerance() && r.ours.DelayFrom(h.now.Add(-2)) > 0
	if math.Abs(apart) > h.tolerance() || trifle {
		return h.rounding("CancelAt gave back %v, theirs %v", given+apart, given)
	}
	return r.limit > 0 // or theirs has put its last event 292 years into the future, and gives nothing back from now on
}
