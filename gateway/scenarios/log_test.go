package scenarios

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"time"
)

// logged is a log that can be waited for.
type logged struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // is closed, and replaced, at each write
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

// await waits until the log matches a pattern so many times, and returns what the first
// group of the last one is.
func (l *logged) await(t *testing.T, pattern string, times int) string {
	t.Helper()
	wanted, late := regexp.MustCompile(pattern), time.After(patience)
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

// patience is how long something may take that is certain to come.
const patience = 30 * time.Second

// until waits for a condition that shows only from outside.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it never comes that %s", what)
		}
	}
}
