package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// busy returns an address where connections are neither accepted nor refused.
func busy(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for { // until its queue is full
		c, err := net.DialTimeout("tcp", address, 500*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { c.Close() })
	}
}

func TestCancelDial(t *testing.T) {
	address := busy(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, c := range []struct {
		transport *Transport
		ctx       context.Context
		want      error
	}{
		{&Transport{}, ctx, context.DeadlineExceeded},
		{&Transport{DialTimeout: 20 * time.Millisecond}, t.Context(), errDialTimeout},
	} {
		_, err := send(newTransport(t, c.transport), newRequest(t, "GET", "http://"+address, "").WithContext(c.ctx))
		var fault *Error
		if !errors.As(err, &fault) || fault.Sent || !fault.Timeout() || !errors.Is(err, c.want) {
			t.Errorf("%v", err)
		}
	}
}
