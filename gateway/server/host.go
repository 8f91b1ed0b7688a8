package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// host serves what comes to a listener, and returns [http.ErrServerClosed] once it is
// told to stop.
type host interface {
	Serve(net.Listener) error
	Drain() // closes what is idle, and each other connection after its next answer
	Shutdown(context.Context) error
	Close() error
}

// newHost returns a host of clients at a door.
//
// It has no limit for a whole request or answer, which would end long streams: the
// gateway sets deadlines of its own for each body and each write.
func newHost(d *door, h http.Handler, limits config.Server, log *slog.Logger) host {
	if d.certificate != nil {
		return newStandard(d, h, limits, log)
	}
	return &wire.Server{
		Handler: h, MaxHeader: limits.MaxHeader, HeaderTimeout: limits.HeaderTimeout, IdleTimeout: limits.IdleTimeout, Log: log,
	}
}

// standard is net/http's host, with TLS and HTTP/2 where the door has a certificate.
type standard struct{ http.Server }

func newStandard(d *door, h http.Handler, limits config.Server, log *slog.Logger) *standard {
	s := &standard{http.Server{
		Handler:           h,
		MaxHeaderBytes:    limits.MaxHeader,
		ReadHeaderTimeout: limits.HeaderTimeout,
		IdleTimeout:       limits.IdleTimeout,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: limits.WriteTimeout},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	if d.certificate != nil {
		s.TLSConfig = d.certificate.config()
	}
	return s
}

func (s *standard) Serve(l net.Listener) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(l, "", "")
	}
	return s.Server.Serve(l)
}

func (s *standard) Drain() { s.SetKeepAlivesEnabled(false) }
