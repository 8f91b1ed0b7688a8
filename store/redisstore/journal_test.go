package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// All nodes see the last lines of a log, oldest first, and other logs apart from it.
func TestJournal(t *testing.T) {
	server := redistest.New(t)
	open := func() internals {
		s := opened(t, server.URL(), Config{Timeout: 20 * time.Second})
		return internals{s}
	}
	one, two := open(), open()
	for i, line := range []string{"a", "b\n\x00", "c", "d"} {
		if err := []internals{one, two}[i%2].AppendLine(t.Context(), "audit", line, 3); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []internals{one, two} {
		if lines, err := s.Lines(t.Context(), "audit"); err != nil || !slices.Equal(lines, []string{"b\n\x00", "c", "d"}) {
			t.Errorf("%q, %v", lines, err)
		}
		if lines, err := s.Lines(t.Context(), "other"); err != nil || len(lines) != 0 {
			t.Errorf("%q, %v", lines, err)
		}
	}
	server.Kill()
	if err := one.AppendLine(t.Context(), "audit", "e", 3); !errors.Is(err, ErrLost) {
		t.Errorf("while Redis is lost: %v", err)
	}
}
