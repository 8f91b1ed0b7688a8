package argument

import (
	"testing"
	"time"
)

func TestPanics(t *testing.T) {
	for _, test := range []struct {
		check func()
		want  any
	}{
		{func() { Function("Skip", true) }, nil},
		{func() { Function("Skip", false) }, "ratelimit: Skip needs a function: it is nil"},
		{func() { Duration("Wait", 0) }, nil},
		{func() { Duration("Wait", -time.Second) }, "ratelimit: Wait(-1s): it must not be negative"},
	} {
		func() {
			defer func() {
				if got := recover(); got != test.want {
					t.Errorf("panics with %v, want %v", got, test.want)
				}
			}()
			test.check()
		}()
	}
}
