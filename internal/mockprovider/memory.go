package mockprovider

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// InMemory serves on connections in memory, and returns a transport that only has such connections:
// its requests reach this server whatever their host, with https too. Call stop when nothing uses
// the transport any more. It works within the bubbles of testing/synctest.
func (s *Server) InMemory() (transport *http.Transport, stop func()) {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	transport = &http.Transport{DialContext: l.dial, DialTLSContext: l.dial, MaxIdleConnsPerHost: 100}
	return transport, func() {
		transport.CloseIdleConnections()
		server.Close()
		serving.Wait()
	}
}

// listener listens for connections in memory.
type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }
