package redistest

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// client is a raw connection.
type client struct {
	t *testing.T
	net.Conn
}

func connect(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn}
}

func (c *client) send(args ...string) {
	c.t.Helper()
	if _, err := c.Write(command(args)); err != nil {
		c.t.Fatal(err)
	}
}

// read checks that these bytes come.
func (c *client) read(want string) {
	c.t.Helper()
	b := make([]byte, len(want))
	c.SetReadDeadline(time.Now().Add(timeout))
	if n, err := io.ReadFull(c, b); err != nil || string(b) != want {
		c.t.Fatalf("%q, %v; want %q", b[:n], err, want)
	}
}

func (c *client) expect(want string, args ...string) {
	c.t.Helper()
	c.send(args...)
	c.read(want)
}

// silent checks that nothing comes for a while, and the connection stays open.
func (c *client) silent() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal(n, err)
	}
}

// ended checks that the connection ends, with an error (nil: in order).
func (c *client) ended(want error) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(timeout))
	rest, err := io.ReadAll(c)
	if len(rest) > 0 || !errors.Is(err, want) {
		c.t.Fatalf("%q, %v; want %v", rest, err, want)
	}
}
