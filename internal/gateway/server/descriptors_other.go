//go:build !unix

package server

import "net"

// descriptors returns how many files and connections the process may have open, or 0 if that is not known.
func descriptors() int { return 0 }

// unread reports whether a connection has received bytes that nobody has read yet. It is not known here.
func unread(net.Conn) bool { return false }
