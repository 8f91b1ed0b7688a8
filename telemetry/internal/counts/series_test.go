package counts

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
)

// The tests of the observers rely on the number of values of each label.
func TestValuesOfLabels(t *testing.T) {
	if diff := cmp.Diff(limits, slices.Concat(telemetrytest.Limits, []string{other})); diff != "" {
		t.Errorf("limits, -here +in telemetrytest:\n%s", diff)
	}
	here := []int{len(outcomes), len(newPair("", "").decisions[0][0]), len(causes)}
	if diff := cmp.Diff(here, []int{telemetrytest.Outcomes, telemetrytest.Shadows, telemetrytest.Causes}); diff != "" {
		t.Errorf("outcomes, shadows and causes, -here +in telemetrytest:\n%s", diff)
	}
}

// The first models that are seen have the series, whatever comes later.
func TestModelsFirstCome(t *testing.T) {
	s, err := newSeries(2, nil, func(model, _ string) *string { return &model })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model   string
		limited bool
		want    string
	}{
		{"a", true, "a"}, {"b", false, other}, {"", true, ""}, {other, true, other},
		{"b", true, "b"}, {"c", true, other}, {"a", true, "a"}, {"a", false, other}, {"c", true, other},
	} {
		if got := *s.of(&event.Event{Model: c.model, Limited: c.limited}); got != c.want {
			t.Errorf("%q (limited: %v) counts as %q, want %q", c.model, c.limited, got, c.want)
		}
	}
}

// Goroutines that find a pair first at the same time all get the same T.
func TestSeriesTogether(t *testing.T) {
	s, err := newSeries(3, []string{"acme"}, func(_, _ string) *int { return new(int) })
	if err != nil {
		t.Fatal(err)
	}
	const together = 8
	var found [together]map[string]*int
	var all sync.WaitGroup
	for i := range together {
		all.Go(func() {
			found[i] = map[string]*int{}
			for n := range 100 {
				model := fmt.Sprint(n % 20)
				found[i][model] = s.of(&event.Event{Model: model, Limited: true, Project: "acme"})
			}
		})
	}
	all.Wait()
	different := map[*int]bool{}
	for i := range together {
		for model, got := range found[i] {
			if got == nil || got != found[0][model] {
				t.Fatalf("model %s: one got %p, another %p", model, found[0][model], got)
			}
			different[got] = true
		}
	}
	if len(different) != 3+1 {
		t.Errorf("%d different series, want 3 and other", len(different))
	}
}

// Projects may be listed while others count: each has its own series from then on, and existing
// series stay.
func TestProjectsAreAdded(t *testing.T) {
	s, err := newSeries(3, []string{"0"}, func(_, project string) *string { return &project })
	if err != nil {
		t.Fatal(err)
	}
	of := func(project string) *string {
		return s.of(&event.Event{Model: "m", Limited: true, Project: project})
	}
	first, others := of("0"), of("1")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				id := strconv.Itoa(i)
				if err := s.list([]string{id, id}); err != nil {
					t.Error(err)
				}
				if got := of(id); *got != id || got != of(id) {
					t.Errorf("%s counts as %q", id, *got)
				}
			}
		})
	}
	all.Wait()
	if of("0") != first || of("new") != others || *others != other {
		t.Error("those that were there before are others now")
	}
	if n := len(s.listing.Load().names); n != 102 {
		t.Errorf("%d are listed", n)
	}
	for _, bad := range []string{"", other, "\xff"} {
		if err := s.list([]string{"fine", bad}); err == nil || *of("fine") != other {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A goroutine that finds a cell empty which another fills in the meantime does not add a second T.
func TestSeriesMeanwhile(t *testing.T) {
	e := &event.Event{Model: "a", Limited: true}
	var s *series[int]
	var first *int
	s, err := newSeries(1, nil, func(_, _ string) *int {
		if first == nil {
			first = new(int)
			first = s.of(e) // another comes first
		}
		return new(int)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.of(e); got != first {
		t.Errorf("the first got %p, the second %p", first, got)
	}
	if r := s.addRow("b"); r != s.others {
		t.Errorf("a second model got a row, %q, where one is allowed", r.model)
	}
}

func TestModelsDefault(t *testing.T) {
	s, err := newSeries(0, nil, func(model, _ string) *string { return &model })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 101 {
		model := strconv.Itoa(i)
		got := *s.of(&event.Event{Model: model, Limited: true})
		if own := got == model; own != (i < 100) {
			t.Errorf("model %d counts as %q", i, got)
		}
	}
}

// Every limit that an event may name keeps its name.
func TestLimitNames(t *testing.T) {
	for _, name := range telemetrytest.Limits {
		if got := limits[limitIndex(name)]; got != name {
			t.Errorf("%q counts as %q", name, got)
		}
	}
	if got := limits[limitIndex("fortnight")]; got != other {
		t.Errorf("a limit that is not known counts as %q", got)
	}
}

func TestLazyMakesOne(t *testing.T) {
	var l lazy[int]
	made := 0
	for range 3 {
		if got := l.get(func() int { made++; return made }); got != 1 {
			t.Errorf("get = %d, want the first that was made", got)
		}
	}
}
