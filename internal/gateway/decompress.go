package gateway

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// A codec decompresses bodies. window is how many bytes of memory it takes at most beside its output.
type codec struct {
	window int64
	open   func(*bytes.Reader) (io.Reader, error)
}

// maxZstdWindow is the largest window that RFC 9659 allows for bodies.
const maxZstdWindow = 8 << 20

var codecs = map[string]codec{
	"gzip":   {64 << 10, func(r *bytes.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	"x-gzip": {64 << 10, func(r *bytes.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	"deflate": {64 << 10, func(r *bytes.Reader) (io.Reader, error) {
		if z, err := zlib.NewReader(r); err == nil {
			return z, nil
		}
		r.Seek(0, io.SeekStart)
		return flate.NewReader(r), nil // some clients leave out the wrapping that RFC 9110 asks for
	}},
	"br": {16 << 20, func(r *bytes.Reader) (io.Reader, error) { return brotli.NewReader(r), nil }},
	"zstd": {2 * maxZstdWindow, func(r *bytes.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	}},
}

// findCoding notes in which coding the body comes. It refuses a coding that the gateway does not know, and
// one within another.
func (x *exchange) findCoding() *refusal {
	for _, list := range x.r.Header["Content-Encoding"] {
		for coding := range strings.SplitSeq(list, ",") {
			coding = strings.ToLower(strings.TrimSpace(coding))
			if coding == "" || coding == "identity" {
				continue
			}
			if _, known := codecs[coding]; !known || x.coding != "" || x.signed {
				return refusalf(http.StatusUnsupportedMediaType, "the body has Content-Encoding %.40q: it must have none, or one of gzip, deflate, br and zstd, and none if the request is signed, because the gateway has to read the body", list)
			}
			x.coding = coding
		}
	}
	return nil
}

// decompress replaces a compressed body by its content, which may have at most limit bytes. Both count
// towards max_bodies meanwhile, and so does the memory of the codec. The provider gets the body as it is
// read here.
func (x *exchange) decompress(limit int64) *refusal {
	if x.coding == "" {
		return nil
	}
	codec := codecs[x.coding]
	packed, held := x.body, x.bodyBytes+codec.window
	if x.reserveBytes(codec.window) != nil {
		return noMemory()
	}
	text, err := x.unpack(codec, packed, limit)
	switch {
	case errors.Is(err, errNoMemory):
		return noMemory()
	case err != nil:
		return refusalf(http.StatusBadRequest, "the body is not valid %s, although its Content-Encoding says so", x.coding)
	case int64(len(text)) > limit:
		return tooLong(limit)
	}
	x.g.bodyBytes.Add(-held)
	x.bodyBytes -= held
	x.body, x.coding = text, ""
	delete(x.r.Header, "Content-Encoding")
	return nil
}

// unpack returns what a codec reads, and no more than a byte beyond the limit. Its buffer grows by doubling.
func (x *exchange) unpack(codec codec, packed []byte, limit int64) ([]byte, error) {
	from, err := codec.open(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	if z, ok := from.(*zstd.Decoder); ok {
		defer z.Close()
	}
	text, err := x.grow(nil, min(limit+1, max(int64(len(packed)), maxPreallocated)))
	for err == nil && int64(len(text)) <= limit {
		if len(text) == cap(text) {
			if text, err = x.grow(text, min(2*int64(cap(text)), limit+1)); err != nil {
				return nil, err
			}
		}
		var n int
		n, err = from.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
	}
	if err == io.EOF {
		err = nil
	}
	return text, err
}
