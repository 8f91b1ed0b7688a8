package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// The log has a line when Redis is lost, and one when it is back. For a cluster, that is when
// the first part is lost, and when the last is back.
func TestLossIsLogged(t *testing.T) {
	var log bytes.Buffer
	l := newLoss(slog.New(slog.NewTextHandler(&log, nil)), new(followers))
	lost := func(part int) store.Event {
		return store.Event{Kind: store.Lost, Mode: redisstore.Allow, Group: part, Err: fmt.Errorf("part %d is cut off", part)}
	}
	back := func(part int) store.Event {
		return store.Event{Kind: store.Back, Mode: redisstore.Allow, Group: part}
	}
	for i, step := range []struct {
		event store.Event
		why   string // why Redis counts as lost afterwards
		line  string // the new line of the log
	}{
		{event: back(0)},
		{lost(0), "part 0 is cut off", `level=ERROR msg="Redis is lost" on_store_loss=allow error="part 0 is cut off"`},
		{event: store.Event{Kind: store.Decided, Allowed: 3}, why: "part 0 is cut off"},
		{event: lost(0), why: "part 0 is cut off"},
		{event: lost(63), why: "part 0 is cut off"},
		{event: back(0), why: "part 0 is cut off"},
		{event: back(63), line: `level=WARN msg="Redis is back" on_store_loss=allow`},
		{event: back(63)},
		{lost(63), "part 63 is cut off", `msg="Redis is lost"`},
	} {
		log.Reset()
		event.OfStore(l)(step.event)
		got := strings.TrimSpace(log.String())
		if !strings.Contains(got, step.line) || (got == "") != (step.line == "") {
			t.Errorf("step %d: the log has %q: want %q", i, got, step.line)
		}
		if why := l.lost(); fmt.Sprint(why) != fmt.Sprint(errorOf(step.why)) {
			t.Errorf("step %d: it is lost because of %v: want %q", i, why, step.why)
		}
	}
	l.Observe(t.Context(), event.Event{Kind: event.Store}) // an event without a store is ignored
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
