package wire

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"time"
)

// conn is a connection of a Transport. It has one exchange at a time.
type conn struct {
	transport *Transport
	origin    origin
	socket    socket
	stream    io.ReadWriter        // the socket, or TLS over it
	state     *tls.ConnectionState // nil without TLS
	reader    *bufio.Reader        // reads from the stream
	hangUp    func()               // closes the socket
	leave     func()               // is called when the context of an exchange ends
	peeker    *peeker

	used  bool      // an exchange has succeeded on it
	since time.Time // the start of its idle time
}

// readerSize is small because each of thousands of open streams has a reader.
const readerSize = 4 << 10

func (t *Transport) dial(ctx context.Context, at origin, u *url.URL) (*conn, error) {
	within, cancel := context.WithTimeout(ctx, cmp.Or(t.DialTimeout, 10*time.Second))
	defer cancel()
	c, err := t.dialWithin(within, at, u)
	if end, _ := within.Deadline(); err == nil || time.Now().Before(end) {
		return c, err
	}
	if theirs, has := ctx.Deadline(); has && !time.Now().Before(theirs) {
		return nil, context.DeadlineExceeded // the context may not have ended yet
	}
	return nil, errDialTimeout
}

func (t *Transport) dialWithin(ctx context.Context, at origin, u *url.URL) (*conn, error) {
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", address(u))
	if err != nil {
		return nil, err
	}
	c := t.newConn(at, raw)
	if at.scheme == "https" {
		if err := c.handshake(ctx, t.config(u.Hostname())); err != nil {
			raw.Close()
			return nil, err
		}
	}
	return c, nil
}

func (t *Transport) newConn(at origin, raw net.Conn) *conn {
	c := &conn{transport: t, origin: at, socket: socket{Conn: raw}, peeker: newPeeker(raw), hangUp: func() { raw.Close() }}
	c.leave = c.hangUp
	if t.Linger > 0 {
		c.leave = func() { time.AfterFunc(t.Linger, c.hangUp) } // no other exchange gets the connection after that
	}
	c.socket.reads.set = raw.SetReadDeadline
	c.stream = &c.socket
	c.reader = bufio.NewReaderSize(c.stream, readerSize)
	return c
}

func address(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func (c *conn) handshake(ctx context.Context, config *tls.Config) error {
	layer := tls.Client(&c.socket, config)
	if err := layer.HandshakeContext(ctx); err != nil {
		return err
	}
	state := layer.ConnectionState()
	c.stream, c.state = layer, &state
	c.reader.Reset(layer)
	return nil
}

// config returns the TLS configuration for a host.
func (t *Transport) config(host string) *tls.Config {
	config := t.TLS.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	config.ServerName = cmp.Or(config.ServerName, host)
	config.NextProtos = []string{"http/1.1"}
	if config.ClientSessionCache == nil {
		t.mu.Lock()
		if t.sessions == nil {
			t.sessions = tls.NewLRUClientSessionCache(0)
		}
		config.ClientSessionCache = t.sessions
		t.mu.Unlock()
	}
	return config
}

// silent reports whether the connection is open, and the server has sent nothing on it unasked.
func (c *conn) silent() bool {
	if c.reader.Buffered() > 0 || !c.peeker.silent(c.since) {
		return false
	}
	if c.state == nil {
		return true
	}
	c.socket.noWait = true // TLS must have no data that it has already read
	_, err := c.stream.Read(make([]byte, 1))
	c.socket.noWait = false
	return err == errNoData
}
