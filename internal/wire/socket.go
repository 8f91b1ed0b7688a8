package wire

import (
	"net"
	"sync"
	"time"
)

// socket is the TCP connection, below TLS if there is any.
type socket struct {
	net.Conn
	noWait bool     // a Read does not wait: it returns errNoData
	wrote  bool     // bytes were written
	reads  deadline // the deadline of the headers

	mu       sync.Mutex
	awaiting bool // the headers of an answer are awaited
}

func (s *socket) Read(p []byte) (int, error) {
	if s.noWait {
		return 0, errNoData
	}
	for {
		n, err := s.Conn.Read(p)
		if err == nil || !s.reads.tooSoon(err) {
			return n, err
		}
	}
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.wrote = s.wrote || n > 0
	return n, err
}

// writeAll writes all parts in one system call.
func (s *socket) writeAll(parts net.Buffers) error {
	n, err := parts.WriteTo(s.Conn)
	s.wrote = s.wrote || n > 0
	return err
}

// errNoData is temporary, so that TLS can go on after it.
var errNoData error = noData{}

type noData struct{}

func (noData) Error() string   { return "there is nothing to read yet" }
func (noData) Timeout() bool   { return true }
func (noData) Temporary() bool { return true }

// await begins to wait for the headers of an answer.
func (s *socket) await() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaiting = true
}

// limitHeaders sets how long the headers may take from now on, if they are still awaited; 0 means
// no bound.
func (s *socket) limitHeaders(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaiting && d != 0 {
		s.reads.within(d)
	}
}

// unlimitHeaders lets the headers take any time, until limitHeaders is called again.
func (s *socket) unlimitHeaders() { s.reads.until(time.Time{}) }

// answered ends the wait for headers.
func (s *socket) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaiting = false
	s.reads.until(time.Time{})
}
