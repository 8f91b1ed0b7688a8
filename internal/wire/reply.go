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

// reply is one request on a peer's connection and the answer to it. It is the handler's
// [http.ResponseWriter].
type reply struct {
	peer     *peer
	cancel   context.CancelFunc // ends the request's context
	http10   bool               // the request is HTTP/1.0
	headOnly bool               // the answer to a HEAD has no body, but may have its length
	last     bool               // the connection is closed after the answer
	payload  payload

	status  int
	length  int64 // the length of the body according to the handler; below 0: unknown
	written int64
	chunked bool
	framed  bool    // the headers are complete
	out     *[]byte // bytes that are not sent yet; nil: none
	start   int     // where the body starts in out
	err     error   // the first error of a write

	mu        sync.Mutex // guards continued
	continued bool       // 100 Continue was sent, or is not to be sent any more
}

func (p *peer) newReply(f frame, cancel context.CancelFunc) *reply {
	r := &p.request
	w := &reply{peer: p, cancel: cancel, http10: r.ProtoMinor == 0, headOnly: r.Method == http.MethodHead, last: f.last, length: -1}
	p.watch.beginRequest(cancel)
	w.body(r, f)
	return w
}

// Header returns the headers of the answer.
func (w *reply) Header() http.Header { return w.peer.header }

// SetReadDeadline sets the time by which the request's body must have come.
func (w *reply) SetReadDeadline(t time.Time) error {
	w.peer.reads.until(t)
	return nil
}

// SetWriteDeadline sets the time by which the client must have read what is written.
func (w *reply) SetWriteDeadline(t time.Time) error {
	w.peer.writes.until(t)
	return nil
}

// sendContinue asks the client to send the body, unless the answer has begun.
func (w *reply) sendContinue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.continued {
		w.continued = true
		w.peer.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
}

func (w *reply) hasContinued() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.continued
}

// WriteHeader begins the answer with a status and the present headers. Of interim statuses it sends 103 Early
// Hints, at once and without headers, and ignores the others.
func (w *reply) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("ratelimit: the status is %d: it must be from 200 to 999", status))
	}
	if w.status != 0 || status < 200 {
		if w.status == 0 && status == http.StatusEarlyHints && !w.http10 {
			w.peer.write([]byte("HTTP/1.1 103 Early Hints\r\n\r\n"))
		}
		return
	}
	w.status = status
	w.last = w.last || w.payload.wontEnd() || w.peer.server.draining.Load() || httpguts.HeaderValuesContainsToken(w.peer.header["Connection"], "close")
	if w.payload.expect {
		w.mu.Lock()
		w.continued = true
		w.mu.Unlock()
	}
	w.begin()
}

// begin appends the status line and the headers to the answer. The framing follows at once if it is
// known.
func (w *reply) begin() {
	h := w.peer.header
	w.length = declared(h["Content-Length"])
	b := append(w.buffer(), "HTTP/1.1 "...)
	if w.http10 {
		b[len("HTTP/1.")] = '0'
	}
	b = append(strconv.AppendInt(b, int64(w.status), 10), ' ')
	b = append(append(b, http.StatusText(w.status)...), crlf...)
	for name, values := range h {
		if isFraming(name) || !isName(name) {
			continue
		}
		for _, value := range values {
			b = appendField(b, name, oneLine(value))
		}
	}
	if _, has := h["Date"]; !has {
		b = append(b, "Date: "...)
		b = append(time.Now().UTC().AppendFormat(b, http.TimeFormat), crlf...)
	}
	w.setBuffer(b)
	w.start = len(b)
	if w.length >= 0 || !w.hasBody() {
		w.addFraming(false)
	}
}

// declared returns the length that a handler has set, or -1.
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

// oneLine replaces the characters that would end a header's value.
func oneLine(value string) string {
	if strings.IndexByte(value, '\n') < 0 && strings.IndexByte(value, '\r') < 0 {
		return value
	}
	return ends.Replace(value)
}

// hasBody reports whether answers with the status have a body.
func (w *reply) hasBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// addFraming inserts the framing headers and the end of the headers before the body. whole reports
// whether the body is complete.
func (w *reply) addFraming(whole bool) {
	w.framed = true
	var room [128]byte
	b := room[:0]
	length := w.length
	if length < 0 && whole && (!w.headOnly || w.written > 0) {
		length = w.written
	}
	switch {
	case !w.hasBody():
	case length >= 0:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), length, 10), crlf...)
	case w.headOnly:
	case w.http10:
		w.last = true
	default:
		w.chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.status == http.StatusUpgradeRequired { // RFC 9110: it names the protocol that the server speaks
		b = append(b, "Upgrade: HTTP/1.1\r\nConnection: Upgrade\r\n"...)
	}
	if w.last {
		b = append(b, "Connection: close\r\n"...)
	}
	w.insert(append(b, crlf...))
	w.start += len(b) + len(crlf)
}

// Write writes a part of the answer's body. It is sent when there is enough of it, by
// [reply.Flush], or when the handler returns.
func (w *reply) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, w.err
	case !w.hasBody():
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	switch {
	case w.length >= 0 && w.written > w.length:
		return 0, http.ErrContentLength
	case w.headOnly:
		return len(p), nil
	}
	for rest := p; len(rest) > 0 && w.err == nil; {
		b := w.buffer()
		n := min(len(rest), max(maxCopied-len(b), 1))
		w.setBuffer(append(b, rest[:n]...))
		rest = rest[n:]
		if len(b)+n >= maxCopied {
			w.send(false)
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Flush sends what was written.
func (w *reply) Flush() { w.FlushError() }

// FlushError is Flush with its error.
func (w *reply) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.err == nil && w.out != nil {
		w.send(false)
	}
	return w.err
}

// send sends what was written. end reports whether that completes the answer.
func (w *reply) send(end bool) {
	if !w.framed {
		w.addFraming(end)
	}
	if w.chunked {
		w.chunk(end)
	}
	b := w.buffer()
	if len(b) > 0 && w.err == nil {
		w.err = w.peer.write(b)
		if w.err != nil {
			w.cancel()
		}
	}
	w.discard()
}

// chunk turns the unsent part of the body into a chunk.
func (w *reply) chunk(end bool) {
	b := w.buffer()
	if size := len(b) - w.start; size > 0 {
		var room [16]byte
		w.insert(append(strconv.AppendInt(room[:0], int64(size), 16), crlf...))
		w.setBuffer(append(w.buffer(), crlf...))
	}
	if end {
		w.setBuffer(append(w.buffer(), "0\r\n\r\n"...))
	}
}

// buffer returns the bytes that are not sent yet.
func (w *reply) buffer() []byte {
	if w.out == nil {
		w.out = buffers.Get().(*[]byte)
	}
	return *w.out
}

func (w *reply) setBuffer(b []byte) { *w.out = b }

// insert inserts bytes before the body.
func (w *reply) insert(text []byte) { w.setBuffer(slices.Insert(w.buffer(), w.start, text...)) }

func (w *reply) discard() {
	if w.out != nil {
		putBuffer(w.out)
		w.out, w.start = nil, 0
	}
}

// finish ends the answer, and reports whether the connection can be used again.
func (w *reply) finish() bool {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.err == nil {
		w.send(true)
	}
	short := w.length >= 0 && w.written != w.length && !w.headOnly && w.hasBody()
	reusable := w.err == nil && !w.last && !short
	clear(w.peer.header)
	w.peer.writes.until(time.Time{})
	atEnd := w.payload.finish(reusable)
	if w.err == nil && !short && !atEnd {
		w.peer.linger()
	}
	return reusable && atEnd
}

// abandon ends an answer that stays incomplete.
func (w *reply) abandon() {
	w.discard()
	w.payload.finish(false)
}
