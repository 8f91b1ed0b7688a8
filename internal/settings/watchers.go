package settings

import "sync"

// Watchers is the functions that are called when something has changed. The zero Watchers is ready to use, and
// its methods may be called concurrently.
type Watchers struct {
	mu  sync.Mutex
	all map[*func()]struct{}
}

// Add calls changed now, because the latest change may be one that the caller does not know, and on every
// Notify until stop is called. changed must return soon.
func (w *Watchers) Add(changed func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*func()]struct{}{}
	}
	w.all[&changed] = struct{}{}
	changed()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, &changed)
	}
}

// Notify calls all functions.
func (w *Watchers) Notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for changed := range w.all {
		(*changed)()
	}
}
