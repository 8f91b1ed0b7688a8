package wire

import (
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// frame is how the end of a body is found: by a length, by its last chunk, or by the end of the
// connection.
type frame struct {
	length  int64 // below 0: none
	chunked bool
	last    bool // the connection is not used again
}

// frameOf returns the framing of a response, by RFC 9112, 6.3. It refuses everything that two
// readers could read in different ways. It removes headers that are only about the framing.
func frameOf(response *http.Response, method string) (frame, error) {
	h := response.Header
	f := frame{length: -1, last: response.ProtoMinor == 0 || httpguts.HeaderValuesContainsToken(h["Connection"], "close")}
	codings, lengths := h["Transfer-Encoding"], h["Content-Length"]
	var err error
	switch {
	case len(codings) > 0 && len(lengths) > 0:
		err = malformed("it has both a Transfer-Encoding and a Content-Length")
	case len(codings) > 0 && (len(codings) > 1 || !isChunked(codings[0]) || response.ProtoMinor == 0):
		err = malformed("its Transfer-Encoding is not chunked")
	case len(codings) > 0:
		f.chunked = true
	case len(lengths) > 0:
		f.length, err = oneLength(lengths)
		if len(lengths) > 1 {
			h["Content-Length"] = lengths[:1]
		}
	}
	delete(h, "Transfer-Encoding")
	delete(h, "Trailer") // trailers are dropped
	response.ContentLength = f.length
	switch {
	case method == http.MethodHead:
		f.length = 0
	case response.StatusCode == http.StatusNoContent || response.StatusCode == http.StatusNotModified:
		f.length, response.ContentLength = 0, 0
	}
	f.last = f.last || f.length < 0 && !f.chunked
	response.Close = f.last
	return f, err
}

// isChunked compares without regard to case. The comparison of lengths excludes letters that are
// not ASCII.
func isChunked(coding string) bool {
	return len(coding) == len("chunked") && strings.EqualFold(coding, "chunked")
}

// oneLength returns the length that all values agree on.
func oneLength(values []string) (int64, error) {
	for _, v := range values {
		if v != values[0] {
			return 0, malformed("it has several Content-Lengths")
		}
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return 0, malformed("its Content-Length is no number")
	}
	return int64(n), nil
}
