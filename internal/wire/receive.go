package wire

import (
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxInterim is how many interim answers may come before the final one.
const maxInterim = 16

// receive reads a response up to its body.
func (c *conn) receive(req *http.Request) (*http.Response, frame, error) {
	left := c.transport.maxHeader()
	for range maxInterim {
		head, err := readHead(c.reader, &left)
		if err != nil {
			return nil, frame{}, err
		}
		response, err := parse(head)
		if err != nil {
			return nil, frame{}, err
		}
		if response.StatusCode == http.StatusSwitchingProtocols {
			return nil, frame{}, malformed("it switches protocols, unasked")
		}
		if response.StatusCode >= http.StatusOK {
			response.Request, response.TLS = req, c.state
			f, err := frameOfResponse(response, req.Method)
			return response, f, err
		}
	}
	return nil, frame{}, malformed("too many interim answers")
}

// parse parses what readHead has written. The strings of the response share its memory.
func parse(head string) (*http.Response, error) {
	line, fields, _ := strings.Cut(head, "\n")
	response := &http.Response{ProtoMajor: 1, Header: parseFields(fields)}
	switch {
	case strings.HasPrefix(line, "HTTP/1.1 "):
		response.ProtoMinor = 1
	case !strings.HasPrefix(line, "HTTP/1.0 "):
		return nil, malformed("it is neither HTTP/1.1 nor HTTP/1.0")
	}
	const version = len("HTTP/1.1")
	response.Proto, response.Status = line[:version], line[version+1:]
	code, reason, _ := strings.Cut(response.Status, " ")
	status, err := strconv.ParseUint(code, 10, 16)
	if err != nil || len(code) != 3 || status < 100 || !httpguts.ValidHeaderFieldValue(reason) {
		return nil, malformed("its status is not three digits and a reason")
	}
	response.StatusCode = int(status)
	return response, nil
}
