package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

func TestRivalsShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(newRivals())
		defer l.Close()
		// All calls begin and end together, so it is looked at them halfway.
		got, err := compete(l, 100*callTime+callTime/2, 1000*callTime)
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
		l := project.New(nil) // which has no models
		defer l.Close()
		start := time.Now()
		if got, err := compete(l, time.Second, time.Hour); !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%v and error %v, want %v", got, err, project.ErrInvalid)
		}
		if took := time.Since(start); took >= time.Second {
			t.Errorf("it took %v to notice", took)
		}
	})
}
