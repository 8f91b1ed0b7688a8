package wire

import (
	"errors"
	"os"
	"sync"
	"time"
)

// term is until when a connection is read from, or written to. To set a connection's
// deadline costs more than to keep it: one that is too soon stays, and is set anew
// when it has passed.
type term struct {
	set   func(time.Time) error // a connection's deadline
	mu    sync.Mutex
	due   time.Time // zero: it does not matter
	armed time.Time // the deadline that is set; zero: none
	cut   bool      // it is over, whatever due says
}

// until sets when it is due; the zero time is never.
func (t *term) until(due time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due, t.cut = due, false
	if !due.IsZero() && (t.armed.IsZero() || due.Before(t.armed)) {
		t.arm()
	}
}

// within is until with a duration from now on; 0 is never.
func (t *term) within(d time.Duration) {
	if d == 0 {
		t.until(time.Time{})
		return
	}
	t.until(time.Now().Add(d))
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// end ends it now, and whatever waits for the connection.
func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut, t.armed = true, past
	t.set(past)
}

// tooSoon reports whether an error is that of a deadline that was not the one which
// counts. That one is set then.
func (t *term) tooSoon(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut || !t.due.IsZero() && !time.Now().Before(t.due) {
		return false
	}
	t.arm()
	return true
}

func (t *term) arm() {
	t.armed = t.due
	t.set(t.due)
}
