package figures

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// allNamed says of every name that an operator has given it.
func allNamed(Name, bool) bool { return true }

// noneNamed says of every name that a client has invented it, but for those that stand for several.
func noneNamed(n Name, keysOwn bool) bool { return keysOwn || n.Project == Other && n.Model == "gpt" }

// counted is a call in a naive model, which keeps all of them.
type counted struct {
	at time.Time
	of Name
	Call
}

// naive adds up the calls of a list that match.
func naive(list []counted, match func(c *counted) bool) (sum Sum, by map[string]int64) {
	by = map[string]int64{}
	for _, c := range list {
		if !match(&c) {
			continue
		}
		sum.count(&c.Call)
		if c.Denied {
			by[c.Limit]++
		}
	}
	return sum, by
}

// Whatever the calls and the time between them, the figures are those of a model that keeps every call.
func TestFiguresAreThoseOfANaiveModel(t *testing.T) {
	seconds := func(t *rapid.T, of ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(of).Draw(t, "seconds later")) * time.Second
	}
	rapid.Check(t, func(rt *rapid.T) {
		var list []counted
		var later []time.Duration
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			later = append(later, seconds(rt, 0, 0, 1, 4, 30, 59, 60, 61, 600, 3600))
			list = append(list, counted{of: drawName(rt), Call: drawCall(rt)})
		}
		look := seconds(rt, 0, 1, 5, 54, 59, 300, 840, 900, 3540)
		var d differences
		synctest.Test(t, func(t *testing.T) {
			f := New(allNamed)
			for i := range list {
				time.Sleep(later[i])
				list[i].at = time.Now()
				f.Count(list[i].of, &list[i].Call)
			}
			time.Sleep(look)
			d.checkRecent(f, list)
			d.checkHistory(f, list)
		})
		if len(d) > 0 {
			rt.Fatal(strings.Join(d, "\n"))
		}
	})
}

// differences says where figures differ from those of the model.
type differences []string

func (d *differences) compare(what string, want, got any) {
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		*d = append(*d, fmt.Sprintf("%s (-want +got):\n%s", what, diff))
	}
}

func drawName(t *rapid.T) Name {
	return Name{
		Project: rapid.SampledFrom([]string{"a", "a/b", "c"}).Draw(t, "project"),
		Model:   rapid.SampledFrom([]string{"", "gpt"}).Draw(t, "model"),
		Key:     rapid.SampledFrom([]string{"", "k1"}).Draw(t, "key"),
	}
}

func drawCall(t *rapid.T) Call {
	c := Call{
		Denied: rapid.Bool().Draw(t, "denied"), Failed: rapid.Bool().Draw(t, "failed"), Waited: rapid.Bool().Draw(t, "waited"),
		Input: rapid.Int64Range(0, 1e6).Draw(t, "input"), Output: rapid.Int64Range(0, 1e6).Draw(t, "output"),
		Dollars: rapid.Int64Range(0, 1e9).Draw(t, "dollars"), Estimated: rapid.Int64Range(0, 1e6).Draw(t, "estimated"),
	}
	if c.Denied {
		c.Limit = rapid.SampledFrom([]string{"rpm", "tpm", "minute"}).Draw(t, "limit")
	}
	return c
}

func (d *differences) checkRecent(f *Figures, list []counted) {
	now := time.Now()
	age := func(c *counted, period time.Duration) int64 {
		return now.UnixNano()/int64(period) - c.at.UnixNano()/int64(period)
	}
	seen := map[Name]bool{}
	f.Each(func(of Name, r *Recent) {
		seen[of] = true
		window, by := naive(list, func(c *counted) bool { return c.of == of && age(c, time.Minute) < Window })
		d.compare("the sum", window, r.Sum)
		d.compare("the denials", by, maps.Collect(byLimit(r.Denials())))
		minute, _ := naive(list, func(c *counted) bool { return c.of == of && age(c, step) < int64(steps) })
		d.compare("the minute", minute, r.Minute)
		for i := range Window {
			at, _ := naive(list, func(c *counted) bool { return c.of == of && age(c, time.Minute) == int64(Window-1-i) })
			d.compare("a minute of the sparkline", [2]int64{at.Passed, at.Denied}, [2]int64{r.PassedBy[i], r.DeniedBy[i]})
		}
	})
	for _, c := range list {
		if age(&c, time.Minute) < Window && !seen[c.of] {
			*d = append(*d, fmt.Sprint(c.of, " is missing"))
		}
	}
}

func (d *differences) checkHistory(f *Figures, list []counted) {
	points := f.History(func(n Name) bool { return n.Project == "a" })
	if len(points) != Minutes || points[Minutes-1].Time != time.Now().UTC().Truncate(time.Minute) {
		*d = append(*d, fmt.Sprintf("%d points, the last of %v", len(points), points[len(points)-1].Time))
	}
	for _, p := range points {
		sum, by := naive(list, func(c *counted) bool { return c.of.Project == "a" && c.at.Truncate(time.Minute).Equal(p.Time) })
		d.compare("a point", sum, p.Sum)
		d.compare("its denials", by, maps.Collect(byLimit(p.Denials())))
	}
}

func byLimit(list []Denials) func(func(string, int64) bool) {
	return func(yield func(string, int64) bool) {
		for _, d := range list {
			if !yield(d.Limit, d.Count) {
				return
			}
		}
	}
}

// Denials are listed with the most first.
func TestDenialsAreInOrder(t *testing.T) {
	f := New(allNamed)
	for _, limit := range strings.Fields("tpm rpm tpm minute tpm rpm") {
		f.Count(Name{Project: "a"}, &Call{Denied: true, Limit: limit})
	}
	f.Each(func(_ Name, r *Recent) {
		if diff := cmp.Diff([]Denials{{"tpm", 3}, {"rpm", 2}, {"minute", 1}}, r.Denials()); diff != "" {
			t.Error(diff)
		}
	})
}

// passed returns how many calls have passed, by name.
func passed(f *Figures) map[Name]int64 {
	all := map[Name]int64{}
	f.Each(func(of Name, r *Recent) { all[of] = r.Passed })
	return all
}

// Names that clients invent have a bounded number of lots. Those beyond it count for the project above, or
// for all, and nothing is lost. Names that an operator has given keep theirs. After an hour without
// calls, there is room again.
func TestNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(noneNamed)
		const invented = mostUnnamed + 1000
		for i := range invented {
			f.Count(Name{Project: fmt.Sprintf("acme/user%d", i), Model: "gpt"}, new(Call))
			f.Count(Name{Project: fmt.Sprintf("project%d", i), Model: fmt.Sprintf("model%d", i)}, new(Call))
		}
		f.Count(Name{Project: "mine", Model: "gpt", Key: "k"}, &Call{KeysOwn: true})
		all := passed(f)
		total := int64(0)
		for _, n := range all {
			total += n
		}
		if total != 2*invented+1 {
			t.Errorf("%d of %d calls are counted", total, 2*invented+1)
		}
		if len(all) > mostUnnamed+10 {
			t.Errorf("there are %d lots", len(all))
		}
		if all[Name{"mine", "gpt", "k"}] != 1 || all[Name{Project: Other, Model: "gpt"}] == 0 || all[rest] == 0 {
			t.Errorf("those for many: %d and %d", all[Name{Project: Other, Model: "gpt"}], all[rest])
		}
		time.Sleep(61 * time.Minute)
		f.Count(Name{Project: "late", Model: "model"}, new(Call))
		if diff := cmp.Diff(map[Name]int64{{Project: "late", Model: "model"}: 1}, passed(f)); diff != "" {
			t.Errorf("an hour later:\n%s", diff)
		}
		if n := len(f.lots()); n != 1 {
			t.Errorf("%d lots are left", n)
		}
	})
}

// A path without room counts for the project above it, as long as there is room for that.
func TestUsersCountForTheirProject(t *testing.T) {
	want := Name{Project: "acme", Model: "gpt"}
	if got := (Name{Project: "acme/alice", Model: "gpt"}).less(); got != want {
		t.Errorf("%+v", got)
	}
}

// Counting allocates nothing once a name is known.
func TestCountAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still
		f := New(allNamed)
		name, c := Name{Project: "acme/search", Model: "gpt", Key: "k"}, &Call{Input: 3}
		denied := &Call{Denied: true, Limit: "rpm"}
		count := func() {
			f.Count(name, c)
			f.Count(name, denied)
		}
		count()
		if n := testing.AllocsPerRun(100, count); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// A name takes little memory while it is idle: minutes without calls take none.
func TestIdleMinutesTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(allNamed)
		for range 500 {
			f.Count(Name{Project: "a"}, new(Call))
			time.Sleep(20 * time.Minute)
		}
		l := f.lots()[0]
		if len(l.minutes) > 3 || cap(l.minutes) > 8 || len(l.steps) > 1 {
			t.Errorf("%d minutes in %d places, %d steps", len(l.minutes), cap(l.minutes), len(l.steps))
		}
	})
}

// Nothing is lost while many count, others look, and sweeps remove what is idle.
func TestFiguresRace(t *testing.T) {
	f := New(noneNamed)
	const goroutines, each = 8, 2000
	var counting, looking sync.WaitGroup
	stop := make(chan struct{})
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				passed(f)
				f.History(func(Name) bool { return true })
				f.swept.Store(0)
				f.sweep(time.Now())
			}
		}
	})
	for g := range goroutines {
		counting.Go(func() {
			for i := range each {
				f.Count(Name{Project: fmt.Sprint("p", (g+i)%50), Model: "gpt"}, &Call{Input: 1, Denied: i%10 == 0, Limit: "rpm"})
			}
		})
	}
	counting.Wait()
	close(stop)
	looking.Wait()
	var sum Sum
	f.Each(func(_ Name, r *Recent) { sum.Add(&r.Sum) })
	if sum.Passed != goroutines*each*9/10 || sum.Denied != goroutines*each/10 || sum.Input != sum.Passed {
		t.Errorf("%+v", sum)
	}
}

// A lot that a sweep closes while a call is about to be counted there is opened again.
func TestCallMeetsSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(allNamed)
		name := Name{Project: "a"}
		f.Count(name, new(Call))
		l := f.lot(name, false)
		time.Sleep(2 * time.Hour)
		f.sweep(time.Now())
		if l.count(time.Now(), new(Call)) {
			t.Error("a closed lot counts")
		}
		f.Count(name, new(Call))
		if all := passed(f); all[name] != 1 {
			t.Errorf("%v", slices.Collect(maps.Keys(all)))
		}
	})
}

func BenchmarkCount(b *testing.B) {
	f := New(allNamed)
	names := make([]Name, 1000)
	for i := range names {
		names[i] = Name{Project: fmt.Sprint("p", i), Model: "gpt", Key: fmt.Sprint("k", i)}
	}
	c := &Call{Input: 100, Output: 200, Estimated: 400}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			f.Count(names[i%len(names)], c)
		}
	})
}
