//go:build unix

package wire

import (
	"net"
	"syscall"
	"time"
)

// peeker peeks at a socket without waiting and without consuming anything.
type peeker struct {
	raw  syscall.RawConn
	look func(fd uintptr)
	seen error
}

func newPeeker(c net.Conn) *peeker {
	p := &peeker{}
	if sys, ok := c.(syscall.Conn); ok {
		p.raw, _ = sys.SyscallConn()
	}
	p.look = func(fd uintptr) {
		var b [1]byte
		_, _, p.seen = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	}
	return p
}

// silent reports whether the socket is open and has nothing to read.
func (p *peeker) silent(time.Time) bool {
	return p.raw != nil && p.raw.Control(p.look) == nil && p.seen == syscall.EAGAIN
}
