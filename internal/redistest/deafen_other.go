//go:build !unix

package redistest

import "net"

// deafen closes a listener.
func deafen(l *net.TCPListener) { l.Close() }
