package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLatelyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lately
		for i := range uint64(2 * mostRemembered) {
			l.note(i, time.Minute)
		}
		if len(l.until) != mostRemembered {
			t.Errorf("%d are remembered", len(l.until))
		}
		time.Sleep(time.Minute)
		if l.note(1, time.Minute); len(l.until) != 1 {
			t.Errorf("%d are remembered after they have ended", len(l.until))
		}
	})
}
