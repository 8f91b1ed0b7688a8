package ratelimit

import (
	"dappco.re/go/core/go-ratelimit/store"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/alone"

	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// TestModelsAndIter: models with a quota and models that were used are listed, each once, in
// order.
func TestModelsAndIter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memConfigured(t, Config{Quotas: map[string]ModelQuota{"b": {MaxRPM: 2}, "d": {}, "B": {MaxTPM: 3}}})
		rl.RecordUsage("c", 1, 1)
		rl.RecordUsage("a", 2, 2)
		rl.RecordUsage("b", 3, 3)
		want := []string{"B", "a", "b", "c", "d"}
		if got := slices.Collect(rl.Models()); !slices.Equal(got, want) {
			t.Errorf("Models: %v; want %v", got, want)
		}
		var names []string
		for name, stats := range rl.Iter() {
			names = append(names, name)
			if stats != rl.Stats(name) {
				t.Errorf("%s: %+v; want %+v", name, stats, rl.Stats(name))
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("Iter: %v; want %v", names, want)
		}
		all := rl.AllStats()
		if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
			t.Errorf("AllStats: %v; want %v", got, want)
		}
		now := time.Now().UTC()
		for name, stats := range map[string]ModelStats{
			"B": {MaxTPM: 3}, "a": {RPM: 1, TPM: 4, RPD: 1, DayStart: now}, "b": {RPM: 1, MaxRPM: 2, TPM: 6, RPD: 1, DayStart: now},
			"c": {RPM: 1, TPM: 2, RPD: 1, DayStart: now}, "d": {},
		} {
			if all[name] != stats {
				t.Errorf("%s: %+v; want %+v", name, all[name], stats)
			}
		}
		for range rl.Models() {
			break
		}
		seen := 0
		for range rl.Iter() {
			seen++
			if seen == 2 {
				break
			}
		}
		if seen != 2 {
			t.Errorf("%d seen; want 2", seen)
		}
		for name := range rl.Models() { // changes meanwhile do no harm
			rl.Reset(name)
			if err := rl.SetQuota(name+"+", ModelQuota{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := slices.Collect(rl.Models()); !slices.Equal(got, []string{"B", "B+", "a+", "b", "b+", "c+", "d", "d+"}) {
			t.Errorf("Models: %v", got)
		}
	})
}

func TestNoModels(t *testing.T) {
	rl := memConfigured(t, Config{Providers: []Provider{ProviderLocal}})
	for name := range rl.Models() {
		t.Errorf("the model %q; want none", name)
	}
	if len(rl.AllStats())+len(rl.State())+len(rl.Quotas()) != 0 {
		t.Error("there is something")
	}
	if rl.AllStats() == nil || rl.State() == nil || rl.Quotas() == nil {
		t.Error("a map is nil")
	}
}

// TestState: the state has each request of the last minute, and the sums of the day.
func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memConfigured(t, Config{Quotas: map[string]ModelQuota{
			memModel: {MaxRPM: 100}, "all": {MaxInputTPM: 100, MaxOutputTPM: 100, MaxTPD: 1000}, "idle": {MaxRPM: 1},
		}})
		start := time.Now().UTC()
		for range 2 {
			memTake(t, rl, 10).Commit(3, 4)
		}
		rl.RecordUsage("unknown", 0, 0)
		res, _ := rl.TryAcquireTokens("all", Tokens{Input: 5, Output: 6})
		time.Sleep(40 * time.Second)
		memTake(t, rl, 10)
		memTake(t, rl, 10).Cancel()
		rl.RecordUsage("all", 0, 7)
		want := map[string]UsageStats{
			memModel: {
				Requests: []time.Time{start, start, start.Add(40 * time.Second)},
				Tokens:   []TokenEntry{{start, 14}, {start.Add(40 * time.Second), 10}},
				DayStart: start, DayCount: 3,
			},
			"unknown": {Requests: []time.Time{start}, DayStart: start, DayCount: 1},
			"all": {
				Requests: []time.Time{start, start.Add(40 * time.Second)},
				Tokens:   []TokenEntry{{start, 11}, {start.Add(40 * time.Second), 7}},
				DayStart: start, DayCount: 2,
				InputTokens:  []TokenEntry{{start, 5}},
				OutputTokens: []TokenEntry{{start, 6}, {start.Add(40 * time.Second), 7}},
				DayTokens:    &TokenEntry{start, 18},
			},
		}
		got := rl.State()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("state %+v; want %+v", got, want)
		}
		got[memModel].Requests[0] = time.Time{}
		got[memModel].Tokens[0].Count = 99
		got["all"].DayTokens.Count = 99
		delete(got, "unknown")
		if got := rl.State(); !reflect.DeepEqual(got, want) {
			t.Errorf("State is not a copy: %+v", got)
		}
		time.Sleep(20 * time.Second)
		res.Commit(1, 1)
		state := rl.State()
		if s := state[memModel]; len(s.Requests) != 1 || len(s.Tokens) != 1 || s.DayCount != 3 {
			t.Errorf("a minute later: %+v", s)
		}
		if s := state["all"]; s.DayTokens.Count != 9 || len(s.InputTokens) != 0 {
			t.Errorf("a minute later: %+v", s)
		}
		time.Sleep(24*time.Hour - time.Minute)
		if got := rl.State(); len(got) != 0 {
			t.Errorf("a day later: %+v", got)
		}
	})
}

// TestHugeDebtsLeave: sums that were too large to count are right again when the usage has
// left the window.
func TestHugeDebtsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxTPM: 100})
		memTake(t, rl, 10)
		time.Sleep(time.Second)
		for range 600 {
			rl.RecordUsage(memModel, math.MaxInt, math.MaxInt)
		}
		time.Sleep(time.Second)
		last := rl.Stats(memModel)
		rl.RecordUsage(memModel, 20, 0)
		memPassesIn(t, rl, 1, DecisionTPMLimit, 59*time.Second)
		if s := rl.Stats(memModel); last.TPM != 1<<62 || s.TPM < 0 || s.TPM > 20 {
			t.Errorf("%d were used, and %d are left; want 20 at most", last.TPM, s.TPM)
		}
		time.Sleep(time.Second)
		if s := rl.Stats(memModel); s.TPM != 0 {
			t.Errorf("%+v; want nothing left", s)
		}
	})
}

// TestTooMuchToCount: a refund from sums that are too large to count never leaves less than
// nothing.
func TestTooMuchToCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxRPM: 10_000, MaxTPD: state.MaxQuota})
		var taken []*Reservation
		for range 600 {
			taken = append(taken, memTake(t, rl, 10))
		}
		for _, res := range taken {
			res.Commit(math.MaxInt, math.MaxInt)
		}
		if s := rl.Stats(memModel); s.TPM != 1<<62 || s.TPD != 1<<62 {
			t.Errorf("%+v; want as much as can be counted", s)
		}
		if err := rl.SetQuota(memModel, ModelQuota{MaxRPM: 10_000}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		early := memTake(t, rl, 0)
		early.Cancel()
		late := memTake(t, rl, 0)
		quota := ModelQuota{MaxTPM: 100, MaxTPD: 100, MaxInputTPM: 100, MaxOutputTPM: 100}
		if err := rl.SetQuota(memModel, quota); err != nil {
			t.Fatal(err)
		}
		if s := rl.Stats(memModel); s.TPM != 1<<62 || s.TPD != 1<<62 {
			t.Errorf("%+v; want as much as can be counted", s)
		}
		time.Sleep(59 * time.Second)
		late.Cancel()
		if s := rl.Stats(memModel); s.TPM != 0 || s.InputTPM != 0 || s.OutputTPM != 0 || s.RPM != 0 || s.TPD <= 0 {
			t.Errorf("a minute later: %+v; want nothing used in it", s)
		}
		time.Sleep(24 * time.Hour)
		memTake(t, rl, 100)
		memDenied(t, rl, 1)
	})
}

// TestUsageIsNotLost: usage of a new model is counted, even if the models are listed at the
// same time.
func TestUsageIsNotLost(t *testing.T) {
	rl := memConfigured(t, Config{Providers: []Provider{ProviderLocal}})
	var stop atomic.Bool
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for !stop.Load() {
				rl.prune()
				for range rl.Models() {
					break
				}
			}
		})
	}
	lost := 0
	for i := range 3000 {
		name := fmt.Sprint(i)
		rl.RecordUsage(name, 1, 1)
		if rl.Stats(name).RPM != 1 {
			lost++
		}
		rl.Reset(name)
	}
	stop.Store(true)
	group.Wait()
	if lost > 0 {
		t.Errorf("of 3000 records %d are lost", lost)
	}
}

// TestModelsAreAlwaysThere: a model that was used and gets a quota is missing from no list.
func TestModelsAreAlwaysThere(t *testing.T) {
	quotas := map[string]ModelQuota{}
	for i := range 2000 {
		quotas[fmt.Sprint("quota ", i)] = ModelQuota{}
	}
	rl := memConfigured(t, Config{Quotas: quotas})
	missing := 0
	for i := range 100 {
		name := fmt.Sprint("model ", i)
		rl.RecordUsage(name, 1, 1)
		var group sync.WaitGroup
		group.Go(func() {
			if err := rl.SetQuota(name, ModelQuota{}); err != nil {
				t.Error(err)
			}
		})
		if !slices.Contains(slices.Collect(rl.Models()), name) {
			missing++
		}
		group.Wait()
	}
	if missing > 0 {
		t.Errorf("%d of 100 models were missing", missing)
	}
}

func TestBackgroundPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxRPM: 1000})
		stop := rl.BackgroundPrune(10 * time.Minute)
		other := rl.BackgroundPrune(time.Hour)
		defer other()
		memTake(t, rl, 10)
		for i := range 100 {
			rl.RecordUsage(fmt.Sprint(i), 1, 1)
		}
		others := func() int { return len(rl.AllStats()) - 1 }
		time.Sleep(24*time.Hour - time.Second)
		synctest.Wait()
		if others() != 100 || rl.Stats("7").RPD != 1 || rl.Stats(memModel).RPD != 1 {
			t.Errorf("%d models; want 100, whose day is not over", others())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if others() != 0 {
			t.Errorf("%d models are left a day later", others())
		}
		if n := rl.engine.Store().(*store.Memory).Len(); n != 0 {
			t.Errorf("%d keys are left a day later", n)
		}
		stop()
		stop()
		rl.RecordUsage("late", 1, 1)
		other()
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if n := rl.engine.Store().(*store.Memory).Len(); n != 2 {
			t.Errorf("%d keys are left: it prunes after it was stopped", n)
		}
	})
}

func TestBackgroundPruneOfNoInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxRPM: 1})
		for _, interval := range []time.Duration{0, -1, math.MinInt64} {
			stop := rl.BackgroundPrune(interval) // the bubble ends, so no goroutine is left in it
			defer stop()
			stop()
		}
	})
}

// TestBackgroundPruneStops: when stop returns, for any of several callers, no pruning is in
// progress any more.
func TestBackgroundPruneStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{MaxRPM: 1})
		var pruning atomic.Bool
		memReads(rl, func() {
			pruning.Store(true)
			time.Sleep(time.Second)
			pruning.Store(false)
		})
		stop := rl.BackgroundPrune(time.Minute)
		time.Sleep(time.Minute + time.Millisecond)
		if !pruning.Load() {
			t.Fatal("it does not prune")
		}
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				stop()
				if pruning.Load() {
					t.Error("it has stopped, and prunes")
				}
			})
		}
		group.Wait()
	})
}

// heapInUse returns the bytes of the heap after a garbage collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestMemoryOfUnknownModels: a call that only asks leaves nothing in memory. A call that uses
// a model leaves something for a day, for a bounded number of models.
func TestMemoryOfUnknownModels(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	names := testkit.Rounds(10_000, 100_000)
	rl := memLimiter(t, ModelQuota{MaxRPM: 1})
	clock := memClock(rl)
	name := func(i int) string { return fmt.Sprint("model ", i) }
	for i := range names {
		switch i % 4 {
		case 0:
			rl.CanSend(name(i), 10)
		case 1:
			rl.Stats(name(i))
		case 2:
			rl.Reset(name(i))
		default:
			res, _ := rl.TryAcquire(name(i), 10)
			res.Cancel()
		}
	}
	if len(rl.withoutQuota) > 0 {
		t.Errorf("%d models are known that were only asked for", len(rl.withoutQuota))
	}
	before := heapInUse()
	for i := range names {
		rl.RecordUsage(name(i), 10, 10)
	}
	if used := heapInUse() - before; used > mostUnknown*5000 {
		t.Errorf("a model that was used costs %d bytes", used/mostUnknown)
	}
	if len(rl.withoutQuota) != mostUnknown {
		t.Errorf("%d models are known; want %d", len(rl.withoutQuota), mostUnknown)
	}
	clock.pass(unknownStay)
	for i := range names / 2 { // more than fit until it has to make room
		rl.RecordUsage(name(names+i), 10, 10)
	}
	if n := len(slices.Collect(rl.Models())); n != mostUnknown+1 {
		t.Errorf("%d models are known; want those of today, %d", n, mostUnknown+1)
	}
	clock.pass(unknownStay)
	if n := len(slices.Collect(rl.Models())); n != 1 || len(rl.withoutQuota) > 0 {
		t.Errorf("%d models, of which %d were used; want one, and none", n, len(rl.withoutQuota))
	}
	if used := heapInUse() - before; used > mostUnknown*1200 {
		t.Errorf("%d bytes a model are left", used/mostUnknown)
	}
	runtime.KeepAlive(rl)
}

// TestEverythingAtOnce calls all methods from real goroutines, for the race detector.
func TestEverythingAtOnce(t *testing.T) {
	rl := memLimiter(t, ModelQuota{MaxRPM: 1 << 40, MaxTPM: 1 << 40, MaxConcurrent: 50})
	stop := rl.BackgroundPrune(time.Microsecond)
	defer stop()
	const workers = 8
	rounds := testkit.Rounds(60, 150)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := range rounds {
				model := []string{memModel, "free", "unknown", fmt.Sprint("model ", i)}[(worker+i)%4]
				switch (worker*7 + i) % 12 {
				case 0:
					rl.SetQuota(memModel, ModelQuota{MaxRPM: 1 << 40, MaxTPM: 1<<40 - i, MaxTPD: i, MaxConcurrent: 50})
				case 1:
					rl.AddProvider(ProviderOpenAI)
				case 2:
					rl.Reset(model)
				case 3:
					for range rl.Iter() {
					}
				case 4:
					rl.State()
					rl.Quotas()
				case 5:
					rl.RecordUsage(model, i, i)
				case 6:
					rl.SetQuota("free", ModelQuota{DayResetsAt: []string{"", "00:00 UTC"}[i%2]})
				default:
					res, d := rl.TryAcquire(model, i)
					if d.Allowed != (res != nil) {
						t.Errorf("%v, %+v", res, d)
					}
					if i%2 == 0 {
						res.Cancel()
					} else {
						res.Commit(i, i)
					}
				}
			}
		})
	}
	group.Wait()
	rl.Reset(memModel)
	if s := rl.Stats(memModel); s.RPM+s.TPM+s.RPD+s.Concurrent != 0 {
		t.Errorf("%+v", s)
	}
}
