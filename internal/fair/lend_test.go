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

// What is left of a share that is no whole number of calls is kept for a member that wants it, if one more call may begin
// in it. Once it was lent, to the one member that called first in each minute.
func TestFractionsOfSharesAreKept(t *testing.T) {
	const members, quota = 21, 58 // 2.76 for each
	p, start := NewPool([]limit.Limit{limit.PerMinute(quota)}, 0), int64(time.Hour)
	one := []Amount{{N: 1, Count: quota}}
	list := make([]*Who, members)
	for i := range list {
		list[i] = &Who{Name: string(rune('a' + i))}
		p.Take(list[i], Terms{}, start, one, false)
	}
	for _, w := range list {
		p.Take(w, Terms{}, start+int64(time.Second), one, false)
	}
	now := start + int64(2*time.Second)
	if d := p.Take(list[0], Terms{}, now, one, false); d.Denied {
		t.Fatalf("a call more than half of which is in the share: %+v", d)
	}
	if d := p.Take(list[0], Terms{}, now, one, false); !d.Denied || p.Lend(list[0], now, one, []int64{2*members + 1}) {
		t.Errorf("%+v: want that nothing is lent, because each of the others may begin a call in its share", d)
	}
}
