package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// check returns why a request cannot be sent, or nil. No server can mistake a request that passes for
// another one. The errors quote no values of headers.
func check(req *http.Request) error {
	if req.Method != "" && !isName(req.Method) || req.Method == http.MethodConnect {
		return fmt.Errorf("the method is %.20q: it must be a token, and not CONNECT", req.Method)
	}
	if err := checkURL(req.URL); err != nil {
		return err
	}
	if !httpguts.ValidHostHeader(req.Host) {
		return errors.New("the Host has characters that are not allowed in it")
	}
	if err := checkLength(req); err != nil {
		return err
	}
	for name, values := range req.Header {
		if !isName(name) {
			return fmt.Errorf("the header's name %.40q is not a token", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("the header %.40s has control characters", name)
			}
		}
	}
	return nil
}

func checkURL(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("the request has no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the scheme is %.20q: it must be http or https", u.Scheme)
	case u.Host == "" || !httpguts.ValidHostHeader(u.Host):
		return errors.New("the URL's host is missing, or has characters that are not allowed in it")
	case u.Opaque != "" || u.Path != "" && u.Path[0] != '/' || u.RawPath != "" && u.RawPath[0] != '/':
		return errors.New("the URL's path does not begin with /")
	case strings.ContainsFunc(u.RawQuery, blank):
		return errors.New("the URL's query has a space or control characters")
	}
	return nil // the path is escaped when it is written
}

// blank reports whether r would end a request's target.
func blank(r rune) bool { return r <= ' ' || r == 0x7f }

// checkLength compares the length of a body with the request's ContentLength.
func checkLength(req *http.Request) error {
	length := int64(0)
	switch body := req.Body.(type) {
	case nil:
	case *Pieces:
		length = body.Len()
	default:
		if body != http.NoBody {
			return nil // it is sent as it is read, up to ContentLength
		}
	}
	if req.ContentLength > 0 && req.ContentLength != length {
		return fmt.Errorf("ContentLength is %d, and the body has %d bytes", req.ContentLength, length)
	}
	return nil
}
