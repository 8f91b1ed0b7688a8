//go:build unix

package redistest

import (
	"net"
	"syscall"
)

// closeListener closes a listener, and also its copies: a process that is being started inherits
// one until it runs.
func closeListener(l *net.TCPListener) {
	if raw, err := l.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
	l.Close()
}
