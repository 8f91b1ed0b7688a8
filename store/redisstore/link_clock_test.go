package redisstore

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLinkServerClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c serverClock
		if c.now() != time.Now().UnixNano() {
			t.Error("before the first answer it is this machine's")
		}
		for _, step := range []struct {
			at    int64
			while time.Duration
			want  int64
		}{
			{1000, 100, 1100}, // this machine's is ahead
			{1000, 0, 1000},   // a second has passed here, and the server's clock has stopped
			{1000, 2e9, 1e9 + 1000},
			{2e9 + 1000, 50, 2e9 + 1000},
			{3e9 + 990, 50, 3e9 + 1000}, // that was some time ago
			{3e9 + 900, 50, 3e9 + 950},  // the server's clock went back
			{9e9, 0, 9e9},
			{5e9, 0, 5e9},
		} {
			c.observe(step.at, step.while)
			if got := c.now(); got != step.want {
				t.Errorf("%+v: %d", step, got)
			}
			time.Sleep(time.Second)
			if got := c.now(); got != step.want+1e9 {
				t.Errorf("%+v: a second later %d", step, got)
			}
		}
	})
}
