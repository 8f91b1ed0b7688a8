package main

import (
	"testing"
	"testing/synctest"
	"time"
)

const (
	withinPoints = 5    // of the share by weight, over any two windows
	utilised     = 0.98 // of the quota
	lateGets     = 0.95 // of what is due to a latecomer, in its second minute
)

// missed are the loads that miss withinPoints, and the bounds that they are held to instead, so that
// they get no worse. In both, one call is many points of what two windows hold.
//
//   - sizes: a large call is 4 points. Six of them, of 6.25 that are due, pass in every window, which is
//     2 points; a span that begins between two calls of one window lacks one more, which makes 6.0.
//   - trace: the largest call is up to 10 points of what two clients get who are backlogged for two
//     windows. From run to run, because calls of one instant come in any order, it is 3.2 to 6.8.
var missed = map[string]float64{"sizes": 6.1, "trace": 10}

// knownFrom is from when on shares hold: at once, but for one load. In sizes the ten large calls, four
// fifths of the quota, all come before the first small one, and nobody knows yet that there will be
// one.
func knownFrom(l *load) time.Duration {
	if l.name == "sizes" {
		return window
	}
	return 0
}

func TestSharesHoldOverWindows(t *testing.T) {
	for _, l := range loads() {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(45 * time.Second) // when in a minute of the clock calls begin must not matter
				calls, err := ours(&l)
				if err != nil {
					t.Fatal(err)
				}
				s := newService(&l, calls)
				within := max(withinPoints, missed[l.name])
				points, ok := s.worstShare(knownFrom(&l))
				if ok && points > within {
					t.Errorf("a client is %.1f points off its share over two windows, want at most %.1f", points, within)
				}
				if got := s.utilisation(); got < utilised {
					t.Errorf("%.1f%% of the quota were used, want at least %.0f%%", 100*got, 100*utilised)
				}
				if l.latecomer > 0 && s.late() < lateGets {
					t.Errorf("the latecomer has %.0f%% of what is due in its second minute, want at least %.0f%%", 100*s.late(), 100*lateGets)
				}
				t.Logf("%.1f points off", points)
			})
		})
	}
}
