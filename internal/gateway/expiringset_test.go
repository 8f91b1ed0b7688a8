package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLatelyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l expiringSet
		for i := range uint64(2 * maxHashes) {
			l.add(i, time.Minute)
		}
		if len(l.until) != maxHashes {
			t.Errorf("%d are remembered", len(l.until))
		}
		time.Sleep(time.Minute)
		l.add(1, time.Minute)
		if len(l.until) != 1 {
			t.Errorf("%d are remembered after they have ended", len(l.until))
		}
	})
}
