package rate_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/rate"
)

// A negative rate never refills, and a negative burst lets nothing pass. Neither panics, as neither does in
// golang.org/x/time/rate.
func TestNegativeValues(t *testing.T) {
	for _, c := range []struct {
		r     rate.Limit
		burst int
		want  int
	}{{-1, 1, 1}, {-1, -1, 0}, {1, -1, 0}} {
		l, passed := rate.NewLimiter(c.r, c.burst), 0
		for range 3 {
			if l.Allow() {
				passed++
			}
		}
		if passed != c.want || l.Limit() != c.r || l.Burst() != c.burst {
			t.Errorf("NewLimiter(%v, %d): %d passed, want %d; it is of %v and %d", c.r, c.burst, passed, c.want, l.Limit(), l.Burst())
		}
	}
}
