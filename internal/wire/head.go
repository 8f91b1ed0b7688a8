package wire

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// buffers is a pool of buffers for requests and answers that are written, and for headers that are
// read.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// maxPooled is the size of the largest buffer that returns to the pool.
const maxPooled = 64 << 10

func putBuffer(b *[]byte) {
	if cap(*b) <= maxPooled {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// appendHead appends the request line and the headers of a request that has been checked. A length
// below 0 is unknown.
func appendHead(b []byte, req *http.Request, length int64) []byte {
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	b = append(append(b, method...), ' ')
	b = appendTarget(b, req.URL)
	b = append(b, " HTTP/1.1\r\n"...)
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	b = appendField(b, "Host", withoutZone(host))
	switch {
	case length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case length > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch:
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, length, 10), "\r\n"...)
	}
	if req.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	for name, values := range req.Header {
		if isFraming(name) {
			continue
		}
		for _, value := range values {
			b = appendField(b, name, value)
		}
	}
	return append(b, "\r\n"...)
}

func appendTarget(b []byte, u *url.URL) []byte {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	b = append(b, path...)
	if u.RawQuery != "" || u.ForceQuery {
		b = append(append(b, '?'), u.RawQuery...)
	}
	return b
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}

// withoutZone returns a host without the zone of its IPv6 address, which only this machine knows.
func withoutZone(host string) string {
	from, to := strings.IndexByte(host, '%'), strings.LastIndexByte(host, ']')
	if host[0] != '[' || from < 0 || to < from {
		return host
	}
	return host[:from] + host[to:]
}

// framingNames are the headers about the connection and the framing of the message.
var framingNames = []string{"Connection", "Content-Length", "Host", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade"}

// isFraming reports whether this package alone sets a header, however its name is spelled.
func isFraming(name string) bool {
	for _, n := range framingNames {
		if len(n) == len(name) && strings.EqualFold(n, name) {
			return true
		}
	}
	const proxy = "Proxy-"
	return len(name) > len(proxy) && strings.EqualFold(name[:len(proxy)], proxy)
}
