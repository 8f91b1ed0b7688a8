package llmhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/call"
)

// readAll reads the body of a request, and closes it.
func readAll(req *http.Request) ([]byte, error) {
	defer req.Body.Close()
	var text bytes.Buffer
	text.Grow(int(min(max(req.ContentLength, 0), mostTrusted)) + bytes.MinRead)
	_, err := text.ReadFrom(req.Body)
	return text.Bytes(), err
}

// mostTrusted is how many bytes are made room for because a request says that it
// has them.
const mostTrusted = 16 << 20

// sending is a body that is sent, and knows whether its request has begun to be.
type sending struct {
	text   []byte
	traced bool // the transport tells when; else no transport reads a body before it has a connection
	began  atomic.Bool
}

// request returns req with this body, for base to send. It asks for no encoding of
// the response, which could not be read then; [http.Transport] does, and undoes it.
func (s *sending) request(req *http.Request, base http.RoundTripper) *http.Request {
	_, s.traced = base.(*http.Transport)
	out := req.WithContext(s.context(req.Context()))
	out.Body, out.GetBody = s.body(), func() (io.ReadCloser, error) { return s.body(), nil }
	out.ContentLength, out.TransferEncoding = int64(len(s.text)), nil
	if req.Header["Accept-Encoding"] != nil && !call.Signed(req.Header, req.URL.RawQuery) {
		out.Header = req.Header.Clone()
		out.Header.Del("Accept-Encoding")
	}
	return out
}

func (s *sending) context(ctx context.Context) context.Context {
	if !s.traced {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.began.Store(true) }})
}

// body returns a reader of the body. [http.Transport] sends one that it knows in a
// single write with the headers, so it is given no other.
func (s *sending) body() io.ReadCloser {
	reader := bytes.NewReader(s.text)
	if s.traced {
		return io.NopCloser(reader)
	}
	return &noticed{reader, s}
}

// noticed is a body that notices that it is read.
type noticed struct {
	*bytes.Reader
	sending *sending
}

func (b *noticed) Read(p []byte) (int, error) {
	b.sending.began.Store(true)
	return b.Reader.Read(p)
}

func (b *noticed) WriteTo(w io.Writer) (int64, error) {
	b.sending.began.Store(true)
	return b.Reader.WriteTo(w)
}

func (b *noticed) Close() error { return nil }
