package scenarios

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"time"
)

// logged is a log in which a test can wait for a line.
type logged struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // each write closes and replaces it
}

func newLogged() *logged { return &logged{written: make(chan struct{})} }

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.written)
	l.written = make(chan struct{})
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until the log matches a pattern a number of times, and returns the first group
// of the last match.
func (l *logged) await(t *testing.T, pattern string, times int) string {
	t.Helper()
	wanted, late := regexp.MustCompile(pattern), time.After(timeout)
	for {
		l.mu.Lock()
		found, written := wanted.FindAllSubmatch(l.text.Bytes(), times), l.written
		l.mu.Unlock()
		if len(found) >= times {
			last := found[times-1]
			return string(last[len(last)-1])
		}
		select {
		case <-written:
		case <-late:
			t.Fatalf("the log has no %q:\n%s", pattern, l)
		}
	}
}

// timeout is how long a test waits for a condition.
const timeout = 30 * time.Second

// until polls until a condition holds.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(timeout); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it never comes that %s", what)
		}
	}
}
