package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// The limits of a group are divided among those in it, whatever terms the group itself has in other pools;
// calls of the group itself are one more of weight 1.
func TestPoolOfAGroup(t *testing.T) {
	acme := newGroup("acme", newGroup("org", nil, Terms{}), Terms{Weight: 9, Max: 100000})
	search := newGroup("acme/search", acme, Terms{Weight: 2})
	p := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0)
	p.Inside(acme)
	now, ask := int64(time.Hour), []Amount{{N: 1, Count: 100}}
	members := []*Who{{Name: "acme", Group: acme.Above}, {Name: "acme/chat", Group: acme}, {Name: "acme/search/a", Group: search}, {Name: "acme/search/b", Group: search}}
	terms := []Terms{{Weight: 9, Max: 100000}, {}, {}, {Weight: 3}}
	for i, w := range members {
		p.Take(w, terms[i], now, ask, false)
		waiting := p.Wait(w, terms[i], now)
		waiting.Turn(false, -1)
	}
	p.Read(now)
	for i, want := range []int64{25, 25, 12, 37} {
		if got := p.members[members[i].Name].parts[0].share >> p.quotas[0].scale; got != want {
			t.Errorf("%s has a share of %d; want %d", members[i].Name, got, want)
		}
	}
	if len(p.groups) != 1 || p.groups["acme/search"] == nil {
		t.Errorf("the pool knows the groups %v; want acme/search alone", p.groups)
	}
}

// Calls of one member wait for the group's limits and for other things. The member wants its share as long as
// one of them waits for nothing else.
func TestMemberWantsWhatOneOfItsCallsWaitsFor(t *testing.T) {
	acme := newGroup("acme", nil, Terms{})
	p := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0)
	p.Inside(acme)
	who := &Who{Name: "acme/chat", Group: acme}
	a, b := p.Wait(who, Terms{}, 1), p.Wait(who, Terms{}, 1)
	m := p.members["acme/chat"]
	wants := func(want bool) {
		t.Helper()
		if m.wants(2) != want {
			t.Errorf("the member wants its share: %t", !want)
		}
	}
	wants(false) // neither has asked
	a.Turn(false, -1)
	wants(true)
	b.Turn(true, -1)
	wants(true)
	a.Turn(true, -1)
	wants(false)
	b.Turn(false, -1)
	b.Leave(2)
	wants(false)
	a.Leave(2)
	if m.waiting != 0 || m.here != 0 {
		t.Errorf("%d calls wait, %d of them for the limits", m.waiting, m.here)
	}
}

// What the first member has used before the pool began counts for it, and comes back evenly.
func TestSeed(t *testing.T) {
	acme := newGroup("acme", nil, Terms{})
	p := NewPool([]limit.Limit{limit.New(120, time.Minute).Using(limit.SlidingLog)}, 0)
	p.Inside(acme)
	hog, late := &Who{Name: "acme/hog", Group: acme}, &Who{Name: "acme/late", Group: acme}
	now := int64(time.Hour)
	p.Seed(hog, Terms{}, now, []int64{120})
	p.Seed(late, Terms{}, now, []int64{120}) // it is not the first
	ask := []Amount{{N: 1, Count: 120}}
	if d := p.Take(late, Terms{}, now, ask, false); d.Denied {
		t.Errorf("the one that comes late: %+v", d)
	}
	if d := p.Take(hog, Terms{}, now, ask, false); !d.Denied || d.Used != 120 {
		t.Errorf("the first one: %+v", d)
	}
	if used := p.members["acme/hog"].parts[0].usedAt(now + int64(30*time.Second)); used < 58 || used > 62 {
		t.Errorf("half a minute later %v are used; want half of 120", used)
	}
}
