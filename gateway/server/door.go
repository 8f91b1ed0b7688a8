package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	http        http.Server
}

// openDoor listens at an address, which the configuration has under a name.
func openDoor(name, address string, files config.TLS) (*door, error) {
	d := &door{}
	var err error
	if files != (config.TLS{}) {
		if d.certificate, err = newCertificate(files); err != nil {
			return nil, err
		}
		d.http.TLSConfig = d.certificate.config()
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

// serve lets requests in, within limits. It returns at once; what keeps it from going
// on is sent.
//
// There is no ReadTimeout and no WriteTimeout, which would end long streams: the
// gateway sets deadlines of its own for each body and each write.
func (d *door) serve(limits config.Server, log *slog.Logger, failed chan<- error) {
	h := &d.http
	h.MaxHeaderBytes = limits.MaxHeader
	h.ReadHeaderTimeout = limits.HeaderTimeout
	h.IdleTimeout = limits.IdleTimeout
	h.HTTP2 = &http.HTTP2Config{WriteByteTimeout: limits.WriteTimeout}
	h.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	go func() {
		var err error
		if d.certificate != nil {
			err = h.ServeTLS(d.listener, "", "")
		} else {
			err = h.Serve(d.listener)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("ratelimit: cannot listen at %s any more: %w", d.listener.Addr(), err)
		}
	}()
}

// finish lets nobody in any more, and gives those who are being answered a moment to
// read the end.
func (d *door) finish(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if d.http.Shutdown(ctx) != nil {
		d.http.Close()
	}
}

func (d *door) close() {
	d.http.Close()
	d.listener.Close()
}
