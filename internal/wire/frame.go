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
	length  int64 // below 0: unknown
	chunked bool
	last    bool // the connection is not used again
}

const errNotChunked malformed = "its Transfer-Encoding is not chunked"

// frameOf returns the framing that the headers of a message declare, by RFC 9112, 6.3; the length
// is -1 where they declare none. It refuses everything that two readers could read in different
// ways. It removes Transfer-Encoding, which is only about the framing.
func frameOf(h http.Header, http10 bool) (f frame, err error) {
	f = frame{length: -1, last: http10 || httpguts.HeaderValuesContainsToken(h["Connection"], "close")}
	codings, lengths := h["Transfer-Encoding"], h["Content-Length"]
	delete(h, "Transfer-Encoding")
	switch {
	case len(codings) == 0 && len(lengths) > 0:
		f.length, err = oneLength(lengths)
		if len(lengths) > 1 { // to assign what is there already would make a full map larger
			h["Content-Length"] = lengths[:1]
		}
	case len(codings) == 0:
	case http10:
		err = malformed("it has a Transfer-Encoding, which HTTP/1.0 does not know")
	case len(codings) > 1 || !isChunked(codings[0]):
		err = errNotChunked
	case len(lengths) > 0:
		err = malformed("it has both a Transfer-Encoding and a Content-Length")
	default:
		f.chunked = true
	}
	return f, err
}

// frameOfResponse returns the framing of the response to a request with the method.
func frameOfResponse(response *http.Response, method string) (frame, error) {
	f, err := frameOf(response.Header, response.ProtoMinor == 0)
	delete(response.Header, "Trailer") // trailers are dropped
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
