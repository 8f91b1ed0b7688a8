package wire

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// refusal says why a request is refused, and has the status of the answer.
type refusal struct {
	status int
	reason string
}

func (r refusal) Error() string { return r.reason }

// refusalOf returns the refusal for an error in reading a request.
func refusalOf(err error) refusal {
	var refused refusal
	var text malformed
	switch {
	case errors.As(err, &refused):
		return refused
	case err == errNotChunked:
		return refusal{http.StatusNotImplemented, string(errNotChunked)}
	case errors.As(err, &text):
		return refusal{http.StatusBadRequest, string(text)}
	case err == errLongHeader:
		return refusal{http.StatusRequestHeaderFieldsTooLarge, "its headers are too long"}
	}
	return refusal{http.StatusBadRequest, "it ends too soon"}
}

// readRequest reads a request up to its body. It refuses what net/http refuses, and everything that
// a server behind this one could read in another way.
func (p *peer) readRequest() (frame, error) {
	p.skipBlank()
	left := p.server.maxHeader()
	head, err := readHead(p.reader, &left)
	if err != nil {
		return frame{}, err
	}
	r := &p.request
	*r, err = parseRequest(head)
	if err != nil {
		return frame{}, err
	}
	f, err := frameOfRequest(r)
	if err != nil {
		return frame{}, err
	}
	if err := checkRequest(r); err != nil {
		return frame{}, err
	}
	delete(r.Header, "Host")
	r.RemoteAddr = p.remote
	p.posted = r.Method == http.MethodPost
	return f, nil
}

// skipBlank skips the line break that some clients send after a POST.
func (p *peer) skipBlank() {
	if !p.posted {
		return
	}
	next, _ := p.reader.Peek(4) // shorter than any request
	n := 0
	for n < len(next) && (next[n] == '\r' || next[n] == '\n') {
		n++
	}
	p.reader.Discard(n)
}

// parseRequest parses what readHead has written. The strings of the request share its memory.
func parseRequest(head string) (r http.Request, err error) {
	line, fields, _ := strings.Cut(head, "\n")
	method, rest, _ := strings.Cut(line, " ")
	target, proto, ok := strings.Cut(rest, " ")
	if !ok || !isName(method) {
		return r, malformed("its first line is not a method, a target and a version")
	}
	r.Method, r.RequestURI, r.Proto = method, target, proto
	r.ProtoMajor, r.ProtoMinor, ok = http.ParseHTTPVersion(proto)
	if !ok {
		return r, malformed("its version is not one of HTTP")
	}
	r.URL, err = parseTarget(method, target)
	if err != nil {
		return r, malformed("its target is no URL")
	}
	r.Header = parseFields(fields)
	hosts := r.Header["Host"]
	if len(hosts) > 1 {
		return r, malformed("it has several Hosts")
	}
	r.Host = r.URL.Host
	if r.Host == "" && len(hosts) > 0 {
		r.Host = hosts[0]
	}
	return r, nil
}

// parseTarget parses the target behind the method. Only the target of a CONNECT has a host without
// a scheme.
func parseTarget(method, target string) (*url.URL, error) {
	if method != http.MethodConnect || strings.HasPrefix(target, "/") {
		return url.ParseRequestURI(target)
	}
	u, err := url.ParseRequestURI("http://" + target)
	if err == nil {
		u.Scheme = ""
	}
	return u, err
}

// frameOfRequest returns the framing of the request's body. A request that declares none has no
// body.
func frameOfRequest(r *http.Request) (frame, error) {
	f, err := frameOf(r.Header, r.ProtoMajor < 1 || r.ProtoMajor == 1 && r.ProtoMinor == 0)
	if err != nil {
		return f, err
	}
	if f.chunked {
		r.TransferEncoding = []string{"chunked"}
		if err := dropTrailer(r.Header); err != nil {
			return f, err
		}
	} else {
		f.length = max(f.length, 0)
	}
	r.ContentLength, r.Close = f.length, f.last
	return f, nil
}

// dropTrailer removes the announcement of trailers, which this server drops.
func dropTrailer(h http.Header) error {
	for _, list := range h["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			switch http.CanonicalHeaderKey(strings.Trim(name, " \t")) {
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return malformed("its trailer would change its frame")
			}
		}
	}
	delete(h, "Trailer")
	return nil
}

// checkRequest returns why a request with a known framing is refused, or nil.
func checkRequest(r *http.Request) error {
	hosts := r.Header["Host"]
	switch {
	case r.ProtoMajor != 1:
		return refusal{http.StatusHTTPVersionNotSupported, "it is not HTTP/1"}
	case len(hosts) == 0 && r.ProtoMinor > 0 && r.Method != http.MethodConnect:
		return malformed("it has no Host")
	case len(hosts) == 1 && !httpguts.ValidHostHeader(hosts[0]):
		return malformed("its Host has characters that are not allowed in it")
	}
	for _, expected := range r.Header["Expect"] {
		if expected != "" && !strings.EqualFold(expected, "100-continue") {
			return refusal{http.StatusExpectationFailed, "its Expect is not 100-continue"}
		}
	}
	return nil
}
