package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// scriptCalls returns how many scripts the server has run.
func scriptCalls(t *testing.T, server *redistest.Server) (calls int) {
	t.Helper()
	stats, err := server.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(stats.(string)) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_fcall:calls="); ok {
			n, _, _ := strings.Cut(rest, ",")
			calls, err = strconv.Atoi(n)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// The log of a key grows, and forgets what has left its windows, in the step that takes.
func TestLogsGrowInTheStepThatTakes(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	now := noon.UnixNano()
	r := newRemote(dial(t, server.Addr), "test", time.Minute, func() int64 { return now }, nil)
	defer r.Close()
	limits := []limit.Limit{limit.New(1000, time.Minute).Using(limit.SlidingLog), limit.New(1000, time.Hour).Using(limit.SlidingLog)}
	minute, hour := limits[:1], limits[1:]
	take := func(key string, limits []limit.Limit) (store.Receipt, limit.Decision) {
		t.Helper()
		receipt, decisions, err := r.Take(t.Context(), []store.Charge{{Key: key, Limits: limits, N: 2}})
		if err != nil || receipt == nil {
			t.Fatalf("%+v, %v", decisions, err)
		}
		return receipt, decisions[0]
	}
	first, _ := take("growing", limits)
	take("sliding", minute)
	before := scriptCalls(t, server)
	var last store.Receipt
	for range 100 {
		now += int64(time.Second)
		last, _ = take("growing", limits)
		if _, d := take("sliding", minute); d.Used > 120 {
			t.Fatalf("%d are used of a minute in which 120 passed", d.Used)
		}
	}
	if calls := scriptCalls(t, server) - before; calls != 200 {
		t.Errorf("200 takes were %d scripts", calls)
	}
	for _, settled := range []store.Receipt{first, last} {
		if err := r.Settle(t.Context(), settled, []int64{1}); err != nil {
			t.Fatal(err)
		}
	}
	decisions, err := r.Peek(t.Context(), []store.Charge{{Key: "growing", Limits: limits}})
	if err != nil || decisions[0].Used != 119 || decisions[1].Used != 200 {
		t.Errorf("%+v, %v; 119 are used of the minute and 200 of the hour", decisions, err)
	}
	now += int64(time.Hour) - 1
	if decisions, err = r.Peek(t.Context(), []store.Charge{{Key: "growing", Limits: hour}}); err != nil || decisions[0].Used != 1 {
		t.Errorf("%+v, %v; 1 is used of the hour", decisions, err)
	}
}

// Logs that grow, forget and are settled late answer as package limit does.
func TestLongLogsAreLikeInMemory(t *testing.T) {
	t.Parallel()
	now, histories := noon.UnixNano(), 0
	r := newRemote(dial(t, redistest.New(t).Addr), "test", time.Minute, func() int64 { return now }, nil)
	defer r.Close()
	limits := []limit.Limit{limit.New(60, time.Minute).Using(limit.SlidingLog), limit.New(900, time.Hour).Using(limit.SlidingLog)}
	rapid.Check(t, func(t *rapid.T) {
		type taken struct {
			stored store.Receipt
			known  limit.Receipt
		}
		var model limit.Account
		var open []taken
		histories++
		key := fmt.Sprint("history", histories)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += int64(oneOf(t, "later", time.Second, 5*time.Second, time.Minute, 20*time.Minute))
			if len(open) > 0 && rapid.Bool().Draw(t, "settles") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				actual := rapid.Int64Range(0, 6).Draw(t, "actual")
				if err := r.Settle(t.Context(), open[i].stored, []int64{actual}); err != nil {
					t.Fatal(err)
				}
				model.Settle(limits, open[i].known, now, actual)
				open = slices.Delete(open, i, i+1)
			}
			n := rapid.Int64Range(1, 4).Draw(t, "n")
			var want []limit.Decision
			for _, l := range limits {
				want = append(want, model.Check(l, now, n))
			}
			receipt, got, err := r.Take(t.Context(), []store.Charge{{Key: key, Limits: limits, N: n}})
			if err != nil || store.Allowed(want) != (receipt != nil) {
				t.Fatalf("%+v, %v; want %+v", got, err, want)
			}
			if receipt != nil {
				if !slices.Equal(got, want) {
					t.Fatalf("%+v; want %+v", got, want)
				}
				open = append(open, taken{receipt, model.Take(limits, now, n)})
			}
		}
	})
}
