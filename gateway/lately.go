package gateway

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// lately remembers some things, by their hashes, each for a while. Clients choose many of
// them, so it remembers mostRemembered at a time.
type lately struct {
	some  atomic.Bool // until is not empty
	mu    sync.Mutex
	until map[uint64]time.Time
}

const mostRemembered = 256

// note remembers a thing for a while.
func (l *lately) note(thing uint64, span time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.until, func(_ uint64, until time.Time) bool { return !now.Before(until) })
	if l.until == nil {
		l.until = map[uint64]time.Time{}
	}
	if len(l.until) < mostRemembered {
		l.until[thing] = now.Add(span)
	}
	l.some.Store(true)
}

// any reports whether something may be remembered, which is cheap to ask.
func (l *lately) any() bool { return l.some.Load() }

// has reports whether a thing is remembered.
func (l *lately) has(thing uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until[thing])
}
