//go:build unix

package wire

import (
	"io"
	"net"
	"syscall"
	"testing"
)

// A server does what makes an idle connection useless.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(c net.Conn)
		kept bool
	}{
		{"nothing", func(net.Conn) {}, true},
		{"closes", func(c net.Conn) { c.Close() }, false},
		{"resets", func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() }, false},
		{"closes its half", func(c net.Conn) { c.(*net.TCPConn).CloseWrite() }, false},
		{"speaks unasked", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			accepted := make(chan net.Conn, 2)
			server := startRaw(t, func(conn net.Conn) {
				accepted <- conn
				always(hello, false)(conn)
			})
			transport := newTransport(t, nil)
			must(t, transport, newRequest(t, "GET", server.url, ""), "200", "hi")
			c.then(<-accepted)
			if !c.kept {
				arrived(t, transport)
			}
			must(t, transport, newRequest(t, "POST", server.url, "text"), "200", "hi")
			if n := server.accepted.Load(); (n == 1) != c.kept {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// arrived waits until data, or the end, has come on the one idle connection.
func arrived(t *testing.T, transport *Transport) {
	t.Helper()
	transport.mu.Lock()
	defer transport.mu.Unlock()
	for _, list := range transport.idle {
		p := list[0].peeker
		p.raw.Read(func(fd uintptr) bool {
			p.look(fd)
			return p.seen != syscall.EAGAIN
		})
	}
}
