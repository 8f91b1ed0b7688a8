package testkit

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"time"
)

// Log keeps everything that is written to it. A test can wait until a text is written.
type Log struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write; nil if no test waits
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written != nil {
		close(l.written)
		l.written = nil
	}
	return l.text.Write(p)
}

// String returns everything that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Await waits until the log matches a pattern. It returns the last group of the match, or all
// of the match if the pattern has no group.
func (l *Log) Await(t testing.TB, pattern string) string {
	t.Helper()
	return l.AwaitTimes(t, pattern, 1)
}

// AwaitTimes is Await for a number of matches. It returns the last group of the last match.
func (l *Log) AwaitTimes(t testing.TB, pattern string, times int) string {
	t.Helper()
	wanted, late := regexp.MustCompile(pattern), time.After(Patience)
	for {
		found, written := l.find(wanted, times)
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

// find returns the first matches of a pattern, up to a number of times, and a channel that is closed
// at the next write.
func (l *Log) find(wanted *regexp.Regexp, times int) ([][][]byte, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = make(chan struct{})
	}
	return wanted.FindAllSubmatch(l.text.Bytes(), times), l.written
}
