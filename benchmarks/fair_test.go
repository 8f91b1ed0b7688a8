package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

func TestRivalsShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := must(newRivals())
		defer rl.Close()
		// All calls begin and end together, so it is looked at them halfway.
		got, err := compete(rl, 100*callTime+callTime/2, 1000*callTime)
		if err != nil {
			t.Fatal(err)
		}
		if all := got[0] + got[1]; all != 1000*places {
			t.Errorf("%d calls in the time of 1,000 at %d a time", all, places)
		}
		if r := got.ratio(); r < 2.99 || r > 3.01 {
			t.Errorf("ratio %v of %v, want 3", r, got)
		}
	})
}

func TestRivalsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := must(newRivals())
		rl.Projects().Close()
		start := time.Now()
		if got, err := compete(rl, time.Second, time.Hour); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%v and error %v, want %v", got, err, store.ErrClosed)
		}
		if took := time.Since(start); took >= time.Second {
			t.Errorf("it took %v to notice", took)
		}
	})
}
