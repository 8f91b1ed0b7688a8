package llmhttp

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
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

// sending is a body that is sent, and knows whether any of it was: no transport reads
// it before it has a connection.
type sending struct {
	text  []byte
	began atomic.Bool
}

// request returns req with this body. What encodes the response so that it could not
// be read is not asked for.
func (s *sending) request(req *http.Request) *http.Request {
	out := req.WithContext(req.Context())
	out.Body, out.GetBody = s.body(), func() (io.ReadCloser, error) { return s.body(), nil }
	out.ContentLength, out.TransferEncoding = int64(len(s.text)), nil
	if encodings := req.Header.Get("Accept-Encoding"); encodings != "" && !strings.EqualFold(encodings, "gzip") {
		out.Header = req.Header.Clone()
		out.Header.Del("Accept-Encoding")
	}
	return out
}

func (s *sending) body() io.ReadCloser { return &sentBody{Reader: bytes.NewReader(s.text), of: s} }

type sentBody struct {
	*bytes.Reader
	of *sending
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.of.began.Store(true)
	return b.Reader.Read(p)
}

func (b *sentBody) WriteTo(w io.Writer) (int64, error) {
	b.of.began.Store(true)
	return b.Reader.WriteTo(w)
}

func (b *sentBody) Close() error { return nil }
