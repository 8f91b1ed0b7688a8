package main

import (
	"testing"
	"testing/synctest"
)

// notYet is why the required figures are not held. When the rule of fair shares is in the engine,
// remove it and the line that skips.
const notYet = "waiting calls have their turns by deficit round robin: shares do not hold over windows yet"

const (
	withinPoints = 5    // of the share by weight, over any two windows
	utilised     = 0.98 // of the quota
	lateGets     = 0.95 // of what is due to a latecomer, in its second minute
)

func TestSharesHoldOverWindows(t *testing.T) {
	t.Skip(notYet)
	for _, l := range loads() {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, err := ours(&l)
				if err != nil {
					t.Fatal(err)
				}
				s := newService(&l, calls)
				if points, ok := s.worstShare(); ok && points > withinPoints {
					t.Errorf("a client is %.1f points off its share over two windows, want at most %d", points, withinPoints)
				}
				if got := s.utilisation(); got < utilised {
					t.Errorf("%.1f%% of the quota were used, want at least %.0f%%", 100*got, 100*utilised)
				}
				if l.latecomer > 0 && s.late() < lateGets {
					t.Errorf("the latecomer has %.0f%% of what is due in its second minute, want at least %.0f%%", 100*s.late(), 100*lateGets)
				}
			})
		})
	}
}
