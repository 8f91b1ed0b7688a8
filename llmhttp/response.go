package llmhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"dappco.re/go/core/go-ratelimit/llm"
)

// metered returns the response with a body that is metered while it is read. veiled
// is whether the caller is not to see the chunk that tells usage.
func (c *passage) metered(response *http.Response, veiled bool) *http.Response {
	body := &meteredBody{passage: c, source: response.Body, meter: llm.NewMeter(c.Request.API, response.Header)}
	body.meter.Expect(c.Request.Answers)
	if veiled {
		body.veil = body.meter.Hide(response.Body)
		response.Header.Del("Content-Length")
		response.ContentLength = -1
	}
	response.Body = body
	body.watch()
	return response
}

// meteredBody settles its call when it ends, is closed, or its context is cancelled,
// whichever comes first.
type meteredBody struct {
	passage *passage
	source  io.ReadCloser
	veil    io.Reader   // of the source, without what is hidden; nil: nothing is
	stop    func() bool // waiting for the context to end; nil: it never does

	mu      sync.Mutex // held while it is read, which may take long
	meter   *llm.Meter
	settled bool
	closed  bool
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.read(p)
	if b.passage.request.Context().Err() != nil { // it may have ended while it was read
		b.cancelled()
	}
	return n, err
}

func (b *meteredBody) read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.metered(p)
	if err != nil {
		b.settle()
	}
	return n, err
}

// metered reads the source through the meter.
func (b *meteredBody) metered(p []byte) (int, error) {
	if b.veil != nil {
		return b.veil.Read(p)
	}
	n, err := b.source.Read(p)
	b.meter.Write(p[:n])
	return n, err
}

func (b *meteredBody) Close() error {
	err := b.source.Close() // which ends a read that is under way
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.settle()
	return err
}

// watch lets the end of the context settle the call, if nobody reads the body.
func (b *meteredBody) watch() {
	ctx := b.passage.request.Context()
	if ctx.Done() == nil {
		return
	}
	b.mu.Lock()
	b.stop = context.AfterFunc(ctx, b.cancelled)
	b.mu.Unlock()
	if ctx.Err() != nil { // b.cancelled may have found the lock taken
		b.cancelled()
	}
}

// cancelled settles the call of a context that has ended. Where the body is being
// read, who reads it does.
func (b *meteredBody) cancelled() {
	if b.mu.TryLock() {
		defer b.mu.Unlock()
		b.settle()
	}
}

// settle settles the call, once.
func (b *meteredBody) settle() {
	if b.settled {
		return
	}
	b.settled = true
	if b.stop != nil {
		b.stop()
	}
	b.passage.Settle(b.passage.request.Context(), b.meter)
}

// resumed is a body of which some was read already.
func resumed(read []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), body), body}
}
