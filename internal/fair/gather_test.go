package fair

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// gatherer is a pool of a group with a member whose call is larger than its share, and waits.
type gatherer struct {
	*Pool
	acme         *Group
	large, small *Who
	waiting      Waiting
	now          int64
}

func newGatherer(limits ...limit.Limit) *gatherer {
	acme := newGroup("acme", nil, Terms{})
	g := &gatherer{Pool: NewPool(limits, 0), acme: acme, now: int64(time.Hour)}
	g.Inside(acme)
	search := newGroup("acme/search", acme, Terms{})
	g.large, g.small = &Who{Name: "acme/search/large", Group: search}, &Who{Name: "acme/small", Group: acme}
	return g
}

// ask lets a member ask for an amount and be denied by the limit itself.
func (g *gatherer) ask(w *Who, n int64) {
	amounts := []Amount{{N: n, Count: 100}}
	if !g.Take(w, Terms{}, g.now, amounts, true).Denied {
		g.GiveBack(w, g.now, amounts, true)
	}
}

// begin lets both members wait.
func (g *gatherer) begin() {
	waiting := g.Wait(g.small, Terms{}, g.now)
	g.ask(g.small, 1)
	waiting.Turn(false, -1)
	g.waiting = g.Wait(g.large, Terms{}, g.now)
	g.ask(g.large, 80)
	g.waiting.Turn(false, -1)
}

func (g *gatherer) want(t *testing.T, when string, large, small int64) {
	t.Helper()
	shares := map[string]int64{}
	for _, s := range g.Read(g.now) {
		shares[s.Name] = s.Parts[0].Share
	}
	if shares[g.large.Name] != large || shares[g.small.Name] != small {
		t.Errorf("%s: %v; want %d for the large call, and %d for the small ones", when, shares, large, small)
	}
}

// A member whose call is larger than its share has that much until the call leaves, or waits for something else.
func TestGather(t *testing.T) {
	g := newGatherer(limit.New(100, time.Minute).Using(limit.SlidingLog))
	g.begin()
	g.want(t, "while it waits", 80, 20)
	g.waiting.Turn(true, -1)
	g.want(t, "when something else denies it", 50, 50)
	g.waiting.Turn(false, -1)
	g.want(t, "when it waits again", 80, 20)
	g.waiting.Leave(g.now)
	g.want(t, "when it has left", 50, 50)
}

// Of a fixed window nothing comes free before its end, so nothing is gathered.
func TestGatherInAFixedWindow(t *testing.T) {
	g := newGatherer(limit.PerDay(100).ResetAt(0, nil))
	g.begin()
	g.want(t, "while it waits", 50, 50)
}

// One member gathers at a time, on all nodes.
func TestGatherElsewhere(t *testing.T) {
	minute := limit.New(100, time.Minute).Using(limit.SlidingLog)
	g, other := newGatherer(minute), newGatherer(minute)
	g.begin()
	text, err := json.Marshal(g.Report(g.now, true))
	if err != nil {
		t.Fatal(err)
	}
	var report Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	other.Hear("g", other.now, report)
	other.large = &Who{Name: "acme/other", Group: other.acme}
	other.begin()
	other.want(t, "on another node", 10, 10)
	other.now += lost
	other.ask(other.large, 80)
	other.waiting.Turn(false, -1)
	other.want(t, "when the other node is lost", 80, 20)
}

// A call that is denied because others were served less is denied until its turn is due at the latest, and is not told to
// come back at once.
func TestUntilItsTurn(t *testing.T) {
	const quota = 100
	p, start := NewPool([]limit.Limit{limit.New(quota, time.Minute).Using(limit.SlidingLog)}, 0), int64(1_700_000_040e9)
	ask := func(name string, at, n int64) Denial {
		return p.Take(named(name), Terms{Weight: 1}, at, []Amount{{N: n, Count: quota}}, false)
	}
	byTurn := 0
	for at := start; at < start+120e9; at += 5e8 {
		ask("b", at, 1)
		if at < start+2e9 {
			continue
		}
		d, x := ask("a", at, 60), &p.members["a"].parts[0]
		if !d.Denied || !x.fits(&p.quotas[0], x.counts(at), 60) {
			continue
		}
		if byTurn++; d.Until < at+1e9 {
			t.Fatalf("after %v: until %v later", time.Duration(at-start), time.Duration(d.Until-at))
		}
	}
	if byTurn == 0 {
		t.Error("no call was denied because others were served less")
	}
}

// What a member has used of what it gathered counts later, as far as that is more than its share: otherwise a member that
// gathers would have more than the others.
func TestWhatWasGatheredCountsLater(t *testing.T) {
	g := newGatherer(limit.New(100, time.Minute).Using(limit.SlidingLog))
	g.begin()
	amounts := []Amount{{N: 80, Count: 100}}
	if d := g.Take(g.large, Terms{}, g.now, amounts, true); d.Denied {
		t.Fatalf("%+v", d)
	}
	g.waiting.Leave(g.now)
	g.Wait(g.large, Terms{}, g.now)
	for _, denied := range []bool{true, false} {
		g.now += int64(61 * time.Second)
		if d := g.Take(g.large, Terms{}, g.now, amounts, false); d.Denied != denied {
			t.Errorf("the next call of 80, at %v: %+v", time.Duration(g.now), d)
		}
	}
}

// A call that is larger than its share waits for those that were served less for a minute at most: they may wait for
// something else, of which the pool knows nothing.
func TestALargeCallIsPostponedByAMinuteAtMost(t *testing.T) {
	p, start := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0), int64(time.Hour)
	large := []Amount{{N: 80, Count: 100}}
	p.Take(named("b"), Terms{}, start, []Amount{{N: 1, Count: 100}}, false)
	if d := p.Take(named("a"), Terms{}, start, []Amount{{N: 2, Count: 100}}, false); d.Denied {
		t.Fatalf("%+v", d)
	}
	waited := int64(0)
	for denied := true; denied && waited < int64(10*time.Minute); waited += int64(time.Second) {
		p.Want(named("b"), Terms{}, start+waited, large, false)
		denied = p.Take(named("a"), Terms{}, start+waited, large, true).Denied
	}
	if waited < int64(time.Minute) || waited > int64(125*time.Second) {
		t.Errorf("it has waited for %v: want a minute, and one until what was used counts no longer", time.Duration(waited))
	}
}

// Among very many siblings large calls do not take turns, because to compare all would cost too much.
func TestLargeCallsAmongMany(t *testing.T) {
	for _, others := range []int{mostCompared - 1, mostCompared} {
		p, now := NewPool([]limit.Limit{limit.New(1000, time.Minute).Using(limit.SlidingLog)}, 0), int64(time.Hour)
		large := []Amount{{N: 100, Count: 1000}}
		ask := func() Denial { return p.Take(named("a"), Terms{}, now, large, false) }
		d := ask()
		for range 2 {
			now += int64(31 * time.Second)
			for i := range others {
				p.Want(named(fmt.Sprint(i)), Terms{}, now, large, false)
			}
			d = ask()
		}
		if d.Denied != (others < mostCompared) {
			t.Errorf("a large call of the only one that was served, beside %d others that want as much: %+v", others, d)
		}
	}
}
