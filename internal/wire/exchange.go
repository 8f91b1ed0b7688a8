package wire

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"
)

// exchange is one request and its response on a connection. It is also the response's body.
type exchange struct {
	conn   *conn
	ctx    context.Context
	stop   func() bool // stops watching the context; nil: the context never ends
	upload *upload     // nil: the request was sent as a whole
	body
}

// finalAnswerWait is how long a server that reads no more of a request has to answer.
const finalAnswerWait = time.Second

// exchange sends a request, and reads the response up to its body. sent reports whether any byte of
// the request was sent. After an error the connection is closed.
func (c *conn) exchange(req *http.Request) (response *http.Response, sent bool, err error) {
	e := &exchange{conn: c, ctx: req.Context()}
	if e.ctx.Done() != nil {
		e.stop = context.AfterFunc(e.ctx, c.leave)
	}
	c.socket.await()
	sent, failed := e.send(req)
	if !sent {
		e.finish(false)
		return nil, false, contextOr(e.ctx, failed)
	}
	if failed != nil && req.Body != nil {
		req.Body.Close()
	}
	response, f, err := c.receive(req)
	c.socket.answered()
	if err != nil {
		err = e.cause(failed, err)
		e.finish(false)
		return nil, true, err
	}
	e.begin(response, f, failed == nil)
	return response, true, nil
}

// cause returns the first reason why an exchange has failed.
func (e *exchange) cause(sending, receiving error) error {
	switch {
	case e.ctx.Err() != nil:
		return e.ctx.Err()
	case sending != nil:
		return sending
	case e.upload.failed() != nil:
		return e.upload.failed()
	case errors.Is(receiving, os.ErrDeadlineExceeded):
		return errHeaderTimeout
	}
	return receiving
}

// finish returns the connection to the idle ones if it can be used again, or else closes it.
func (e *exchange) finish(reusable bool) {
	if e.stop != nil && !e.stop() {
		reusable = false
	}
	if reusable && e.upload.done() {
		e.conn.transport.put(e.conn)
		return
	}
	e.conn.hangUp()
}
