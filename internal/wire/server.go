package wire

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves HTTP/1.1 on plain connections, as strictly as net/http's server, with one goroutine
// a connection. TLS, and HTTP/2 with it, are left to net/http.
//
// A handler must not use its headers, its body or its [http.ResponseWriter] after it has returned.
// The writer is a [http.Flusher], and a [http.ResponseController] can set its deadlines. It sends
// the headers that it is given, and none of its own but Date and those that frame the message: it
// does not guess a Content-Type, and sends no trailers and no interim answers but 100. An answer of
// 426 names HTTP/1.1 in Upgrade.
type Server struct {
	Handler       http.Handler
	HeaderTimeout time.Duration // for a request's headers, from its first byte on; 0: none
	IdleTimeout   time.Duration // for connections between requests; 0: none
	MaxHeader     int           // bytes of a request's headers; 1 MiB if 0
	Log           *slog.Logger  // logs panics of handlers, without anything of the request; nil: no log

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	peers     map[*peer]struct{}
	draining  atomic.Bool   // each answer is the last of its connection
	closed    atomic.Bool   // no client is admitted any more
	allGone   chan struct{} // closed when the last peer is gone; nil: Shutdown does not wait
}

// Serve admits clients until the server is shut down, and then returns [http.ErrServerClosed].
func (s *Server) Serve(l net.Listener) error {
	if !s.listen(l) {
		l.Close()
		return http.ErrServerClosed
	}
	defer s.leave(l)
	for rest := time.Duration(0); ; {
		c, err := l.Accept()
		switch {
		case err == nil:
			rest = 0
			if p := s.admit(c); p != nil {
				go p.serve()
			}
		case s.closed.Load():
			return http.ErrServerClosed
		case !isTemporary(err):
			return err
		default:
			rest = min(max(2*rest, 5*time.Millisecond), time.Second)
			time.Sleep(rest)
		}
	}
}

// isTemporary reports whether a listener can accept again after an error, such as too many open
// files.
func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return false
	}
	if s.listeners == nil {
		s.listeners, s.peers = make(map[net.Listener]struct{}), make(map[*peer]struct{})
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) leave(l net.Listener) {
	l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// admit returns a new peer, or nil if the server is closed.
func (s *Server) admit(c net.Conn) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		c.Close()
		return nil
	}
	p := newPeer(s, c)
	s.peers[p] = struct{}{}
	return p
}

func (s *Server) forget(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, p)
	s.signalGone()
}

// signalGone wakes the calls of Shutdown if no peer is left.
func (s *Server) signalGone() {
	if s.allGone != nil && len(s.peers) == 0 {
		close(s.allGone)
		s.allGone = nil
	}
}

func (s *Server) maxHeader() int64 { return int64(cmp.Or(s.MaxHeader, 1<<20)) }

// Drain closes the idle connections now, and each other one after its next answer. New connections
// are still admitted.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
}

func (s *Server) drain() {
	s.draining.Store(true)
	for p := range s.peers {
		p.abortWait()
	}
}

// Shutdown admits no client any more, closes the idle connections, and waits for the others, each
// of which is closed after its answer. If ctx ends first, Shutdown returns its error, and the
// remaining requests are still served.
func (s *Server) Shutdown(ctx context.Context) error {
	gone, err := s.shut()
	select {
	case <-gone:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shut closes the listeners. gone is closed when no peer is left.
func (s *Server) shut() (gone <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.close()
	s.drain()
	if s.allGone == nil {
		s.allGone = make(chan struct{})
	}
	gone = s.allGone
	s.signalGone()
	return gone, err
}

func (s *Server) close() error {
	s.closed.Store(true)
	var faults []error
	for l := range s.listeners {
		faults = append(faults, l.Close())
	}
	clear(s.listeners)
	return errors.Join(faults...)
}

// Close closes the listeners and all connections. It ends the contexts of the requests that are
// being served.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.close()
	s.draining.Store(true)
	for p := range s.peers {
		p.conn.Close()
		p.watch.hangUp()
	}
	return err
}
