//go:build !unix

package redistest

import "net"

// closeListener closes a listener.
func closeListener(l *net.TCPListener) { l.Close() }
