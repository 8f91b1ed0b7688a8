package telemetry

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

const (
	fewModels = 10
	mostPairs = (fewModels + 2) * (2 + 2) // models and projects, with none and other

	// The most series that there can be: of each pair its decisions, two
	// kinds of tokens used, those estimated and those compared with them, and
	// the cancelled ones; of each model three histograms of waits and one of
	// errors, its throttled calls, and how often each limit was lowered and learned;
	// and eleven of the store.
	mostSeries = mostPairs*(int(outcomes)*limits*shadows+5) + (fewModels+2)*(4+causes+2*limits) + 11
)

// flood tells an observer of so many random events, four at a time.
func flood(t *testing.T, o ratelimit.Observer, events int) {
	t.Helper()
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 4))
			for range events / 4 {
				o.Observe(t.Context(), randomEvent(random))
			}
		})
	}
	all.Wait()
}

var (
	kinds = []ratelimit.EventKind{ratelimit.EventAdmitted, ratelimit.EventDenied, ratelimit.EventLeft, ratelimit.EventLost,
		ratelimit.EventSettled, ratelimit.EventCancelled, ratelimit.EventStore, ratelimit.EventPaused, ratelimit.EventLowered, ratelimit.EventLearned, "made up"}
	storeKinds = []redisstore.EventKind{redisstore.Lost, redisstore.Decided, redisstore.Back, redisstore.Reconciled, "made up"}
	modes      = []redisstore.StoreLoss{redisstore.Deny, redisstore.Allow, redisstore.Share, "made up"}
)

func randomEvent(random *rand.Rand) ratelimit.Event {
	e := ratelimit.Event{
		Kind:            kinds[random.IntN(len(kinds))],
		Project:         randomName(random, "acme", "initech"),
		Model:           randomName(random, "gpt-4o", "other"),
		Limited:         random.IntN(2) == 0,
		Limit:           randomName(random, limitNames[:]...),
		RemainingMinute: random.Int64N(100) - 1,
		Waited:          time.Duration(random.Int64()),
		Shadow:          random.IntN(2) == 0,
		Estimated:       random.Int64() - random.Int64(),
		Used: ratelimit.Tokens{
			Input: random.Int() - random.Int(), Output: random.Int() - random.Int(),
			FreeInput: random.Int() - random.Int(), FreeOutput: random.Int() - random.Int(),
		},
		Cause: llm.Cause(randomName(random, string(llm.RateLimited), string(llm.DayLimited), string(llm.SpendCap), string(llm.Overloaded))),
	}
	if random.IntN(4) == 0 {
		e.RetryAfter = ratelimit.Never
	}
	if e.Kind == ratelimit.EventStore && random.IntN(10) > 0 {
		e.Store = &redisstore.Event{
			Kind: storeKinds[random.IntN(len(storeKinds))], Mode: modes[random.IntN(len(modes))],
			Group: random.Int() - random.Int(), Allowed: random.Int64(), Denied: -random.Int64(), Keys: random.Int(), Missed: random.Int(),
		}
	}
	return e
}

// randomName returns one of the names, or none, or anything that a client may send.
func randomName(random *rand.Rand, names ...string) string {
	switch random.IntN(5) {
	case 0:
		return ""
	case 1:
		return "\xff" + strconv.Itoa(random.Int())
	case 2:
		return strconv.Itoa(random.Int())
	default:
		return names[random.IntN(len(names))]
	}
}

func TestPrometheusCardinality(t *testing.T) {
	p, registry := newProm(t, PrometheusConfig{Models: fewModels, Projects: []string{"acme", "initech"}})
	flood(t, p, 1_000_000)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series, values := 0, map[string]map[string]bool{}
	for _, family := range families {
		series += len(family.Metric)
		for _, m := range family.Metric {
			for _, label := range m.Label {
				note(values, label.GetName(), label.GetValue())
			}
		}
	}
	if series > mostSeries {
		t.Errorf("%d series; at most %d are allowed", series, mostSeries)
	}
	checkValues(t, values, map[string]int{"model": fewModels + 2, "project": 2 + 2, "limit": limits, "outcome": int(outcomes), "shadow": shadows, "type": 2, "mode": 3, "cause": causes})
}

func TestOpenTelemetryCardinality(t *testing.T) {
	o, reader := newMetered(t, OpenTelemetryConfig{Models: fewModels, Projects: []string{"acme", "initech"}})
	flood(t, o, 100_000)
	series, values := 0, map[string]map[string]bool{}
	for _, attributes := range sets(collected(t, reader)) {
		series++
		for _, kv := range attributes.ToSlice() {
			note(values, string(kv.Key), kv.Value.String())
		}
	}
	if series > mostSeries {
		t.Errorf("%d series; at most %d are allowed", series, mostSeries)
	}
	checkValues(t, values, map[string]int{
		string(keyModel): fewModels + 1, string(keyProject): 2 + 1, string(keyLimit): limits - 1, // none has no attribute
		string(keyOutcome): int(outcomes), string(keyShadow): shadows, string(keyTokenType): 2, string(keyMode): 3, string(keyCause): causes,
	})
}

func note(values map[string]map[string]bool, label, value string) {
	if values[label] == nil {
		values[label] = map[string]bool{}
	}
	values[label][value] = true
}

// checkValues says how many values each label has at most. The flood is wide
// enough for each to have several.
func checkValues(t *testing.T, values map[string]map[string]bool, want map[string]int) {
	t.Helper()
	for label, of := range values {
		if len(of) > want[label] || len(of) < 2 {
			t.Errorf("the label %s has %d values, want 2 to %d", label, len(of), want[label])
		}
		for value := range of {
			if strings.ContainsRune(value, '\uFFFD') || strings.Contains(value, "\xff") {
				t.Errorf("the label %s has the value %q", label, value)
			}
		}
	}
}

// sets returns the attributes of all points.
func sets(metrics map[string]metricdata.Metrics) (all []attribute.Set) {
	for _, m := range metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				all = append(all, point.Attributes)
			}
		case metricdata.Histogram[int64]:
			for _, point := range data.DataPoints {
				all = append(all, point.Attributes)
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				all = append(all, point.Attributes)
			}
		}
	}
	return all
}

// The first models that are seen get the series, whoever else comes.
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
		if got := *s.of(&ratelimit.Event{Model: c.model, Limited: c.limited}); got != c.want {
			t.Errorf("%q (limited: %v) counts as %q, want %q", c.model, c.limited, got, c.want)
		}
	}
}

// However many find a pair first, all get the same.
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
				found[i][model] = s.of(&ratelimit.Event{Model: model, Limited: true, Project: "acme"})
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

// Projects may be listed while others count: each has its own from then on, and what was
// found before stays the same.
func TestProjectsAreAdded(t *testing.T) {
	s, err := newSeries(3, []string{"0"}, func(_, project string) *string { return &project })
	if err != nil {
		t.Fatal(err)
	}
	of := func(project string) *string {
		return s.of(&ratelimit.Event{Model: "m", Limited: true, Project: project})
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

// Whoever finds a place free that was taken meanwhile does not make one more.
func TestSeriesMeanwhile(t *testing.T) {
	e := &ratelimit.Event{Model: "a", Limited: true}
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
		got := *s.of(&ratelimit.Event{Model: model, Limited: true})
		if own := got == model; own != (i < 100) {
			t.Errorf("model %d counts as %q", i, got)
		}
	}
}

// Every limit that an event may name keeps its name.
func TestLimitNames(t *testing.T) {
	for _, name := range []string{
		"", "minute", "hour", "day", "tokens-minute", "tokens-hour", "tokens-day", "tokens-month", "concurrent-project",
		"rpm", "tpm", "rpd", "input_tpm", "output_tpm", "tpd", "concurrent", "paused",
	} {
		if got := limitNames[limitOf(name)]; got != name {
			t.Errorf("%q counts as %q", name, got)
		}
	}
	if got := limitNames[limitOf("fortnight")]; got != other {
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
