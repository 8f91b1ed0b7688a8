//go:build unix

package wire

import "syscall"

// errReset is the error of a connection that was closed with something unread.
var errReset error = syscall.ECONNRESET
