package llmhttp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/call"
)

// maxPreallocated is how many bytes are allocated for a body at once because the request's
// Content-Length says so.
const maxPreallocated = 16 << 20

// readAll reads the body of a request, and closes it.
func readAll(req *http.Request) ([]byte, error) {
	defer req.Body.Close()
	text := make([]byte, 0, min(max(req.ContentLength, 0), maxPreallocated)+1) // and room to see the end
	for {
		n, err := req.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			return text, nil
		} else if err != nil {
			return text, err
		}
		text = slices.Grow(text, 1)
	}
}

// outgoing is the body of a request, which records whether the provider may have got any
// of the request.
type outgoing struct {
	text   []byte
	traced bool        // the transport reports when it writes; other transports read no body before they are connected
	began  atomic.Bool // the provider may have got a part of the request
}

// of returns req with this body, for base to send. The request asks for no compressed
// response, which the meter could not read; [http.Transport] asks for one itself, and
// unpacks it.
func (o *outgoing) of(req *http.Request, base http.RoundTripper) *http.Request {
	_, o.traced = base.(*http.Transport)
	out := req.WithContext(o.context(req.Context()))
	out.Body, out.GetBody = o.reader(), func() (io.ReadCloser, error) { return o.reader(), nil }
	out.ContentLength, out.TransferEncoding = int64(len(o.text)), nil
	if req.Header["Accept-Encoding"] != nil && !call.Signed(req.Header, req.URL.RawQuery) {
		out.Header = req.Header.Clone()
		out.Header.Del("Accept-Encoding")
	}
	return out
}

func (o *outgoing) context(ctx context.Context) context.Context {
	if !o.traced {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { o.began.Store(true) }})
}

// reader returns a reader of the body. [http.Transport] sends a body in one write with the
// headers only if it knows the reader's type, so it gets a plain one.
func (o *outgoing) reader() io.ReadCloser {
	reader := bytes.NewReader(o.text)
	if o.traced {
		return io.NopCloser(reader)
	}
	return &watchedBody{reader, o}
}

// watchedBody records that it is read.
type watchedBody struct {
	*bytes.Reader
	outgoing *outgoing
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.outgoing.began.Store(true)
	return b.Reader.Read(p)
}

func (b *watchedBody) WriteTo(w io.Writer) (int64, error) {
	b.outgoing.began.Store(true)
	return b.Reader.WriteTo(w)
}

func (b *watchedBody) Close() error { return nil }
