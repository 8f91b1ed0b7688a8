package engine

import (
	"cmp"
	"slices"
)

// Waiting is a call that waits.
type Waiting struct {
	Call     *Call // must not be changed
	Tokens   int64 // that it asks for
	Since    int64 // when it began to wait, in Unix nanoseconds
	WaitsFor WaitsFor
	Position int // among those that wait for the shared scope or, without one, for the call's own; from 1
}

// WaitsFor is what a call waits for, as far as is known.
type WaitsFor struct {
	Limit  string
	Scope  *Scope // of the limit; nil: it is not known
	At     int64  // when the limit lets the call pass at the earliest, in Unix nanoseconds
	Guess  bool   // At is a guess
	Behind bool   // other calls wait for the limit, and this one behind them
}

// follow sets what a call that waits behind others waits for: the limit that the call before it of the same project
// waits for now, since the answer that it got when it came may be outdated. A call that has got no answer yet waits for
// last, the limit of the call before it in line.
func (f *WaitsFor) follow(before map[string]string, project, last string) {
	if limit, known := before[project]; known && f.Behind {
		*f = WaitsFor{Limit: limit, Behind: true}
	}
	if f.Limit == "" && last != "" {
		*f = WaitsFor{Limit: last, Behind: true}
	}
	before[project] = f.Limit
}

// Waits returns the calls that wait, in the order in which they pass if none comes or leaves; calls
// of different shared scopes in no order. Only calls that match are among them; all count for the
// positions.
func (e *Engine) Waits(match func(*Call) bool) []Waiting {
	e.mu.Lock()
	seen := map[*wait]bool{}
	lines := map[*Scope][]*wait{} // by what the calls stand in line for
	for _, flows := range e.waits {
		for _, waits := range flows {
			for w := range waits {
				if !seen[w] {
					seen[w] = true
					lines[w.standsFor()] = append(lines[w.standsFor()], w)
				}
			}
		}
	}
	e.mu.Unlock()
	var list []Waiting
	for scope, waits := range lines {
		before := map[string]string{} // what the call before waits for, of each project
		last := ""                    // what the call before waits for
		for i, w := range inOrder(scope, waits) {
			one := w.waiting(i + 1)
			one.WaitsFor.follow(before, w.call.Project, last)
			last = one.WaitsFor.Limit
			if match(w.call) {
				list = append(list, one)
			}
		}
	}
	return list
}

// EachWait calls do with each call that waits, and with the time since when it does, in Unix
// nanoseconds. It takes less than Waits does, and holds up calls that begin to wait meanwhile.
func (e *Engine) EachWait(do func(c *Call, since int64)) {
	if e.waiting.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, flows := range e.waits {
		for _, waits := range flows {
			for w := range waits {
				if w.scopes[0].Key == key { // it is there once for each of its scopes
					do(w.call, w.start)
				}
			}
		}
	}
}

// standsFor returns the shared scope of a call that waits, or else the innermost of its own.
func (w *wait) standsFor() *Scope {
	for _, s := range w.scopes {
		if s.Kind == Shared {
			return s
		}
	}
	return w.scopes.own()
}

// inOrder sorts calls that wait for one scope.
func inOrder(scope *Scope, waits []*wait) []*wait {
	place := map[any]int{}
	if scope != nil && scope.Kind == Shared {
		for i, call := range scope.line.Order() {
			place[call] = i + 1
		}
	}
	slices.SortFunc(waits, func(a, b *wait) int {
		x, y := place[a.call], place[b.call]
		if x == 0 || y == 0 { // one has just come, or waits for no shared scope
			x, y = -x, -y
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(b.call.Priority, a.call.Priority), cmp.Compare(a.start, b.start))
	})
	return waits
}

func (w *wait) waiting(position int) Waiting {
	one := Waiting{Call: w.call, Tokens: w.call.ask.Amounts[AllTokens], Since: w.start, Position: position}
	if known := w.waitsFor.Load(); known != nil {
		one.WaitsFor = *known
	}
	return one
}

// enlist makes changes of the call's scopes reach the waiting call, until the returned function is called.
func (e *Engine) enlist(w *wait, flow string) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range w.scopes {
		if e.waits[s.Key] == nil {
			e.waits[s.Key] = map[string]map[*wait]bool{}
		}
		if e.waits[s.Key][flow] == nil {
			e.waits[s.Key][flow] = map[*wait]bool{}
		}
		e.waits[s.Key][flow][w] = true
	}
	e.waiting.Add(1)
	if !e.private {
		e.tellOfWaits(w.scopes)
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, s := range w.scopes {
			delete(e.waits[s.Key][flow], w)
			if len(e.waits[s.Key][flow]) == 0 {
				delete(e.waits[s.Key], flow)
			}
			if len(e.waits[s.Key]) == 0 {
				delete(e.waits, s.Key)
			}
		}
		e.waiting.Add(-1)
	}
}

// endImpossible ends the waits of calls that the rules of a scope let never pass.
func (e *Engine) endImpossible(s *Scope) {
	if e.waiting.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, waits := range e.waits[s.Key] {
		for w := range waits {
			if o := w.never(); o != nil {
				w.impossible.Store(o)
				w.giveUp()
			}
		}
	}
}

// Wake makes calls that wait for a scope ask again, here and in other processes: its rules have
// changed, or something was given back. A call counts as waiting before it asks in its turn, so that
// none is missed.
func (e *Engine) Wake(s *Scope) {
	e.wakeHere(s)
	if f := e.fleet.Load(); f != nil {
		f.gave(s)
	}
}

// wakeHere is Wake in this process.
func (e *Engine) wakeHere(s *Scope) {
	if !e.private {
		s.wakes.Add(1)
	}
	if e.waiting.Load() > 0 {
		e.wake(s)
	}
}

func (e *Engine) wake(s *Scope) {
	if s.Kind == Shared {
		s.line.Wake(true)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for flow := range e.waits[s.Key] {
		e.hall.Wake(flow)
	}
}

// wakeAll makes all waiting calls ask again.
func (e *Engine) wakeAll() {
	e.mu.Lock()
	scopes := map[*Scope]bool{}
	for _, flows := range e.waits {
		for _, waits := range flows {
			for w := range waits {
				for _, s := range w.scopes {
					scopes[s] = true
				}
			}
		}
	}
	e.mu.Unlock()
	for s := range scopes {
		e.Wake(s)
	}
}
