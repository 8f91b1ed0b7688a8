//go:build !unix

package wire

import (
	"net"
	"time"
)

// peeker cannot peek at a socket without waiting on this system.
type peeker struct{}

func newPeeker(net.Conn) *peeker { return nil }

// silent reports whether the connection has been idle for so short a time that the server
// has hardly closed it.
func (*peeker) silent(since time.Time) bool { return time.Since(since) < time.Second }
