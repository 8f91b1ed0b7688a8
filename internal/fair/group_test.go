package fair

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

func inGroup(g *Group, c *client) *client {
	c.group = g
	return c
}

func newGroup(name string, above *Group, t Terms) *Group {
	g := &Group{Name: name, Above: above}
	g.Set(t)
	return g
}

// Weights hold between siblings at every level: what one does not want goes to its siblings first.
func TestGroups(t *testing.T) {
	acme, beta := newGroup("acme", nil, Terms{}), newGroup("beta", nil, Terms{})
	w := simulate(t, 120, 0, []*client{
		inGroup(acme, hog("acme/search", Terms{Weight: 3})), inGroup(acme, hog("acme/chat", Terms{})), inGroup(beta, hog("beta/x", Terms{})),
	}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"acme/search": .375, "acme/chat": .125, "beta/x": .5})

	few := &client{name: "acme/search", group: acme, workers: 1, pause: 9500 * time.Millisecond, size: one} // 6 a minute
	w = simulate(t, 120, 0, []*client{few, inGroup(acme, hog("acme/chat", Terms{})), inGroup(beta, hog("beta/x", Terms{}))}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"acme/search": .05, "acme/chat": .45, "beta/x": .5})
}

func TestGroupsInGroups(t *testing.T) {
	acme := newGroup("acme", nil, Terms{Weight: 2})
	search := newGroup("acme/search", acme, Terms{})
	w := simulate(t, 120, 0, []*client{
		inGroup(search, hog("acme/search/alice", Terms{})), inGroup(search, hog("acme/search/bob", Terms{})),
		inGroup(acme, hog("acme/chat", Terms{})), hog("beta", Terms{}),
		hog("acme", Terms{Weight: 2}), // calls of acme itself are one of three below it
	}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"acme/search/alice": 1. / 9, "acme/search/bob": 1. / 9, "acme/chat": 2. / 9, "acme": 2. / 9, "beta": 1. / 3})
}

// Ranks, minima and maxima of groups hold as those of members do.
func TestTermsOfGroups(t *testing.T) {
	high, capped := newGroup("high", nil, Terms{Rank: 1, Max: 500000}), newGroup("capped", nil, Terms{Max: 100000})
	w := simulate(t, 100, 0, []*client{
		inGroup(high, hog("high/a", Terms{})), inGroup(high, hog("high/b", Terms{})),
		inGroup(capped, hog("capped/a", Terms{})), inGroup(capped, hog("capped/b", Terms{})), hog("low", Terms{}),
	}, 6*time.Minute)
	w.expect(2, 6, map[string]float64{"high/a": .25, "high/b": .25, "capped/a": .05, "capped/b": .05, "low": .4})
}

// The maximum of a group holds even if nobody else wants the rest, for calls of the project itself too.
func TestMaximumOfAGroupIsNotExceeded(t *testing.T) {
	capped := newGroup("capped", nil, Terms{Max: 500000})
	inside := newGroup("capped/in", capped, Terms{})
	w := simulate(t, 100, 0, []*client{
		inGroup(capped, hog("capped/a", Terms{})), inGroup(inside, hog("capped/in/b", Terms{})), hog("capped", Terms{Max: 500000}),
	}, 6*time.Minute)
	if _, all := w.parts(2*time.Minute, 6*time.Minute); all > .501 || all < .47 {
		t.Errorf("all of the group have %.3f of the quota, want 0.5", all)
	}

	now, a, b := w.clock(), &Who{Name: "capped/a", Group: capped}, &Who{Name: "capped/in/b", Group: inside}
	p := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0)
	if d := p.Take(a, Terms{}, now, []Amount{{N: 51, Count: 100}}, false); !d.Never || d.Share != 50 {
		t.Errorf("a call that is larger than the group's maximum: %+v", d)
	}
	p.Take(a, Terms{}, now, []Amount{{N: 40, Count: 100}}, false)
	later := now + int64(20*time.Second)
	d := p.Take(b, Terms{}, later, []Amount{{N: 20, Count: 100}}, false)
	if !d.Denied || d.Never || p.Lend(b, later, []Amount{{N: 20, Count: 100}}, []int64{40}) {
		t.Errorf("beyond the group's maximum: %+v", d)
	}
	if wait := time.Duration(d.Until - later); wait < 39*time.Second || wait > 41*time.Second {
		t.Errorf("it may pass after %v, want 40s", wait)
	}
	if d := p.Take(b, Terms{}, later, []Amount{{N: 10, Count: 100}}, false); d.Denied && !p.Lend(b, later, []Amount{{N: 10, Count: 100}}, []int64{40}) {
		t.Errorf("within the group's maximum: %+v", d)
	}
}

// A waiting call leaves the member that it waits for, though calls of the same user count for another
// member by then, or would.
func TestWaitingCallLeavesItsMember(t *testing.T) {
	minute := []limit.Limit{limit.New(1<<40, time.Minute).Using(limit.SlidingLog)}
	p, other := NewPool(minute, 0), NewPool(minute, 0)
	acme := newGroup("acme", nil, Terms{Weight: 7})
	ask := []Amount{{N: 1, Count: 1 << 40}}
	for i := range mostSingle {
		p.Take(named(fmt.Sprint(i)), Terms{}, 1, ask, false)
	}
	user := &Who{Name: "acme/late", Group: acme}
	waiting := p.Wait(user, Terms{}, 2)
	if m := p.members["acme"]; m == nil || m.waiting != 1 || m.own.Weight != 7 {
		t.Fatalf("the call does not wait for the project: %+v", m)
	}
	other.Take(user, Terms{}, 3, ask, false)
	for minute := range 3 {
		p.Take(named("x"), Terms{}, int64(minute+1)*int64(10*time.Minute), ask, false)
	}
	waiting.Turn(true, -1)
	p.Take(user, Terms{}, int64(31*time.Minute), ask, false)
	waiting.Leave(int64(31 * time.Minute))
	if m := p.members["acme"]; m.waiting != 0 || m.byOwn {
		t.Errorf("%d calls of the project wait", m.waiting)
	}
	if m := p.members["acme/late"]; m == nil || m.waiting != 0 {
		t.Errorf("the user's own member: %+v", m)
	}
}

// What users have used on another node counts for their project, all of it, where they have no member of their own: in
// however many messages it is reported, and if a later report is on one of them alone.
func TestReportsOfUsersAddUp(t *testing.T) {
	minute := []limit.Limit{limit.New(1<<40, time.Minute).Using(limit.SlidingLog)}
	p, other := NewPool(minute, 0), NewPool(minute, 0)
	acme := newGroup("acme", nil, Terms{})
	for i := range mostSingle {
		p.Take(named(fmt.Sprint(i)), Terms{}, 1, []Amount{{N: 1, Count: 1 << 40}}, false)
	}
	for i := range 10 {
		other.Take(&Who{Name: fmt.Sprint("acme/", i), Group: acme}, Terms{}, 1, []Amount{{N: 100, Count: 1 << 40}}, false)
	}
	for _, want := range []int64{1000, 1000, 1100} {
		if want > 1000 {
			other.Take(&Who{Name: "acme/3", Group: acme}, Terms{}, 2, []Amount{{N: 100, Count: 1 << 40}}, false)
		}
		for part := range slices.Chunk(other.Report(2, want == 1000).Members, 4) {
			p.Hear("other", 2, Report{Members: part})
		}
		if got := p.members["acme"].parts[0].usedAt(2); got != want {
			t.Errorf("%v counts for the project, want %v", got, want)
		}
	}
}

// Very many users of one project make no more members than a pool may have: calls of those beyond
// count for the project.
func TestMembersAreBounded(t *testing.T) {
	p := NewPool([]limit.Limit{limit.New(1<<40, 24*time.Hour).Using(limit.SlidingLog)}, 0)
	acme := newGroup("acme", nil, Terms{})
	for i := range 10 * mostSingle {
		w := &Who{Name: fmt.Sprint("acme/", i), Group: acme}
		p.Take(w, Terms{}, int64(i), []Amount{{N: 1, Count: 1 << 40}}, false)
		p.Correct(w, int64(i), []int64{1}, nil)
	}
	if n := len(p.members); n > mostSingle+1 {
		t.Errorf("%d members", n)
	}
	if used := p.members["acme"].parts[0].used.sumAt(10 * mostSingle); used < 2*8*mostSingle {
		t.Errorf("%v counts for the project", used)
	}
}

// A maximum that is set for a group holds for the next call of those in it, and so does that of a group
// that a member comes to be in.
func TestKeysAreBounded(t *testing.T) {
	p := NewPool([]limit.Limit{limit.New(1<<40, 24*time.Hour).Using(limit.SlidingLog)}, 0)
	acme := newGroup("acme", nil, Terms{})
	for i := range 3 * mostSingle {
		key := newGroup(fmt.Sprint("acme", KeySign, "key ", i), acme, Terms{})
		p.Take(&Who{Name: fmt.Sprint("acme/u", KeySign, i), Group: key}, Terms{}, int64(i), []Amount{{N: 1, Count: 1 << 40}}, false)
	}
	if members, groups := len(p.members), len(p.groups); members > mostSingle+1 || groups > mostSingle+1 {
		t.Errorf("%d members and %d groups", members, groups)
	}
	if used := p.groups["acme"].parts[0].used.sumAt(3 * mostSingle); used != 3*mostSingle {
		t.Errorf("%v counts for the project, want all", used)
	}
}

// The users and the keys of a project have a part of the minimum that is dedicated to the project.
func TestDedicatedMinimumOfAGroup(t *testing.T) {
	acme := newGroup("acme", nil, Terms{Min: 250000})
	user := inGroup(acme, late(hog("acme/u", Terms{}), 210*time.Second))
	dedicated := &client{name: "acme", terms: Terms{Min: 250000}, dedicated: true}
	w := simulate(t, 100, 0, []*client{hog("hog", Terms{}), hog("other", Terms{Weight: 9}), dedicated, user}, 8*time.Minute)
	w.expect(1, 3, map[string]float64{"hog": .075, "other": .675})
	w.expect(4, 7, map[string]float64{"acme/u": .25})
}

func TestMaximumOfAGroupChanges(t *testing.T) {
	const now = int64(1e18)
	acme := newGroup("acme", nil, Terms{})
	search := newGroup("acme/search", acme, Terms{})
	alice := &Who{Name: "acme/search/alice", Group: search}
	p := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0)
	take := func(n int64) Denial { return p.Take(alice, Terms{}, now, []Amount{{N: n, Count: 100}}, false) }
	if d := take(40); d.Denied {
		t.Fatalf("without a maximum: %+v", d)
	}
	acme.Set(Terms{Max: 300000})
	if d := take(31); !d.Never || d.Share != 30 {
		t.Errorf("more than the new maximum of a group: %+v", d)
	}
	acme.Set(Terms{Max: 500000})
	if d := take(11); !d.Denied || d.Never {
		t.Errorf("beyond the maximum of a group: %+v", d)
	}
	acme.Set(Terms{})
	if d := take(11); d.Denied {
		t.Errorf("after the maximum was taken back: %+v", d)
	}
	alice.Group = newGroup("beta", nil, Terms{Max: 200000})
	if d := take(21); !d.Never || d.Share != 20 {
		t.Errorf("in another group: %+v", d)
	}
}

// When groups are compared, each has counted what those in it were served, over the weight that it had then.
func TestServedInGroups(t *testing.T) {
	p := NewPool([]limit.Limit{limit.New(1000, time.Minute).Using(limit.SlidingLog)}, 0)
	acme, beta := newGroup("acme", nil, Terms{Weight: 2}), newGroup("beta", nil, Terms{})
	search := newGroup("acme/search", acme, Terms{})
	alice, bob := &Who{Name: "acme/search/alice", Group: search}, &Who{Name: "acme/bob", Group: acme}
	carol := &Who{Name: "beta/carol", Group: beta}
	now := int64(time.Hour)
	take := func(w *Who, n int64) {
		t.Helper()
		if d := p.Take(w, Terms{}, now, []Amount{{N: n, Count: 1000}}, false); d.Denied {
			t.Fatalf("%s: %+v", w.Name, d)
		}
	}
	expect := func(wantAcme, wantBeta int64) {
		t.Helper()
		inAcme, inBeta := p.groups["acme"].parts[0].served>>p.quotas[0].scale, p.groups["beta"].parts[0].served>>p.quotas[0].scale
		if inAcme != wantAcme || inBeta != wantBeta {
			t.Errorf("acme was served %v, and beta %v; want %v and %v", inAcme, inBeta, wantAcme, wantBeta)
		}
	}
	take(alice, 40)
	take(bob, 20)
	take(carol, 30)
	p.Correct(alice, now, []int64{-10}, nil)
	expect(25, 30)
	take(alice, 10) // while acme has weight 2
	acme.Set(Terms{Weight: 5})
	p.compute(0, now)
	take(bob, 10)
	expect(25+10/2+10/5, 30)
	take(carol, 6)
	carol.Group = acme // what carol was served before stays beta's
	take(carol, 4)
	if served := p.groups["beta"].parts[0].served >> p.quotas[0].scale; served != 36 {
		t.Errorf("beta was served %v; want 36", served)
	}
}
