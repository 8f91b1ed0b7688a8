package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// httpServer is the methods of [http.Server], and Drain.
type httpServer interface {
	Serve(net.Listener) error
	Drain() // closes idle connections, and each other connection after its next answer
	Shutdown(context.Context) error
	Close() error
}

// newClientServer returns the server for clients. It has no timeout for a whole request or
// answer, which would end long streams: the gateway sets deadlines for each body and each
// write.
func newClientServer(e *endpoint, h http.Handler, limits config.Server, log *slog.Logger) httpServer {
	if e.certificate != nil {
		return newNetHTTP(e, h, limits, log)
	}
	return &wire.Server{
		Handler: h, MaxHeader: limits.MaxHeader, HeaderTimeout: limits.HeaderTimeout, IdleTimeout: limits.IdleTimeout, Log: log,
	}
}

// netHTTP is the server of net/http, with TLS and HTTP/2 if the endpoint has a certificate.
type netHTTP struct{ http.Server }

func newNetHTTP(e *endpoint, h http.Handler, limits config.Server, log *slog.Logger) *netHTTP {
	s := &netHTTP{http.Server{
		Handler:           h,
		MaxHeaderBytes:    limits.MaxHeader,
		ReadHeaderTimeout: limits.HeaderTimeout,
		IdleTimeout:       limits.IdleTimeout,
		ConnState:         follow,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: limits.WriteTimeout},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	if e.certificate != nil {
		s.TLSConfig = e.certificate.config()
	}
	return s
}

func (s *netHTTP) Serve(l net.Listener) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(l, "", "")
	}
	return s.Server.Serve(l)
}

func (s *netHTTP) Drain() { s.SetKeepAlivesEnabled(false) }
