package wire

import "net"

// socket is the lower end of a connection: TLS is above it, if there is any.
type socket struct {
	net.Conn
	held  bool // who reads does not wait: it gets errHeld
	wrote bool // something has left
}

func (s *socket) Read(p []byte) (int, error) {
	if s.held {
		return 0, errHeld
	}
	return s.Conn.Read(p)
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.wrote = s.wrote || n > 0
	return n, err
}

// writeBoth writes two texts at once.
func (s *socket) writeBoth(first, second []byte) error {
	both := net.Buffers{first, second}
	n, err := both.WriteTo(s.Conn)
	s.wrote = s.wrote || n > 0
	return err
}

// errHeld is temporary for TLS, which can go on after it.
var errHeld error = held{}

type held struct{}

func (held) Error() string   { return "there is nothing to read yet" }
func (held) Timeout() bool   { return true }
func (held) Temporary() bool { return true }
