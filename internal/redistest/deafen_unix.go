//go:build unix

package redistest

import (
	"net"
	"syscall"
)

// deafen closes a listener, and its copies too: a program that is being started
// has one until it runs.
func deafen(l *net.TCPListener) {
	if raw, err := l.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
	l.Close()
}
