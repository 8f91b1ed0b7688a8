package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// gate is a gate that is closed until a time, and lets one probe pass meanwhile. Or it lowers
// all counts by one.
type gate struct {
	lowers     bool
	until      int64
	probing    int64 // the number of the probe under way; 0: none
	probes     int64
	found      []engine.Probe
	settled    []engine.Amounts // what calls have given back
	reconsider time.Duration    // what lowered limits are told to say
}

func (g *gate) Idle() bool { return !g.lowers && g.until == 0 }

func (g *gate) Lower(r *engine.Rules, _ int64) *engine.Rules {
	if !g.lowers {
		return r
	}
	return r.Lowered(func(*engine.Limit) int64 { return 1 })
}

func (g *gate) Look(now int64) engine.Closed {
	if g.until <= now || g.probing == 0 {
		return engine.Closed{}
	}
	left := time.Duration(g.until - now)
	return engine.Closed{For: left, Probe: left}
}

func (g *gate) Admit(now int64) (probe int64, closed engine.Closed) {
	if closed = g.Look(now); closed != (engine.Closed{}) || g.until <= now {
		return 0, closed
	}
	g.probes++
	g.probing = g.probes
	return g.probing, closed
}

func (g *gate) ProbeEnded(_, probe int64, found engine.Probe) {
	g.found, g.probing = append(g.found, found), 0
	if found == engine.ProbeServed {
		g.until = 0
	}
}

func (g *gate) Settled(refund engine.Amounts) { g.settled = append(g.settled, refund) }

func (g *gate) Reconsider(_ context.Context, s *engine.Standing, _ *engine.Ask) error {
	for i := range s.Len() {
		if _, d := s.At(i); !d.Allowed {
			d.RetryAfter = g.reconsider
		}
	}
	return nil
}

// A closed gate lets one probe pass. The others are told how long it is closed, and pass as
// soon as the probe has found out that it may open.
func TestGateLetsAProbePass(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		g := &gate{until: b.Now() + int64(time.Minute)}
		m, p := b.shared("m", g, perMinute(engine.Requests, 9)), b.own("p", perMinute(engine.AllTokens, 90))
		probe := b.take(callOf("probe", 5), m, p)
		b.wantDenied(callOf("denied", 5), engine.PausedName, time.Minute, m, p)
		var looked engine.Result
		if err := b.Look(t.Context(), callOf("looks", 5), engine.Scopes{m, p}, &looked); err != nil || looked.Allowed() || looked.RetryAfter() != time.Minute {
			t.Errorf("Look: %v, %t, %v", err, looked.Allowed(), looked.RetryAfter())
		}
		b.wantUsed(m, 1)
		b.wantUsed(p, 5)
		waits := b.acquire(callOf("waits", 5), m, p)
		time.Sleep(time.Second)
		if waits.ended() {
			t.Errorf("it passes a closed gate: %v", waits.err)
		}
		probe.Served()
		b.Wake(m)
		if !waits.passed() || waits.result.Waited != time.Second {
			t.Errorf("it waits although the gate is open: %v, after %v", waits.err, waits.result.Waited)
		}
		if g.probes != 1 || !slices.Equal(g.found, []engine.Probe{engine.ProbeServed}) {
			t.Errorf("%d probes, which have found out %d", g.probes, g.found)
		}
		b.wantEvents("denied", event.Denied)
		b.wantEvents("looks")
		b.wantEvents("waits", event.Admitted)
	})
}

// A probe ends as any call does, and the gate is told. One that the limits behind the gate deny is
// none.
func TestGateIsToldOfProbes(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		g := &gate{until: b.Now() + int64(time.Hour)}
		m := b.shared("m", g, perMinute(engine.Tokens, 10))
		b.wantDenied(callOf("large", 11), "tokens", 1<<63-1, m)
		if g.probes != 0 {
			t.Errorf("%d probes; want none: the call was denied", g.probes)
		}
		b.take(callOf("cancelled", 5), m).Cancel()
		b.take(callOf("refused", 5), m).Commit(llm.Tokens{})
		b.take(callOf("committed", 5), m).Commit(llm.Tokens{Input: 2, Output: 4})
		b.wantUsed(m, 6)
		if want := []engine.Probe{engine.ProbeUnsent, engine.ProbeRefused, engine.ProbeServed}; !slices.Equal(g.found, want) {
			t.Errorf("probes have found out %d; want %d", g.found, want)
		}
	})
}

// asks is a store that calls a function after each take.
type asks struct {
	store.Store
	then func()
}

func (s *asks) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	receipt, said, err := s.Store.Take(ctx, charges)
	s.then()
	return receipt, said, err
}

// While the limits of a call are asked behind a gate that lets a probe pass, another call comes. If
// the limits deny the first, the other is the probe, and does not wait for the next one. If they
// admit both, one is the probe, and the other has taken nothing.
func TestTwoCallsForOneProbe(t *testing.T) {
	for name, denied := range map[string]bool{"denied": true, "admitted": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &asks{Store: store.NewMemory(), then: func() {}}
				b := newBench(t, s)
				g := &gate{until: b.Now() + int64(time.Hour)}
				m, p := b.shared("m", g, perMinute(engine.Requests, 9)), b.own("p", perMinute(engine.Requests, 1))
				if denied {
					b.take(callOf("", 0), p)
				}
				var other *waiting
				s.then = func() {
					s.then = func() {}
					other = b.acquire(callOf("other", 0), m)
				}
				if r := b.try(callOf("first", 0), m, p); r.Allowed() {
					t.Error("the first call passes as well")
				}
				if !other.passed() || g.probes != 1 {
					t.Errorf("the other call has ended: %t, %v; %d probes", other.ended(), other.err, g.probes)
				}
				other.leave()
				b.wantUsed(m, 1)
				b.wantEvents("first", event.Denied)
			})
		})
	}
}

// The wait for a closed gate ends when the gate opens by itself, and one that may not wait for so
// long ends at once.
func TestGateOpensByItself(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		g := &gate{until: b.Now() + int64(time.Minute), probing: 7}
		m := b.shared("m", g, perMinute(engine.Requests, 9))
		short := callOf("short", 1)
		short.MaxWait = time.Minute
		if w := b.acquire(short, m); !w.ended() || w.err == nil || w.result.Limit() != engine.PausedName {
			t.Errorf("it waits for as long as it may, and in vain: %v, by %q", w.err, w.result.Limit())
		}
		w := b.acquire(callOf("long", 1), m)
		time.Sleep(time.Minute - 1)
		if w.ended() {
			t.Errorf("the gate opens too early: %v", w.err)
		}
		time.Sleep(time.Nanosecond)
		if !w.passed() {
			t.Errorf("the gate is open, and it waits: %v", w.err)
		}
		b.wantEvents("short", event.Denied)
	})
}

// Lowered limits deny, and the gate says when they let the call pass. What is taken counts in the
// limits as they were.
func TestGateLowersLimits(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		g := &gate{lowers: true, reconsider: 7 * time.Second}
		m, p := b.shared("m", g, perMinute(engine.Requests, 2), perMinute(engine.Tokens, 20)), b.own("p", perMinute(engine.Requests, 5))
		res := b.take(callOf("first", 10), m, p)
		b.wantDenied(callOf("second", 0), "requests", 7*time.Second, m, p)
		b.wantUsed(p, 1)
		g.lowers = false
		b.take(callOf("third", 0), m, p)
		b.wantDenied(callOf("fourth", 0), "requests", time.Minute, m, p)
		res.Commit(llm.Tokens{Input: 3, Output: 4})
		b.wantUsed(m, 2, 7)
		if len(g.settled) != 1 || g.settled[0][engine.Requests] != 0 || g.settled[0][engine.Tokens] != 3 {
			t.Errorf("the gate was told of refunds: %v; want 3 tokens", g.settled)
		}
	})
}
