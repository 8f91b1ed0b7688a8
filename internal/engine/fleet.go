package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/fair"
)

// fleet is this process among those that share its store. They report to each other which members call and wait, so
// that shares and turns hold over all of them, and what is given back, so that calls which wait elsewhere ask again at
// once. Any message may be lost: then calls ask again by themselves.
type fleet struct {
	engine *Engine
	bus    bus.Bus
	node   string // the random name of this process

	elsewhere atomic.Int32 // the number of keys in waiting

	mu          sync.Mutex
	unsubscribe func()
	closed      bool
	timer       *time.Timer         // at whose end messages are sent; nil: it was never needed
	due         int64               // when that is; 0: nothing is to be sent
	telling     bool                // messages are being sent
	divided     map[string]*divided // the scopes whose limits are divided, by their keys
	wakes       map[string]bool     // the keys of scopes to which something was given back, for the next message
	waiting     map[string]int64    // the keys of scopes for which calls wait elsewhere, and until when that counts
	told        map[string]int64    // the keys of scopes for which other processes know that calls wait here, and until when
}

// divided is a scope whose limits are divided.
type divided struct {
	scope *Scope
	due   int64 // when a report on its pool is sent; 0: there is nothing to report
	whole int64 // when a report on its pool has all members again, and not only those that have changed
}

// message is what one process of a fleet sends to all other processes that share its store.
type message struct {
	Node   string       `json:"node"`
	Wakes  []string     `json:"wakes,omitempty"`  // the keys of scopes to which something was given back
	Waits  []string     `json:"waits,omitempty"`  // the keys of scopes for which calls wait there
	Key    string       `json:"key,omitempty"`    // of a scope whose limits are divided
	Report *fair.Report `json:"report,omitempty"` // on its pool
	Reset  bool         `json:"reset,omitempty"`  // what was used of the scope is forgotten
}

const (
	// tellAtOnce and tellSoon are for how long a process collects what it has to report: that something was given back,
	// and that a member calls or waits.
	tellAtOnce = time.Millisecond
	tellSoon   = 20 * time.Millisecond

	// membersAtOnce is how many members are reported in one message, so that it is not too large.
	membersAtOnce = 50
)

// join returns the fleet that the process is in, and enters it at first; nil: its store carries no messages.
func (e *Engine) join() *fleet {
	e.joining.Do(func() {
		carrier, ok := bus.Of(e.store)
		if !ok {
			return
		}
		f := &fleet{engine: e, bus: carrier, node: rand.Text(), divided: map[string]*divided{}, wakes: map[string]bool{}, waiting: map[string]int64{}, told: map[string]int64{}}
		var err error
		if f.unsubscribe, err = carrier.Subscribe(f.receive); err == nil {
			e.fleet.Store(f)
			if e.closed.Load() { // meanwhile: Close may not have seen it
				f.leave()
			}
		} else if !errors.Is(err, errors.ErrUnsupported) {
			e.Miss(err)
		}
	})
	return e.fleet.Load()
}

// leave ends the part of the process in its fleet.
func (f *fleet) leave() {
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	f.unsubscribe()
}

// changed notes that something has changed in the pool of a scope. A report on it goes to other processes soon, and at
// once if calls wait for what others hold.
func (f *fleet) changed(s *Scope, d *sharing) {
	least := tellSoon
	if d.held && d.pool.Urgent(f.engine.clock()) {
		least = tellAtOnce
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.divided[s.Key]
	if of == nil {
		of = &divided{}
		f.divided[s.Key] = of
	}
	wait := f.collects(s, least)
	due := f.engine.clock() + int64(wait)
	if of.scope = s; of.due == 0 || due < of.due {
		of.due = due
	}
	f.tellIn(wait)
}

// collects returns for how long a process collects what it reports on the pool of a scope: for longer than the least if
// it is an own scope, of which there may be very many. The caller holds mu.
func (f *fleet) collects(s *Scope, least time.Duration) time.Duration {
	if s.Kind == Shared {
		return least
	}
	return max(least, tellSoon*time.Duration(1+len(f.divided)/fewDivided))
}

// fewDivided is how many own scopes may be divided before a process collects for longer what it reports on their pools.
const fewDivided = 10

// gave reports to other processes that something was given back to a scope, if calls wait for it there.
func (f *fleet) gave(s *Scope) {
	if f.elsewhere.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.engine.clock() < f.waiting[s.Key] {
		f.wakes[s.Key] = true
		f.tellIn(tellAtOnce)
	}
}

// tellIn has messages sent after a time at the latest. The caller holds mu.
func (f *fleet) tellIn(d time.Duration) {
	due := f.engine.clock() + int64(d)
	if f.closed || f.due != 0 && f.due <= due {
		return
	}
	f.due = due
	switch {
	case f.telling: // the timer is set at the end
	case f.timer == nil:
		f.timer = time.AfterFunc(d, f.tell)
	default:
		f.timer.Reset(d)
	}
}

// tell sends messages on what happens here. They go on as long as calls come or wait, so that other processes know that
// this one lives.
func (f *fleet) tell() {
	f.mu.Lock()
	if f.closed || f.telling || f.due == 0 {
		f.mu.Unlock()
		return
	}
	f.telling, f.due = true, 0
	now := f.engine.clock()
	wakes := slices.Collect(maps.Keys(f.wakes))
	clear(f.wakes)
	reports := f.dueReports(now)
	f.mu.Unlock()

	waits := f.engine.waitedFor()
	waiting := len(waits) > 0
	waits = f.untold(waits, now)
	for part := range slices.Chunk(wakes, mostTold) {
		f.send(message{Wakes: part})
	}
	if len(waits) > 0 {
		f.send(message{Waits: waits})
	}
	for key, d := range reports {
		pools, whole := d.scope.Rules().shared(), d.isWhole(now)
		if told := pools != nil && f.report(key, pools.pool.Report(now, whole)); !told && whole {
			delete(reports, key)
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	f.telling = false
	next := f.due
	f.due = 0
	if again := now + int64(fair.ReportEvery); waiting && (next == 0 || again < next) {
		next = again
	}
	for key, d := range f.divided {
		if _, goesOn := reports[key]; goesOn && d.due == 0 {
			d.due = d.whole
		}
		switch {
		case d.due == 0 && d.scope.Kind != Shared:
			delete(f.divided, key) // nobody calls
		case d.due != 0 && (next == 0 || d.due < next):
			next = d.due
		}
	}
	if next != 0 {
		f.tellIn(max(time.Duration(next-f.engine.clock()), tellAtOnce))
	}
}

// dueReports returns the scopes on whose pools a report is sent to other processes now, by their keys, and notes when the
// next one is due. The caller holds mu.
func (f *fleet) dueReports(now int64) map[string]divided {
	reports := map[string]divided{}
	for key, d := range f.divided {
		if d.due == 0 || d.due > now+int64(tellAtOnce) {
			continue
		}
		reports[key] = *d
		if d.due = 0; d.isWhole(now) {
			d.whole = now + int64(f.collects(d.scope, fair.ReportEvery))
		}
	}
	return reports
}

// isWhole reports whether a report on the pool that is sent now has all members, and not only those that have changed.
func (d *divided) isWhole(now int64) bool { return d.whole <= now+int64(tellAtOnce) }

// untold returns the keys of scopes for which other processes do not know that calls wait here, or will have forgotten
// it soon. From now on they know.
func (f *fleet) untold(keys []string, now int64) (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.told, func(_ string, until int64) bool { return until <= now+int64(tellAtOnce) })
	for _, key := range keys {
		if f.told[key] == 0 {
			f.told[key] = now + int64(fair.ReportEvery)
			list = append(list, key)
		}
	}
	return list
}

// report sends a report on the pool of a scope, in as many messages as it takes. It returns whether there is anything
// in it.
func (f *fleet) report(key string, r fair.Report) bool {
	for part := range slices.Chunk(r.Members, membersAtOnce) {
		f.sendReport(key, fair.Report{Members: part})
	}
	return len(r.Members) > 0
}

// sendReport sends a report in one message, or in halves if that is too large.
func (f *fleet) sendReport(key string, r fair.Report) {
	if half := len(r.Members) / 2; !f.send(message{Key: key, Report: &r}) && half > 0 {
		f.sendReport(key, fair.Report{Members: r.Members[:half]})
		f.sendReport(key, fair.Report{Members: r.Members[half:]})
	}
}

// send sends a message, unless it is too large.
func (f *fleet) send(m message) (fits bool) {
	m.Node = f.node
	text, err := json.Marshal(m)
	if err != nil {
		f.engine.Miss(err)
		return true
	}
	if bus.Check(text) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	f.bus.Publish(ctx, text) // if the message is lost, a later one repeats it, or waiting calls ask the store by themselves
	return true
}

// receive enters a message of another process. One that cannot be read does not count.
func (f *fleet) receive(text []byte) {
	var m message
	if json.Unmarshal(text, &m) != nil || m.Node == "" || m.Node == f.node {
		return
	}
	e := f.engine
	now := e.clock()
	f.mu.Lock()
	for _, key := range m.Waits {
		if f.waiting[key] != 0 || len(f.waiting) < mostWaited {
			f.waiting[key] = now + int64(3*fair.ReportEvery)
		}
	}
	for key, until := range f.waiting {
		if now >= until {
			delete(f.waiting, key)
		}
	}
	f.elsewhere.Store(int32(len(f.waiting)))
	d := f.divided[m.Key]
	var s *Scope
	if d != nil {
		s = d.scope
	}
	f.mu.Unlock()
	for _, key := range m.Wakes {
		e.wakeKey(key)
	}
	if s == nil {
		return
	}
	pools := s.Rules().shared()
	if pools == nil {
		return
	}
	if m.Reset {
		pools.pool.Reset()
	}
	if m.Report != nil {
		pools.pool.Hear(m.Node, now, *m.Report)
		switch { // the report may leave to calls that wait here what was another's share
		case !pools.held:
		case s.Kind == Shared:
			s.line.Wake(false)
		default:
			e.wakeKey(m.Key)
		}
	}
}

// mostWaited is how many keys of scopes are known at most for which calls wait elsewhere.
const mostWaited = 1 << 14

// tellOfWaits reports to other processes soon that calls wait here for scopes, unless they know it. The caller holds
// the engine's mu.
func (e *Engine) tellOfWaits(scopes Scopes) {
	f := e.fleet.Load()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := e.clock()
	if slices.ContainsFunc(scopes, func(s *Scope) bool { return f.told[s.Key] <= now }) {
		f.tellIn(tellAtOnce)
	}
}

// waitedFor returns the keys of the scopes for which calls wait here.
func (e *Engine) waitedFor() (keys []string) {
	if e.waiting.Load() == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for key := range e.waits {
		if len(keys) < mostTold {
			keys = append(keys, key)
		}
	}
	return keys
}

// mostTold is how many keys of scopes one message has at most. Calls that wait for others ask again
// by themselves.
const mostTold = 100

// wakeKey wakes the calls that wait for the scope of a key, so that they ask again.
func (e *Engine) wakeKey(key string) {
	if s := e.waitedForBy(key); s != nil {
		e.wakeHere(s)
	}
}

// waitedForBy returns the scope of a key, if calls wait for it here.
func (e *Engine) waitedForBy(key string) *Scope {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, waits := range e.waits[key] {
		for w := range waits {
			if i := slices.IndexFunc(w.scopes, func(s *Scope) bool { return s.Key == key }); i >= 0 {
				return w.scopes[i]
			}
		}
	}
	return nil
}
