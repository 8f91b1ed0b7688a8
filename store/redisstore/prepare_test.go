package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// scriptCalls returns how many scripts the server has run.
func scriptCalls(t *testing.T, server *redistest.Server) (calls int) {
	t.Helper()
	stats, err := server.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(stats.(string)) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
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

// A call that must prepare its accounts prepares those that other calls leave alone, however busy the
// others are.
func TestBusyAccountsDoNotKeepOthersUnready(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	r := newRemote(dial(t, server.Addr), "test", time.Minute, nil, nil)
	defer r.Close()
	l := limit.PerHour(10)
	of := func(l limit.Limit) []store.Charge {
		return []store.Charge{{Key: "busy", Limits: []limit.Limit{l}, N: 1}, {Key: "other", Limits: []limit.Limit{l}, N: 1}}
	}
	if _, _, err := r.Take(t.Context(), of(l)); err != nil {
		t.Fatal(err)
	}
	changed := of(limit.PerHour(20))
	accounts, at, err := r.read(t.Context(), changed)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Take(t.Context(), of(l)[:1]); err != nil {
		t.Fatal(err)
	}
	if err := r.fitEach(t.Context(), changed, accounts, at); err != nil {
		t.Fatal(err)
	}
	for i, want := range []status{unready, allowed} {
		o := r.take(stepTake, changed[i:i+1], r.link.now())
		if err := r.do(t.Context(), o); err != nil || statusOf(o.answer) != want {
			t.Errorf("%s: status %d, %v; want %d", changed[i].Key, statusOf(o.answer), err, want)
		}
	}
}
