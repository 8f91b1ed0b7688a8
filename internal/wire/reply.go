package wire

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// visit is one request and its answer on a peer's connection. It is the handler's
// [http.ResponseWriter].
type visit struct {
	peer    *peer
	cancel  context.CancelFunc // ends the request's context
	old     bool               // the request is HTTP/1.0
	head    bool               // the answer has no body, but says how long it would be
	last    bool               // the connection is closed after it
	payload payload

	status  int
	length  int64 // of the answer's body, as the handler has said; below 0: it has not
	written int64
	chunked bool
	framed  bool    // the headers are complete
	out     *[]byte // that is not sent yet; nil: nothing
	start   int     // of the body in it
	err     error   // of writing

	mu   sync.Mutex // guards told
	told bool       // the client was told to send the body, or is not told any more
}

func (p *peer) visit(f frame, cancel context.CancelFunc) *visit {
	r := &p.asked
	v := &visit{peer: p, cancel: cancel, old: r.ProtoMinor == 0, head: r.Method == http.MethodHead, last: f.last, length: -1}
	p.watch.open(cancel)
	v.body(r, f)
	return v
}

// Header returns the headers of the answer.
func (v *visit) Header() http.Header { return v.peer.header }

// SetReadDeadline sets until when the request's body must have come.
func (v *visit) SetReadDeadline(t time.Time) error {
	v.peer.reads.until(t)
	return nil
}

// SetWriteDeadline sets until when the client must have taken what is written.
func (v *visit) SetWriteDeadline(t time.Time) error {
	v.peer.writes.until(t)
	return nil
}

// allow tells the client to send the body, unless the answer has begun.
func (v *visit) allow() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.told {
		v.told = true
		v.peer.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
}

func (v *visit) allowed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.told
}

// WriteHeader begins the answer with a status and the headers as they are now. Interim
// ones are not sent.
func (v *visit) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("ratelimit: the status is %d: it must be from 200 to 999", status))
	}
	if v.status != 0 || status < 200 {
		return
	}
	v.status = status
	v.last = v.last || v.payload.lost() || v.peer.server.ending.Load() || httpguts.HeaderValuesContainsToken(v.peer.header["Connection"], "close")
	if v.payload.expect {
		v.mu.Lock()
		v.told = true
		v.mu.Unlock()
	}
	v.begin()
}

// begin appends the status line and the headers to what is sent, all but those which
// frame the message, unless these are known already.
func (v *visit) begin() {
	h := v.peer.header
	v.length = declared(h["Content-Length"])
	b := append(v.buffer(), "HTTP/1.1 "...)
	if v.old {
		b[len("HTTP/1.")] = '0'
	}
	b = append(strconv.AppendInt(b, int64(v.status), 10), ' ')
	b = append(append(b, http.StatusText(v.status)...), crlf...)
	for name, values := range h {
		if ours(name) || !httpguts.ValidHeaderFieldName(name) {
			continue
		}
		for _, value := range values {
			b = appendField(b, name, oneLine(value))
		}
	}
	if _, has := h["Date"]; !has {
		b = appendField(b, "Date", date())
	}
	v.keep(b)
	v.start = len(b)
	if v.length >= 0 || !v.hasBody() {
		v.frame(false)
	}
}

// declared returns the length that a handler has said, or -1.
func declared(values []string) int64 {
	if len(values) == 0 {
		return -1
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return -1
	}
	return int64(n)
}

var ends = strings.NewReplacer("\r", " ", "\n", " ")

// oneLine returns a header's value without what would end it.
func oneLine(value string) string {
	if strings.IndexByte(value, '\n') < 0 && strings.IndexByte(value, '\r') < 0 {
		return value
	}
	return ends.Replace(value)
}

// hasBody reports whether an answer of the status has a body at all.
func (v *visit) hasBody() bool {
	return v.status != http.StatusNoContent && v.status != http.StatusNotModified
}

// frame puts what frames the message, and the end of the headers, before the body. whole is
// whether all of the body is there.
func (v *visit) frame(whole bool) {
	v.framed = true
	var room [128]byte
	b := room[:0]
	length := v.length
	if length < 0 && whole && (!v.head || v.written > 0) {
		length = v.written
	}
	switch {
	case !v.hasBody():
	case length >= 0:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), length, 10), crlf...)
	case v.head:
	case v.old:
		v.last = true
	default:
		v.chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if v.status == http.StatusUpgradeRequired { // RFC 9110 has it name the protocol that is spoken here
		b = append(b, "Upgrade: HTTP/1.1\r\nConnection: Upgrade\r\n"...)
	}
	if v.last {
		b = append(b, "Connection: close\r\n"...)
	}
	v.insert(append(b, crlf...))
	v.start += len(b) + len(crlf)
}

// Write writes some of the answer's body. It is sent when there is enough of it, with
// [visit.Flush], or when the handler returns.
func (v *visit) Write(p []byte) (int, error) {
	if v.status == 0 {
		v.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, v.err
	case !v.hasBody():
		return 0, http.ErrBodyNotAllowed
	}
	v.written += int64(len(p))
	switch {
	case v.length >= 0 && v.written > v.length:
		return 0, http.ErrContentLength
	case v.head:
		return len(p), nil
	}
	for rest := p; len(rest) > 0 && v.err == nil; {
		b := v.buffer()
		n := min(len(rest), max(oneWrite-len(b), 1))
		v.keep(append(b, rest[:n]...))
		rest = rest[n:]
		if len(b)+n >= oneWrite {
			v.send(false)
		}
	}
	if v.err != nil {
		return 0, v.err
	}
	return len(p), nil
}

// Flush sends what was written.
func (v *visit) Flush() { v.FlushError() }

// FlushError is Flush with its error.
func (v *visit) FlushError() error {
	if v.status == 0 {
		v.WriteHeader(http.StatusOK)
	}
	if v.err == nil && v.out != nil {
		v.send(false)
	}
	return v.err
}

// send sends what was written. end is whether that is all.
func (v *visit) send(end bool) {
	if !v.framed {
		v.frame(end)
	}
	if v.chunked {
		v.chunk(end)
	}
	b := v.buffer()
	if len(b) > 0 && v.err == nil {
		if v.err = v.peer.write(b); v.err != nil {
			v.cancel()
		}
	}
	v.discard()
}

// chunk makes what is there of the body a chunk.
func (v *visit) chunk(end bool) {
	b := v.buffer()
	if size := len(b) - v.start; size > 0 {
		var room [16]byte
		v.insert(append(strconv.AppendInt(room[:0], int64(size), 16), crlf...))
		v.keep(append(v.buffer(), crlf...))
	}
	if end {
		v.keep(append(v.buffer(), "0\r\n\r\n"...))
	}
}

// buffer returns what is not sent yet, to be appended to.
func (v *visit) buffer() []byte {
	if v.out == nil {
		v.out = buffers.Get().(*[]byte)
	}
	return *v.out
}

func (v *visit) keep(b []byte) { *v.out = b }

// insert puts bytes before the body.
func (v *visit) insert(text []byte) { v.keep(slices.Insert(v.buffer(), v.start, text...)) }

func (v *visit) discard() {
	if v.out != nil {
		giveBack(v.out)
		v.out, v.start = nil, 0
	}
}

// finish ends the answer. It reports whether the connection can be used again.
func (v *visit) finish() bool {
	if v.status == 0 {
		v.WriteHeader(http.StatusOK)
	}
	if v.err == nil {
		v.send(true)
	}
	short := v.length >= 0 && v.written != v.length && !v.head && v.hasBody()
	well := v.err == nil && !v.last && !short
	clear(v.peer.header)
	v.peer.writes.until(time.Time{})
	atEnd := v.payload.leave(well)
	if v.err == nil && !short && !atEnd {
		v.peer.linger()
	}
	return well && atEnd
}

// abandon ends an answer that is not to be complete.
func (v *visit) abandon() {
	v.discard()
	v.payload.leave(false)
}
