package llmhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// metered returns the response with a body that is metered while the caller reads it. With
// hideUsage, the caller does not see the chunk that reports usage.
func (x *exchange) metered(response *http.Response, hideUsage bool) *http.Response {
	body := &meteredBody{exchange: x, source: response.Body, meter: x.NewMeter(response.Header)}
	switch {
	case x.Extends():
		body.visible = x.guard(body, hideUsage)
	case hideUsage:
		body.visible = body.meter.Hide(response.Body)
	}
	if body.visible != nil {
		response.Header.Del("Content-Length")
		response.ContentLength = -1
	}
	response.Body = body
	body.watch()
	return response
}

// guard returns a reader of a body that reserves what it uses as it comes. It ends with an error in the provider's form
// where that is denied.
func (x *exchange) guard(body *meteredBody, hideUsage bool) io.Reader {
	pass := func(most int) bool { return x.Extend(x.httpRequest.Context(), most) }
	return body.meter.Guard(body.source, hideUsage, pass, func() []byte { return body.meter.Refusal(x.Request.Endpoint, *x.Cut()) })
}

// meteredBody settles its call once: when the body ends, when it is closed, or when the
// context is cancelled.
type meteredBody struct {
	exchange *exchange
	source   io.ReadCloser
	visible  io.Reader   // the source without the chunk that is hidden, or as far as it is reserved; nil: the source itself
	stop     func() bool // stops waiting for the end of the context; nil: it never ends

	mu      sync.Mutex // is locked during a read, which may take long
	meter   *dialect.Meter
	ended   bool // the body has come to its end
	settled bool
	closed  bool
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.read(p)
	if b.exchange.httpRequest.Context().Err() != nil { // the context may have ended during the read
		b.settleCancelled()
	}
	return n, err
}

func (b *meteredBody) read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.visible != nil {
		n, err = b.visible.Read(p) // the meter sees it on the way
	} else {
		n, err = b.source.Read(p)
		if !b.settled {
			b.meter.Write(p[:n])
		}
	}
	if err != nil {
		b.ended = errors.Is(err, io.EOF)
		b.settle()
	}
	return n, err
}

func (b *meteredBody) Close() error {
	if b.mu.TryLock() { // nobody reads
		b.readOn()
		b.mu.Unlock()
	}
	err := b.source.Close() // ends a read that another goroutine is in
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.settle()
	return err
}

// A body that is closed before its end is read on for a moment, because the usage comes last.
const (
	readOnTime  = 250 * time.Millisecond
	readOnBytes = 1 << 20
)

// readOn reads the rest of the body for a moment.
func (b *meteredBody) readOn() {
	if b.settled || b.closed || b.exchange.httpRequest.Context().Err() != nil {
		return
	}
	rest := io.TeeReader(b.source, b.meter)
	if b.exchange.Extends() {
		rest = b.visible
	}
	b.ended = call.ReadOn(rest, b.source, readOnTime, readOnBytes, b.meter.Ended)
}

// watch settles the call when its context ends while nobody reads the body.
func (b *meteredBody) watch() {
	ctx := b.exchange.httpRequest.Context()
	if ctx.Done() == nil {
		return
	}
	b.mu.Lock()
	b.stop = context.AfterFunc(ctx, b.settleCancelled)
	b.mu.Unlock()
	if ctx.Err() != nil { // settleCancelled may have found the mutex locked
		b.settleCancelled()
	}
}

// settleCancelled settles the call after its context has ended. During a read it leaves
// that to the reader, which looks at the context afterwards.
func (b *meteredBody) settleCancelled() {
	if b.mu.TryLock() {
		defer b.mu.Unlock()
		b.settle()
	}
}

func (b *meteredBody) settle() {
	if b.settled {
		return
	}
	b.settled = true
	if b.stop != nil {
		b.stop()
	}
	b.exchange.Settle(b.exchange.httpRequest.Context(), b.meter, b.ended)
	if b.visible == nil { // otherwise a later read goes through the meter
		call.FreeMeter(b.meter)
		b.meter = nil
		b.exchange.free()
	}
}
