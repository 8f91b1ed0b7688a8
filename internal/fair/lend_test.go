package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// A member that has a pool to itself is lent what is free, although its calls use more than they ask for.
// Once, its own later calls kept it free for themselves.
func TestAloneNothingIsKeptFree(t *testing.T) {
	const dollar = 1_000_000_000
	p := NewPool([]limit.Limit{limit.PerDay(dollar).Using(limit.FixedWindow)}, 0)
	a, start := &Who{Name: "a"}, int64(time.Hour)
	nothing := []Amount{{N: 0, Count: dollar}}
	if d := p.Take(a, Terms{}, start, nothing, false); d.Denied {
		t.Fatalf("%+v", d)
	}
	const used = 888_888_890
	p.Correct(a, start, []int64{used}, nil)
	later := start + int64(24*time.Minute)
	if d := p.Take(a, Terms{}, later, nothing, false); d.Denied && !p.Lend(a, later, nothing, []int64{used}) {
		t.Errorf("%d of %d are used by nobody else: %+v", used, int64(dollar), d)
	}
}
