package redistest

import (
	"testing"
	"time"
)

// New returns a server that runs until the test ends. Args are added to those
// of redis-server.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, Options{Args: args})
}

func start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// await waits until something is so.
func await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * step) {
		if time.Now().After(end) {
			t.Fatalf("ratelimit: waited %v for %s", patience, what)
		}
	}
}

// must has a server carry out a command.
func must(t testing.TB, s *Server, args ...string) any {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%s: %v: %v", s.Addr, args, err)
	}
	return answer
}
