package engine

// enlist lets changes of the call's scopes reach the call, until the function that it returns is called.
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
			if delete(e.waits[s.Key][flow], w); len(e.waits[s.Key][flow]) == 0 {
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

// Wake lets calls ask again that wait for a scope, here or in other processes: its rules have
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
		s.line.Wake()
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for flow := range e.waits[s.Key] {
		e.hall.Wake(flow)
	}
}

// wakeAll lets all calls ask again that wait.
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
