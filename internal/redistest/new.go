package redistest

import (
	"testing"
	"time"
)

// New returns a server that runs until the test ends. args are added to those of redis-server.
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

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !done(); time.Sleep(5 * pollInterval) {
		if time.Now().After(end) {
			t.Fatalf("ratelimit: waited %v for %s", timeout, what)
		}
	}
}

// doOrFail lets a server run a command, which must succeed.
func doOrFail(t testing.TB, s *Server, args ...string) any {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%s: %v: %v", s.Addr, args, err)
	}
	return answer
}
