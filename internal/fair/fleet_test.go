package fair

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// node is one of the nodes whose pools tell each other what they know.
func nodes(n int, quota int64) (list []*Pool) {
	for range n {
		list = append(list, NewPool([]limit.Limit{limit.New(quota, time.Minute).Using(limit.SlidingLog)}, 0))
	}
	return list
}

// tell lets every node report to the others.
func tell(t *testing.T, list []*Pool, now int64) {
	t.Helper()
	for i, p := range list {
		message, err := json.Marshal(p.Report(now, true))
		if err != nil {
			t.Fatal(err)
		}
		var r Report
		if err := json.Unmarshal(message, &r); err != nil {
			t.Fatal(err)
		}
		for k, other := range list {
			if k != i {
				other.Hear(string(rune('a'+i)), now, r)
			}
		}
	}
}

func take(p *Pool, name string, now, n int64) bool {
	return !p.Take(named(name), Terms{Weight: 1}, now, []Amount{{N: n, Count: 60}}, false).Denied
}

func TestNodesKnowWhatOthersUse(t *testing.T) {
	const start = 1_700_000_040e9
	list := nodes(2, 60)
	list[0].Wait(named("a"), Terms{Weight: 1}, start)
	list[1].Wait(named("b"), Terms{Weight: 1}, start)
	tell(t, list, start)
	got := 0
	for range 60 {
		for _, p := range list {
			if take(p, "a", start, 1) {
				got++
			}
		}
		tell(t, list, start)
	}
	if got != 30 {
		t.Errorf("a has %d of 60 on two nodes, while b waits on one of them; want 30", got)
	}

	// The next window begins with as much for all, on all nodes.
	tell(t, list, start+60e9)
	if !take(list[1], "a", start+60e9, 1) {
		t.Error("a has nothing of the next window")
	}
}

// A project whose calls do not wait, and were turned away on one node, wants its whole share on all of them.
func TestNodesKnowWhoWasTurnedAway(t *testing.T) {
	const start = 1_700_000_040e9
	list := nodes(2, 60)
	amounts := []Amount{{N: 1, Count: 60}}
	for at := int64(start); at < start+90e9; at += 1e9 { // neither of them is new any more
		take(list[1], "hog", at, 1)
		if at%10e9 == 0 {
			take(list[0], "retries", at, 1)
		}
	}
	list[1].Wait(named("hog"), Terms{Weight: 1}, start+90e9)
	list[0].Want(named("retries"), Terms{Weight: 1}, start+90e9, amounts, false)
	tell(t, list, start+90e9)
	for _, s := range list[1].Read(start + 91e9) {
		if s.Name == "retries" && s.Parts[0].Share != 30 {
			t.Errorf("the other node keeps %d of 60 for a project that was turned away; want 30", s.Parts[0].Share)
		}
	}
}

// What a project asks for in no time, because its calls always wait, is reported too.
func TestNodesKnowWhoAlwaysWaits(t *testing.T) {
	const start = 1_700_000_040e9
	list := nodes(2, 1e6)
	amounts := []Amount{{N: 20_000, Count: 1e6}}
	for at := int64(start); at < start+200e9; at += 1e9 {
		list[0].Take(named("hog"), Terms{Weight: 1}, at, amounts, false)
		list[0].Wait(named("hog"), Terms{Weight: 1}, at)
	}
	tell(t, list, start+200e9)
	if all := list[1].Read(start + 200e9); len(all) != 1 || all[0].Parts[0].Used == 0 {
		t.Errorf("the other node knows %+v", all)
	}
}

func TestConfirmFindsWhatANodeDidNotKnow(t *testing.T) {
	const start = 1_700_000_040e9
	p := nodes(1, 60)[0]
	p.Wait(named("b"), Terms{Weight: 1}, start)
	amounts := []Amount{{N: 1, Count: 60}}
	for _, tt := range []struct {
		counted int64
		denied  bool
	}{{1, false}, {20, false}, {29, false}, {31, true}} {
		if !take(p, "a", start, 1) {
			t.Fatal("the node does not know of more")
		}
		if d := p.Confirm(named("a"), start, amounts, []int64{tt.counted}); d.Denied != tt.denied {
			t.Errorf("%d in all: %+v", tt.counted, d)
		}
	}
	p.GiveBack(named("a"), start, amounts, true)
	if take(p, "a", start, 1) {
		t.Error("the node has forgotten what others use")
	}
}

// A share that has become smaller since a call took of it, because others have come, denies nothing after all. Once the
// first caller of a project was denied when a second one came, although nearly all of the limit was free.
func TestConfirmDeniesNothingThatIsKnown(t *testing.T) {
	const start, quota = 1_700_000_040e9, 1000
	p := nodes(1, quota)[0]
	p.Seed(named("a"), Terms{Weight: 1}, start, []int64{100})
	one := []Amount{{N: 50, Count: quota}}
	if d := p.Take(named("a"), Terms{Weight: 1}, start, one, false); d.Denied {
		t.Fatalf("%+v", d)
	}
	for i := range 7 {
		take(p, string(rune('b'+i)), start, 1)
	}
	if d := p.Confirm(named("a"), start, one, []int64{150}); d.Denied {
		t.Errorf("nothing is used elsewhere: %+v", d)
	}
}

// A call that is larger than the share does not begin on a node where the member has not called for long, if the member
// has used its share on other nodes.
func TestLargeCallsKnowWhatIsUsedElsewhere(t *testing.T) {
	const quota = 120
	list, now, got := nodes(4, quota), int64(1_700_000_040e9), 0
	ask := func(p *Pool, name string, n int64) bool {
		return !p.Take(named(name), Terms{Weight: 1}, now, []Amount{{N: n, Count: quota}}, false).Denied
	}
	wants := func(p *Pool, name string) {
		p.Want(named(name), Terms{Weight: 1}, now, []Amount{{N: 1, Count: quota}}, false)
	}
	for _, p := range list {
		wants(p, "a")
		wants(p, "b")
		p.Peek(named("a"), now, []Amount{{N: 1, Count: quota}})
	}
	tell(t, list, now)
	for range 75 {
		for _, p := range list {
			wants(p, "b")
		}
		ask(list[0], "b", 1)
		ask(list[0], "a", 1)
		tell(t, list, now)
		now += 1e9
	}
	for _, p := range list {
		now += 5e8
		wants(p, "b")
		if ask(p, "a", 70) {
			got++
		}
		tell(t, list, now)
	}
	if got > 1 {
		t.Errorf("%d calls of 70 have begun on four nodes, while b wants half of %d", got, quota)
	}
}

// What calls give back counts on all nodes: a member that reserves much and uses little was not served much.
func TestNodesKnowWhatIsGivenBack(t *testing.T) {
	list, now := nodes(2, 100), int64(1_700_000_040e9)
	take(list[0], "a", now, 1)
	tell(t, list, now)
	before := list[1].members["a"].parts[0].served
	for range 20 {
		call := []Amount{{N: 40, Count: 100}}
		if list[0].Take(named("a"), Terms{Weight: 1}, now, call, false).Denied {
			t.Fatal("a call was denied")
		}
		tell(t, list, now)
		list[0].Correct(named("a"), now, []int64{-39}, call)
		tell(t, list, now)
		now += 10e9
	}
	if got := (list[1].members["a"].parts[0].served - before) >> list[1].quotas[0].scale; got != 20 {
		t.Errorf("another node has counted %d, want 20", got)
	}
}

func TestDeadNodesWantNothing(t *testing.T) {
	const start = 1_700_000_040e9
	list := nodes(2, 60)
	list[0].Wait(named("a"), Terms{Weight: 1}, start)
	tell(t, list, start)
	for range 60 {
		take(list[1], "b", start, 1)
	}
	if take(list[1], "b", start, 1) {
		t.Error("b has all while a waits on another node")
	}
	late := int64(start) + lost
	if !take(list[1], "b", late, 1) && !list[1].Lend(named("b"), late, []Amount{{N: 1, Count: 60}}, []int64{30}) {
		t.Error("b has nothing that a node wants which is lost")
	}
}

func TestReportsThatMakeNoSense(t *testing.T) {
	const start = 1_700_000_040e9
	p := nodes(1, 60)[0]
	for _, r := range [][]MemberReport{
		nil,
		{{Name: "x"}},
		{{Name: "x", Parts: make([]PartReport, 2)}},
		{{Name: "x", Parts: []PartReport{{Used: math.MinInt64}}}},
		{{Name: "x", Parts: []PartReport{{Used: math.MaxInt64}}}},
		{{Name: "x", Parts: []PartReport{{Gathers: -1}}}},
		{{Name: "x", Parts: []PartReport{{Waiting: -1}}}},
		{{Name: "x", Parts: []PartReport{{Calls: math.MaxInt64}}}},
		{{Name: "x", Parts: []PartReport{{Rate: -1}}}},
		{{Name: "x", Idle: -1, Parts: make([]PartReport, 1)}},
		{{Name: "x", Terms: Terms{Weight: -1}, Parts: make([]PartReport, 1)}},
		{{Name: "x", Terms: Terms{Min: 2 * Whole}, Parts: make([]PartReport, 1)}},
	} {
		p.Hear("other", start, Report{Members: r})
	}
	if !p.Empty() {
		t.Error("there is a member")
	}
	big := make([]MemberReport, 2*mostMembers)
	for i := range big {
		big[i] = MemberReport{Name: string(rune(i)), Parts: []PartReport{{Calls: 1}}}
	}
	p.Hear("other", start, Report{Members: big})
	if n := int(p.joined.Load()); n > mostMembers {
		t.Errorf("%d members", n)
	}
}

// What others have used comes back a period after they have reported that they took it. Of what they had used before their
// first report nobody knows when that was, so it comes back evenly.
func TestWhatOthersUseComesBackAPeriodLater(t *testing.T) {
	const start, second, quota = 1_700_000_040e9, 1e9, 1000
	list := nodes(3, quota)
	list[0].Wait(named("a"), Terms{Weight: 1}, start)
	tell(t, list[:2], start)
	take(list[0], "a", start+second, 10)
	tell(t, list[:2], start+second)
	take(list[0], "a", start+20*second, 30)
	tell(t, list, start+20*second)
	for i, want := range map[int]map[int]int64{
		1: {0: 0, 19: 0, 39: 0, 42: 10, 59: 10}, // the times are after start + 20 s
		2: {0: 0, 15: 10, 30: 20, 45: 30, 59: 40},
	} {
		var back, stays curve
		list[i].comesBack(list[i].top, 0, start+20*second, 40, &back, &stays)
		for k, n := range want {
			if math.Abs(float64(back[k]-n)) > 1 {
				t.Errorf("node %d expects that %d of 40 have come back %d s later; want %d", i, back[k], k, n)
			}
		}
	}
	if used := list[2].top.parts[0].usedAt(start + 20*second); used != 40 {
		t.Errorf("a node that has come later knows that %d are used, want 40", used)
	}

	var back, stays curve
	list[1].comesBack(list[1].top, 0, start+82*second, 40, &back, &stays)
	if back[0] != 0 {
		t.Errorf("%d of 40 come back that no other node has reported for a period", back[0])
	}
	list[0].Reset()
	list[2].Reset()
	take(list[0], "a", start+21*second, 10)
	tell(t, []*Pool{list[0], list[2]}, start+21*second)
	list[2].comesBack(list[2].top, 0, start+21*second, 10, &back, &stays)
	if back[58] != 0 {
		t.Errorf("%d of 10 that were taken after a reset come back within the period", back[58])
	}
}

// Nothing of a day comes back before it ends, on whichever node it was used.
func TestWhatOthersUseOfADayComesBackWhenItEnds(t *testing.T) {
	const start, hour = 1_700_000_040e9, int64(time.Hour)
	var list []*Pool
	for range 2 {
		list = append(list, NewPool([]limit.Limit{limit.New(100, 24*time.Hour).Using(limit.FixedWindow)}, 0))
	}
	for at := int64(start); at < start+3*hour; at += hour {
		list[1].Wait(named("b"), Terms{Weight: 1}, at)
		list[0].Take(named("a"), Terms{Weight: 1}, at, []Amount{{N: 10, Count: 100}}, false)
		tell(t, list, at)
	}
	var back, stays curve
	list[1].comesBack(list[1].members["a"], 0, start+3*hour, 30, &back, &stays)
	if back[0] != 0 || back[parts/2] != 0 || back[parts-1] != 30 {
		t.Errorf("of 30, %d come back at once, %d in half a day, and %d when the day has ended", back[0], back[parts/2], back[parts-1])
	}
}

// Other nodes know at once that a call has ended that took longer than the shortest period.
func TestNodesKnowThatALongCallHasEnded(t *testing.T) {
	now := int64(1_700_000_040e9)
	list := nodes(2, 4)
	for _, p := range list {
		p.Hold(0)
	}
	taken := []Amount{{N: 3, Count: 4}}
	list[0].Take(named("a"), Terms{Weight: 1}, now, taken, false)
	list[1].Wait(named("a"), Terms{Weight: 1}, now)
	for range 120 {
		tell(t, list, now)
		now += int64(time.Second)
	}
	if held := list[1].members["a"].parts[0].usedAt(now); held != 3 {
		t.Errorf("a holds %d on another node, which knows of %d", 3, held)
	}
	list[0].Correct(named("a"), now, []int64{-3}, taken)
	tell(t, list, now)
	if held := list[1].members["a"].parts[0].usedAt(now); held != 0 {
		t.Errorf("a holds nothing any more, and another node knows of %d", held)
	}
}

// What a member has used is known to other nodes however much it has taken since its node began.
func TestReportsAfterVeryMuchWasTaken(t *testing.T) {
	const start = 1_700_000_040e9
	list := nodes(2, 60)
	list[1].Wait(named("b"), Terms{Weight: 1}, start)
	for range 30 {
		take(list[0], "a", start, 1)
	}
	list[0].members["a"].parts[0].taken = 5 * mostReported
	tell(t, list, start)
	if take(list[1], "a", start, 1) {
		t.Error("a has used its share on another node, and passes")
	}
}
