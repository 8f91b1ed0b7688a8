package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/llm"
)

// relay hands the answer to a call on, metering it, and settles the call. veiled is
// whether the client is not to see the chunk that tells usage.
func (x *exchange) relay(response *http.Response, veiled bool) {
	meter := llm.NewMeter(x.call.Request.API, response.Header)
	meter.Expect(x.call.Request.Answers)
	var body io.Reader
	if veiled {
		body = meter.Hide(response.Body)
		response.Header.Del("Content-Length")
		for _, field := range call.SignatureFields {
			delete(response.Header, field) // of a body that has the chunk
		}
		response.ContentLength = -1
	} else {
		body = &metered{response.Body, meter}
	}
	defer func() {
		used := x.call.Settle(context.WithoutCancel(x.ctx), meter)
		x.Input, x.Output, x.Cached, x.Exact = max(used.Input, 0), used.Output, used.Cached, used.Exact
		if fault := meter.Fault(); fault != "" && x.Outcome == Passed {
			x.Outcome, x.Error = Failed, "the answer tells an error: "+strings.ToValidUTF8(fault, "")
		}
	}()
	x.hand(response, body)
}

// metered is a body that a meter reads with whoever reads it.
type metered struct {
	body  io.Reader
	meter *llm.Meter
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.body.Read(p)
	m.meter.Write(p[:n])
	return n, err
}

// hand hands a response on: its headers as soon as they are there, and every byte as
// it comes.
func (x *exchange) hand(response *http.Response, body io.Reader) {
	body = x.hides.error(response, body)
	x.answer(response.Header)
	x.Status = response.StatusCode
	x.extend()
	x.w.WriteHeader(response.StatusCode)
	if response.ContentLength != 0 && waits(response.Body) {
		x.control.Flush()
	}
	x.Outcome = answered(response.StatusCode, x.throttled)
	if !x.copy(body, response.ContentLength) {
		panic(http.ErrAbortHandler) // so that nobody takes it for whole
	}
}

// waits reports whether nothing of a body is there yet.
func waits(body io.Reader) bool {
	b, ok := body.(interface{ Buffered() int })
	return !ok || b.Buffered() == 0
}

// buffers are for copying.
var buffers = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// copy copies a body of so many bytes, or of any number, to the client. It reports
// whether the client has got all of it.
func (x *exchange) copy(body io.Reader, length int64) (whole bool) {
	buffer := buffers.Get().(*[8 << 10]byte)
	defer buffers.Put(buffer)
	for left := length; ; {
		n, err := body.Read(buffer[:])
		if n > 0 {
			x.extend()
			left -= int64(n)
			if !x.write(buffer[:n], left != 0) {
				x.Outcome = Left
				return false
			}
		}
		if err != nil {
			whole = errors.Is(err, io.EOF)
			if !whole {
				x.broke(err)
			}
			x.extend() // for the end, which may come long after the last byte
			return whole
		}
	}
}

// extend gives the client time to take what is written next. Over HTTP/2 a deadline ends
// a stream even while nothing is written: there every write has its own.
func (x *exchange) extend() {
	if x.r.ProtoMajor > 1 {
		return
	}
	now := time.Now()
	if x.deadline.Sub(now) > x.cfg.Server.WriteTimeout/2 {
		return
	}
	x.deadline = now.Add(x.cfg.Server.WriteTimeout)
	x.control.SetWriteDeadline(x.deadline)
}

// write writes some of a body. It reports whether the client still takes it.
func (x *exchange) write(p []byte, more bool) bool {
	if x.r.ProtoMajor > 1 {
		x.control.SetWriteDeadline(time.Now().Add(x.cfg.Server.WriteTimeout))
		defer x.control.SetWriteDeadline(time.Time{})
	}
	if _, err := x.w.Write(p); err != nil {
		return false
	}
	return !more || x.control.Flush() == nil
}

// broke notes that a body has broken off: because the client has left, or else by the
// provider.
func (x *exchange) broke(err error) {
	if x.ctx.Err() != nil {
		x.Outcome = Left
		return
	}
	x.Outcome, x.Error = Failed, x.hides.text(err.Error())
}
