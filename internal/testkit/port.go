package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// A Port is a TCP port of this machine that no other test takes, in any process, until it is released. So a server can
// leave it and come back to it. Its number is below those that the system gives to listeners that ask for any port, and
// to outgoing connections.
type Port struct {
	Addr  string         // host:port
	guard net.PacketConn // has the UDP port of the same number, which says that the TCP port is taken
}

// ClaimPort returns a port that nothing listens on.
func ClaimPort() (*Port, error) {
	const host = "127.0.0.1"
	var err error
	for range 1000 {
		p := &Port{Addr: net.JoinHostPort(host, strconv.Itoa(10_000+rand.IntN(22_000)))}
		p.guard, err = net.ListenPacket("udp", p.Addr)
		if err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", p.Addr); err == nil {
			l.Close()
			return p, nil
		}
		p.Release()
	}
	return nil, fmt.Errorf("ratelimit: found no free port: %w", err)
}

// Release gives the port back.
func (p *Port) Release() { p.guard.Close() }

// Number returns the port without the host.
func (p *Port) Number() string {
	_, number, _ := net.SplitHostPort(p.Addr)
	return number
}

// NewPort returns a port that is the test's until it ends.
func NewPort(t testing.TB) *Port {
	t.Helper()
	p, err := ClaimPort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p
}
