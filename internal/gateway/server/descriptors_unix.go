//go:build unix

package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// descriptors returns how many files and connections the process may have open, or 0 if that is not known.
func descriptors() int {
	var open syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &open) != nil {
		return 0
	}
	return int(min(open.Cur, 1<<30)) // "unlimited" does not fit
}

// unread reports whether a connection has received bytes that nobody has read yet.
func unread(c net.Conn) (found bool) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		n, _, _ := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		found = n > 0
	})
	return found
}
