// Package wire speaks HTTP/1.1 with as little between its caller and the connection as
// possible: a [Transport] sends requests to providers, and a [Server] serves clients.
package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

// Transport is a [http.RoundTripper] whose caller itself writes to the connection and reads from
// it. There is no goroutine in between, except one that sends a body which is not [Pieces]. The zero
// Transport is ready to use.
//
// It sends the headers that it is given, and none of its own but Host and those that frame the
// message: no User-Agent, no Accept-Encoding. It sends nothing twice, except a request of which
// nothing could be written on a connection that had been used before. Every error that it returns,
// and that its bodies return, is an [*Error], except [io.EOF] and [http.ErrBodyReadAfterClose].
type Transport struct {
	DialTimeout   time.Duration // for a connection with its TLS handshake; 10 seconds if 0
	HeaderTimeout time.Duration // from the end of the request to the end of the response's headers, and for each part of a request's body to be written; 0: none
	IdleTimeout   time.Duration // for connections between requests; 60 seconds if 0
	MaxIdle       int           // idle connections kept for a host; 512 if 0
	MaxHeader     int64         // bytes of a response's headers; 256 KiB if 0
	Linger        time.Duration // how long an exchange that was begun may go on after its context has ended
	TLS           *tls.Config   // for https; nil: the default

	mu       sync.Mutex
	idle     map[origin][]*conn     // in the order of their last use
	janitor  *time.Timer            // closes connections that are idle for too long; nil: none is idle
	sessions tls.ClientSessionCache // TLS sessions, which are resumed
}

// origin is the server of a connection.
type origin struct{ scheme, host string }

// RoundTrip sends a request, and returns the response once its headers have come. The body can be
// read after that, until it is closed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := check(req); err != nil {
		return nil, unsent(req, err)
	}
	for {
		if err := req.Context().Err(); err != nil {
			return nil, unsent(req, err)
		}
		c, err := t.connect(req)
		if err != nil {
			return nil, unsent(req, err)
		}
		response, sent, err := c.exchange(req)
		switch {
		case err == nil:
			return response, nil
		case sent:
			return nil, &Error{Host: c.origin.host, Sent: true, Err: err}
		case !c.used:
			return nil, unsent(req, err)
		}
	}
}

// connect returns a connection that is not in use.
func (t *Transport) connect(req *http.Request) (*conn, error) {
	at := origin{req.URL.Scheme, req.URL.Host}
	if c := t.take(at); c != nil {
		return c, nil
	}
	c, err := t.dial(req.Context(), at, req.URL)
	if err != nil {
		return nil, contextOr(req.Context(), err)
	}
	return c, nil
}

// unsent returns the error of a request of which no byte was sent. It closes the body.
func unsent(req *http.Request, err error) error {
	if req.Body != nil {
		req.Body.Close()
	}
	host := ""
	if req.URL != nil {
		host = req.URL.Host
	}
	return &Error{Host: host, Err: err}
}

func (t *Transport) maxHeader() int64 { return cmp.Or(t.MaxHeader, 256<<10) }

// contextOr returns the error of the context, or else err: when a context ends, it breaks the
// connection, and is the cause of the error.
func contextOr(ctx context.Context, err error) error { return cmp.Or(ctx.Err(), err) }
