package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const host = "127.0.0.1"

// listen returns a listener on a free port. The port is below those that the system uses for
// outgoing connections, so it stays free while a server that will return to it is down.
func listen() (l *net.TCPListener, err error) {
	for range 100 {
		port := 10_000 + rand.IntN(22_000)
		if l, err = listenOn(net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("ratelimit: found no free port: %w", err)
}

func listenOn(addr string) (*net.TCPListener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// freePorts returns two free ports.
func freePorts() (first, second string, err error) {
	a, err := listen()
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	b, err := listen()
	if err != nil {
		return "", "", err
	}
	defer b.Close()
	return portOf(a.Addr().String()), portOf(b.Addr().String()), nil
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
