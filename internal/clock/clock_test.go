package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/clock"
)

// The clock starts as the wall clock, and time passes on it.
func TestNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second)
		now := clock.New()
		for range 3 {
			if got, want := now(), time.Now().UnixNano(); got != want {
				t.Errorf("the clock reads %d; want %d", got, want)
			}
			time.Sleep(time.Hour)
		}
	})
}
