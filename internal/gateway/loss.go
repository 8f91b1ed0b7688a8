package gateway

import (
	"context"
	"log/slog"
	"sync"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/store"
)

// loss is an observer that logs when Redis is lost and when it is back. For a cluster, it
// logs when the first part is lost and when all parts are back.
type loss struct {
	log       *slog.Logger
	followers *followers

	mu    sync.Mutex
	parts map[int]bool // the parts that are lost
	why   error        // why the first of them is lost; nil: none is
}

func newLoss(log *slog.Logger, f *followers) *loss {
	return &loss{log: log, followers: f, parts: map[int]bool{}}
}

// Observe records events of the store.
func (l *loss) Observe(_ context.Context, e event.Event) {
	if e.Kind != event.Store || e.Store == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Store.Kind {
	case store.Lost:
		l.parts[e.Store.Group] = true
		if l.why == nil {
			l.why = e.Store.Err
			l.log.Error("Redis is lost", "on_store_loss", e.Store.Mode, "error", l.why)
			l.followers.publish(&Event{Kind: EventStore, Err: l.why})
		}
	case store.Back:
		delete(l.parts, e.Store.Group)
		if l.why != nil && len(l.parts) == 0 {
			l.why = nil
			l.log.Warn("Redis is back", "on_store_loss", e.Store.Mode)
			l.followers.publish(&Event{Kind: EventStore})
		}
	case store.Unsaved:
		l.log.Warn("Redis forgets limits, budgets, usage and virtual keys when it is restarted", "error", e.Store.Err)
	}
}

// lost returns why the store is lost, or nil.
func (l *loss) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}
