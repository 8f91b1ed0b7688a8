package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// What a call gives back after the end of the window that it was charged in is no room in the next one, and what
// it has used beyond its estimate is no debt there.
func TestCorrectionOfAWindowThatHasEnded(t *testing.T) {
	day := int64(24 * time.Hour)
	p := NewPool([]limit.Limit{limit.PerDay(100).ResetAt(0, nil)}, 0)
	who := &Who{Name: "a"}
	p.Take(who, Terms{}, day-1, []Amount{{N: 50, Count: 100}}, false)
	p.Take(who, Terms{}, day+1, []Amount{{N: 10, Count: 100}}, false)
	p.Correct(who, day+1, []int64{5}, nil)
	for _, more := range []int64{0, -40, 50} {
		p.Correct(who, day-1, []int64{more}, nil)
		if got := p.Read(day + 2)[0].Parts[0].Used; got != 15 {
			t.Errorf("%d of the second day are used after a correction of the first by %d; want 15", got, more)
		}
	}
}
