package wire

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// socket is the lower end of a connection: TLS is above it, if there is any.
type socket struct {
	net.Conn
	held  bool // who reads does not wait: it gets errHeld
	wrote bool // something has left
	wait
}

func (s *socket) Read(p []byte) (int, error) {
	if s.held {
		return 0, errHeld
	}
	for {
		n, err := s.Conn.Read(p)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !s.tooSoon() {
			return n, err
		}
	}
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.wrote = s.wrote || n > 0
	return n, err
}

// writeBoth writes two texts at once.
func (s *socket) writeBoth(first, second []byte) error {
	both := net.Buffers{first, second}
	n, err := both.WriteTo(s.Conn)
	s.wrote = s.wrote || n > 0
	return err
}

// errHeld is temporary for TLS, which can go on after it.
var errHeld error = held{}

type held struct{}

func (held) Error() string   { return "there is nothing to read yet" }
func (held) Timeout() bool   { return true }
func (held) Temporary() bool { return true }

// wait is how long a socket waits for an answer's headers. To set a socket's deadline
// costs more than to keep it: one that is too soon stays, and is set anew when it has
// passed.
type wait struct {
	mu    sync.Mutex
	on    bool      // headers are waited for
	due   time.Time // when they must be there; zero: it does not matter
	armed time.Time // the deadline that is set; zero: none
}

// await begins to wait for headers.
func (s *socket) await() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = true
}

// allow sets how long they may take from now on; 0: as long as they like.
func (s *socket) allow(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on || d == 0 {
		return
	}
	s.due = time.Now().Add(d)
	if s.armed.IsZero() || s.due.Before(s.armed) {
		s.arm()
	}
}

// forbear lets them take as long as they like, until allow is called again.
func (s *socket) forbear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = time.Time{}
}

// answered ends the wait.
func (s *socket) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.due = false, time.Time{}
}

// tooSoon reports whether a deadline that has passed was not the one that counts. That
// one is set then.
func (s *socket) tooSoon() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.due.IsZero() && !time.Now().Before(s.due) {
		return false
	}
	s.arm()
	return true
}

func (s *socket) arm() {
	s.armed = s.due
	s.SetReadDeadline(s.due)
}
