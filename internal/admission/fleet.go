package admission

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
	"dappco.re/go/core/go-ratelimit/internal/share"
)

// fleet is this process among those that share its store. They tell each other who calls and who
// waits, so that shares and turns hold over all of them, and what is given back, so that calls which
// wait elsewhere ask again at once. All of it may be lost: then calls ask again by themselves.
type fleet struct {
	engine *Engine
	bus    bus.Bus
	node   string // the random name of this process

	elsewhere atomic.Int32 // the number of keys in waiting

	mu          sync.Mutex
	unsubscribe func()
	closed      bool
	timer       *time.Timer       // at whose end the others are told; nil: nothing is to be told
	due         int64             // when the timer ends
	divided     map[string]*Scope // the scopes whose limits are divided, by their keys
	wakes       map[string]bool   // the keys of scopes to which something was given back, for the next message
	waiting     map[string]int64  // the keys of scopes for which calls wait elsewhere, and until when that counts
}

// message is what one process tells the others.
type message struct {
	Node   string        `json:"node"`
	Wakes  []string      `json:"wakes,omitempty"`  // the keys of scopes to which something was given back
	Waits  []string      `json:"waits,omitempty"`  // the keys of scopes for which calls wait there
	Key    string        `json:"key,omitempty"`    // of a scope whose limits are divided
	Report *share.Report `json:"report,omitempty"` // on its pool
}

const (
	// tellAtOnce and tellSoon are how long a process collects what it has to tell: that something was given
	// back, and that somebody calls or waits.
	tellAtOnce = time.Millisecond
	tellSoon   = 20 * time.Millisecond

	// membersAtOnce is how many members are reported in one message, so that it is not too large.
	membersAtOnce = 50
)

// join lets the process be one of a fleet, if its store carries messages.
func (e *Engine) join() *fleet {
	e.joining.Do(func() {
		carrier, ok := bus.Of(e.store)
		if !ok {
			return
		}
		f := &fleet{engine: e, bus: carrier, node: rand.Text(), divided: map[string]*Scope{}, wakes: map[string]bool{}, waiting: map[string]int64{}}
		var err error
		if f.unsubscribe, err = carrier.Subscribe(f.receive); err == nil {
			e.fleet.Store(f)
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

// changed says that something has changed in the pool of a scope.
func (f *fleet) changed(s *Scope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.divided[s.Key] = s
	f.tellIn(tellSoon)
}

// gave says that something was given back to a scope.
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

// tellIn lets the others be told after a time at the latest. The caller holds mu.
func (f *fleet) tellIn(d time.Duration) {
	due := f.engine.clock() + int64(d)
	switch {
	case f.closed:
	case f.timer == nil:
		f.timer, f.due = time.AfterFunc(d, f.tell), due
	case due < f.due:
		f.timer.Reset(d)
		f.due = due
	}
}

// tell tells the others what happens here. It goes on as long as calls come or wait, so that the
// others know that the process lives.
func (f *fleet) tell() {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	f.timer = nil
	wakes := slices.Collect(maps.Keys(f.wakes))
	clear(f.wakes)
	divided := maps.Clone(f.divided)
	f.mu.Unlock()

	now := f.engine.clock()
	waits := f.engine.waitedFor()
	if len(wakes) > 0 || len(waits) > 0 {
		f.send(message{Wakes: wakes, Waits: waits})
	}
	more := len(waits) > 0
	for key, s := range divided {
		r := s.Rules()
		if r == nil || r.sharing == nil {
			continue
		}
		report := r.sharing.pool.Report(now)
		for part := range slices.Chunk(report.Members, membersAtOnce) {
			report.Members = part
			f.send(message{Key: key, Report: &report})
			report.Used, more = nil, true
		}
	}
	if more {
		f.mu.Lock()
		f.tellIn(share.ReportEvery)
		f.mu.Unlock()
	}
}

func (f *fleet) send(m message) {
	m.Node = f.node
	text, err := json.Marshal(m)
	if err != nil {
		f.engine.Miss(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	f.bus.Publish(ctx, text) // what is lost is told again, or found by asking
}

// receive enters what another process has told. A message that cannot be read does not count.
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
			f.waiting[key] = now + int64(3*share.ReportEvery)
		}
	}
	for key, until := range f.waiting {
		if now >= until {
			delete(f.waiting, key)
		}
	}
	f.elsewhere.Store(int32(len(f.waiting)))
	divided := f.divided[m.Key]
	f.mu.Unlock()
	for _, key := range m.Wakes {
		e.wakeKey(key)
	}
	if divided == nil || m.Report == nil {
		return
	}
	if r := divided.Rules(); r != nil && r.sharing != nil {
		r.sharing.pool.Hear(m.Node, now, *m.Report)
	}
}

// mostWaited is how many keys of scopes are known at most for which calls wait elsewhere.
const mostWaited = 1 << 14

// tellOfWaits lets other processes know soon that calls wait here. The caller holds the engine's mu.
func (e *Engine) tellOfWaits() {
	if f := e.fleet.Load(); f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
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

// wakeKey lets calls ask again that wait for the scope of a key.
func (e *Engine) wakeKey(key string) {
	e.mu.Lock()
	var found *Scope
	for _, waits := range e.waits[key] {
		for w := range waits {
			if i := slices.IndexFunc(w.scopes, func(s *Scope) bool { return s.Key == key }); i >= 0 {
				found = w.scopes[i]
			}
		}
	}
	e.mu.Unlock()
	if found != nil {
		e.wakeHere(found)
	}
}
