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
)

// relay forwards the answer to a call, meters it, and settles the call. With hideUsage, the
// client does not get the chunk that reports usage.
func (x *exchange) relay(response *http.Response, hideUsage bool) {
	x.meter = x.call.NewMeter(response.Header)
	var body io.Reader
	extends := x.call.Extends()
	switch {
	case extends:
		body = x.guard(response.Body, hideUsage)
	case hideUsage:
		body = x.meter.Hide(response.Body)
	default:
		body = io.TeeReader(response.Body, x.meter)
	}
	if extends || hideUsage {
		response.Header.Del("Content-Length")
		for _, field := range call.SignatureFields {
			delete(response.Header, field) // the signature of the body with the chunk is not valid
		}
		response.ContentLength = -1
	}
	defer func() {
		defer x.freeMeter()
		if x.call.Request.Background && x.leaveOpen(x.meter) {
			return
		}
		used := x.call.Settle(context.WithoutCancel(x.ctx), x.meter, x.complete)
		x.Input, x.Output, x.Cached, x.Exact = used.Input, used.Output, used.Cached, used.Exact
		if !used.Exact {
			x.Output = int(x.call.Charged.Output)
		}
		if !used.Exact || used.Input < 0 {
			x.Input = int(x.call.Charged.Input)
		}
		if fault := x.meter.Fault(); fault != "" && x.Outcome == Passed {
			x.Outcome, x.Error = Failed, "the answer ends in an error: "+strings.ToValidUTF8(fault, "")
		}
		x.recordCut()
	}()
	x.forward(response, body)
}

// freeMeter gives back the meter of the answer. Nothing reads the answer any more.
func (x *exchange) freeMeter() {
	call.FreeMeter(x.meter)
	x.meter = nil
}

// guard returns a reader of an answer that reserves what it uses as it comes. It ends with an error in the provider's
// form where that is denied.
func (x *exchange) guard(body io.ReadCloser, hideUsage bool) io.Reader {
	pass := func(most int) bool { return x.call.Extend(x.ctx, most) }
	return x.meter.Guard(body, hideUsage, pass, func() []byte {
		refused := *x.call.Cut()
		refused.ID = x.ID
		return x.meter.Refusal(x.endpoint, refused)
	})
}

// recordCut records that the answer was cut off by a limit.
func (x *exchange) recordCut() {
	refused := x.call.Cut()
	if refused == nil {
		return
	}
	x.Outcome, x.Error = Cut, refused.Message // even if the client has left when it read the error
	if name, owner := x.call.CutBy(); name != "" {
		x.Limit = name
		x.Scope, x.Owner = x.ScopeOf(owner)
	}
}

// forward sends a response to the client: its headers at once, and every byte as it comes.
func (x *exchange) forward(response *http.Response, body io.Reader) {
	body = x.hider.redactError(response, body)
	x.Status = response.StatusCode
	if x.begun {
		x.Outcome = outcomeOf(response.StatusCode, x.throttled)
		x.forwardInStream(response, body)
		return
	}
	x.copyHeaders(response.Header)
	x.w.WriteHeader(response.StatusCode)
	if response.ContentLength != 0 && nothingBuffered(response.Body) {
		x.extendWriteDeadline()
		x.control.Flush()
	}
	x.Outcome = outcomeOf(response.StatusCode, x.throttled)
	if !x.copy(body, response) {
		panic(http.ErrAbortHandler) // closes the connection, so that the client sees that the answer is not complete
	}
}

// nothingBuffered reports whether a read of the body may have to wait.
func nothingBuffered(body io.Reader) bool {
	b, ok := body.(interface{ Buffered() int })
	return !ok || b.Buffered() == 0
}

var buffers = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// copy copies what body reads of a response to the client. It reports whether the client has got all of
// it.
func (x *exchange) copy(body io.Reader, response *http.Response) (whole bool) {
	buffer := buffers.Get().(*[8 << 10]byte)
	defer buffers.Put(buffer)
	for left := response.ContentLength; ; {
		n, err := body.Read(buffer[:])
		if n > 0 {
			x.extendWriteDeadline()
			left -= int64(n)
			if !x.write(buffer[:n], left != 0) {
				x.left()
				x.readOn(body, response)
				return false
			}
			x.ended = x.meter != nil && x.meter.Ended()
		}
		if err != nil {
			x.complete = errors.Is(err, io.EOF)
			whole = x.complete
			if !whole {
				x.bodyBroke(err)
			}
			if left != 0 { // the end may come long after the last byte
				x.extendWriteDeadline()
			}
			return whole
		}
	}
}

// maxReadOn is how many bytes of an answer are read after the client has left.
const maxReadOn = 8 << 20

// readOn reads the rest of the answer to a call that the client does not read any more, for a moment.
func (x *exchange) readOn(body io.Reader, response *http.Response) {
	if x.meter != nil && x.cfg.Server.ReadOn > 0 {
		x.complete = call.ReadOn(body, response.Body, x.cfg.Server.ReadOn, maxReadOn, x.meter.Ended)
	}
}

// left records that the client has left, unless it has got the whole stream: many clients close the
// connection at the last event.
func (x *exchange) left() {
	if !x.ended {
		x.Outcome = Left
	}
}

// extendWriteDeadline gives the client time to read the next write. In HTTP/2 a deadline ends
// a stream even while nothing is written, so write sets one for each write.
func (x *exchange) extendWriteDeadline() {
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

// write writes a part of a body. It returns false if the client does not read it.
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

// bodyBroke records that a body has broken off, because the client has left or the provider
// has failed.
func (x *exchange) bodyBroke(err error) {
	if x.ctx.Err() != nil {
		x.left()
		return
	}
	x.Outcome, x.Error = Failed, x.hider.redact(err.Error())
}
