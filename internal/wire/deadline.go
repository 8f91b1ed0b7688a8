package wire

import (
	"errors"
	"os"
	"sync"
	"time"
)

// deadline is the time until which a connection is read from, or written to. Setting a deadline on
// a connection is expensive, so one that is too early stays, and is set again when it has passed.
type deadline struct {
	set     func(time.Time) error // sets the connection's deadline
	mu      sync.Mutex
	due     time.Time // zero: none
	armed   time.Time // what the connection has; zero: none
	expired bool      // the deadline has passed, whatever due says
}

// until sets the deadline; the zero time means none.
func (t *deadline) until(due time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due, t.expired = due, false
	if !due.IsZero() && (t.armed.IsZero() || due.Before(t.armed)) {
		t.arm()
	}
}

// within sets the deadline to a time from now; 0 means none.
func (t *deadline) within(d time.Duration) {
	if d == 0 {
		t.until(time.Time{})
		return
	}
	t.until(time.Now().Add(d))
}

// past is a time that has passed.
var past = time.Unix(1, 0)

// end lets the deadline expire now, which interrupts a read or write.
func (t *deadline) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expired, t.armed = true, past
	t.set(past)
}

// tooSoon reports whether an error comes from an armed deadline that was earlier than the one that
// is due. It then arms the latter.
func (t *deadline) tooSoon(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expired || !t.due.IsZero() && !time.Now().Before(t.due) {
		return false
	}
	t.arm()
	return true
}

func (t *deadline) arm() {
	t.armed = t.due
	t.set(t.due)
}
