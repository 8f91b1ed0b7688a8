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

// Transport is a [http.RoundTripper] whose caller itself writes to the connection and
// reads from it: no goroutine stands between, but for one that sends a body which is
// not [Bytes]. The zero Transport is a good one.
//
// It sends the headers that it is given, and none of its own but Host and those that
// frame the message: no User-Agent, no Accept-Encoding. Nothing is sent twice, but a
// request of which nothing could be written on a connection that was used before.
// Every error that it returns, and that its bodies return, is an [*Error], but for
// [io.EOF] and [http.ErrBodyReadAfterClose].
type Transport struct {
	DialTimeout   time.Duration // of a connection with its handshake; 10 seconds if it is 0
	HeaderTimeout time.Duration // from the request's end to that of the response's headers, and for some of its body to be taken; 0: none
	IdleTimeout   time.Duration // of connections between requests; 60 seconds if it is 0
	MaxIdle       int           // connections kept to a host; 512 if it is 0
	MaxHeader     int64         // bytes of a response's headers; 256 KiB if it is 0
	TLS           *tls.Config   // of https; nil: the usual

	mu       sync.Mutex
	idle     map[origin][]*conn     // the one that was used last is the last
	janitor  *time.Timer            // closes what is idle for too long; nil: nothing is
	sessions tls.ClientSessionCache // of handshakes, to be resumed
}

// origin is where connections lead.
type origin struct{ scheme, host string }

// RoundTrip sends a request, and returns the response once its headers are there. Its
// body may still be read after that, until it is closed.
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

// connect returns a connection that nobody uses.
func (t *Transport) connect(req *http.Request) (*conn, error) {
	at := origin{req.URL.Scheme, req.URL.Host}
	if c := t.take(at); c != nil {
		return c, nil
	}
	c, err := t.dial(req.Context(), at, req.URL)
	if err != nil {
		return nil, ended(req.Context(), err)
	}
	return c, nil
}

// unsent is the error of a request of which nothing has left. It closes the body.
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

// ended returns the context's error if it has one, and err if not: what breaks when a
// context ends breaks because of that.
func ended(ctx context.Context, err error) error { return cmp.Or(ctx.Err(), err) }
