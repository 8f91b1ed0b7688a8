package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// endpoint is an address at which the server listens.
type endpoint struct {
	listener    net.Listener
	certificate *certificate // nil: no TLS
	server      httpServer   // nil before serve
}

// mostClients and mostAdmins return how many connections of clients, and of the admin API, may be open in a process
// with a number of descriptors. Half are for clients: the others are for as many connections to providers, the state
// and the admin API, which clients must not lock out. 0 is any number. The streams of a connection of HTTP/2 may be
// many, so as many requests may be in progress as there may be connections of clients.
func mostClients(descriptors int) int {
	if descriptors == 0 {
		return 0
	}
	return max((descriptors-64)/2, 8)
}

func mostAdmins(descriptors int) int {
	if descriptors == 0 {
		return 0
	}
	return min(max(descriptors/16, 8), 2048)
}

// listen opens the endpoint at an address. most is the bound on its open connections; name is the option that sets the
// address.
func listen(name, address string, files config.TLS, most int) (*endpoint, error) {
	e := &endpoint{}
	var err error
	if files != (config.TLS{}) {
		if e.certificate, err = newCertificate(files); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: cannot listen at %s (%s): %s", address, name, hint(err, name))
	}
	e.listener = newCrowd(l, most)
	return e, nil
}

// hint returns why the server cannot listen, and what to do about it.
func hint(err error, name string) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program, or another gateway, listens there: stop it, or choose another address with --" + name
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 need a privilege: choose another one with --" + name
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address: choose one that it has, or 0.0.0.0 for all of them"
	}
	return err.Error()
}

// serve starts to accept requests, and returns at once. failed gets an error when the
// server stops by itself.
func (e *endpoint) serve(s httpServer, failed chan<- error) {
	e.server = s
	go func() {
		if err := s.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("ratelimit: cannot listen at %s any more: %w", e.listener.Addr(), err)
		}
	}()
}

// finish accepts no more requests, and gives clients some time to read the end of their
// answers.
func (e *endpoint) finish(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if e.server.Shutdown(ctx) != nil {
		e.server.Close()
	}
}

func (e *endpoint) close() {
	if e.server != nil {
		e.server.Close()
	}
	e.listener.Close()
}
