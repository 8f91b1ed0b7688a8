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

// Server serves HTTP/1.1 on plain connections, as strictly as net/http's server, with
// one goroutine a connection. TLS, and with it HTTP/2, are net/http's.
//
// What a handler is given is its own until it returns: its headers, its body and its
// [http.ResponseWriter] must not be used after that. The writer is a [http.Flusher],
// and a [http.ResponseController] can set its deadlines. It sends the headers that it
// is given, and none of its own but Date and those that frame the message: it does not
// guess a Content-Type, sends no interim answers but 100, and no trailers. An answer of 426
// names HTTP/1.1 as the protocol that is spoken here.
type Server struct {
	Handler       http.Handler
	HeaderTimeout time.Duration // of a request's headers, from its first byte on; 0: none
	IdleTimeout   time.Duration // of connections between requests; 0: none
	MaxHeader     int           // bytes of a request's headers; 1 MiB if it is 0
	Log           *slog.Logger  // of handlers that panic, without anything of the request; nil: none

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	peers     map[*peer]struct{}
	ending    atomic.Bool   // each answer is the last of its connection
	closed    atomic.Bool   // nobody is let in any more
	gone      chan struct{} // closed when the last peer is gone; nil: nobody waits for that
}

// Serve lets clients in until the server is shut down, and returns
// [http.ErrServerClosed] then.
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
		case !passes(err):
			return err
		default:
			rest = min(max(2*rest, 5*time.Millisecond), time.Second)
			time.Sleep(rest)
		}
	}
}

// passes reports whether a listener may accept again after an error, as it may when
// there are too many open files.
func passes(err error) bool {
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
	s.tellGone()
}

// tellGone wakes who waits for the last peer, if there is none any more.
func (s *Server) tellGone() {
	if s.gone != nil && len(s.peers) == 0 {
		close(s.gone)
		s.gone = nil
	}
}

func (s *Server) maxHeader() int64 { return int64(cmp.Or(s.MaxHeader, 1<<20)) }

// Drain closes the connections that are idle, and from now on each other after its
// next answer. New ones are still let in.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
}

func (s *Server) drain() {
	s.ending.Store(true)
	for p := range s.peers {
		p.rouse()
	}
}

// Shutdown lets nobody in any more, closes the connections that are idle, and waits for
// the others: each is closed after its answer. If ctx ends before, its error is
// returned, and who is left is served on.
func (s *Server) Shutdown(ctx context.Context) error {
	gone, err := s.shut()
	select {
	case <-gone:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shut closes the listeners. What it returns is closed when no peer is left.
func (s *Server) shut() (gone <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.close()
	s.drain()
	if s.gone == nil {
		s.gone = make(chan struct{})
	}
	gone = s.gone
	s.tellGone()
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

// Close closes the listeners and all connections. The contexts of requests that are
// being served end.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.close()
	s.ending.Store(true)
	for p := range s.peers {
		p.conn.Close()
		p.watch.hangUp()
	}
	return err
}
