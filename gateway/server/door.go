package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// door is an address at which a handler is served.
type door struct {
	listener    net.Listener
	certificate *certificate // nil: no TLS
	host        host         // nil: nobody is let in yet
}

// openDoor listens at an address, which the configuration has under a name.
func openDoor(name, address string, files config.TLS) (*door, error) {
	d := &door{}
	var err error
	if files != (config.TLS{}) {
		if d.certificate, err = newCertificate(files); err != nil {
			return nil, err
		}
	}
	if d.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("ratelimit: cannot listen at %s (%s): %w", address, name, explain(err, name))
	}
	return d, nil
}

// explain says what to do about an address at which one cannot listen.
func explain(err error, name string) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another program, or another gateway, listens there: stop it, or choose another address with --" + name
	case errors.Is(err, syscall.EACCES):
		hint = "ports below 1024 need a privilege: choose another one with --" + name
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "that is no address of this machine: choose one of its own, or 0.0.0.0 for all of them"
	default:
		return err
	}
	return hinted{err, hint}
}

// hinted is an error that says what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Error() string { return h.hint }
func (h hinted) Unwrap() error { return h.error }

// serve lets requests in, to a host. It returns at once; what keeps it from going on
// is sent.
func (d *door) serve(h host, failed chan<- error) {
	d.host = h
	go func() {
		if err := h.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("ratelimit: cannot listen at %s any more: %w", d.listener.Addr(), err)
		}
	}()
}

// finish lets nobody in any more, and gives those who are being answered a moment to
// read the end.
func (d *door) finish(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if d.host.Shutdown(ctx) != nil {
		d.host.Close()
	}
}

func (d *door) close() {
	if d.host != nil {
		d.host.Close()
	}
	d.listener.Close()
}
