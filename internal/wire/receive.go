package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// mostInterim is how many answers may come before the one that counts.
const mostInterim = 16

// malformed is why an answer is refused. Nothing of the answer is in it.
type malformed string

func (m malformed) Error() string { return "the answer is malformed: " + string(m) }

var errLongHeader = errors.New("the answer's headers are longer than MaxHeader")

// receive reads a response up to its body.
func (c *conn) receive(req *http.Request) (*http.Response, frame, error) {
	buffer := buffers.Get().(*[]byte)
	defer giveBack(buffer)
	left := c.transport.maxHeader()
	for range mostInterim {
		head, err := c.readHead((*buffer)[:0], &left)
		*buffer = head
		if err != nil {
			return nil, frame{}, err
		}
		response, err := parse(string(head))
		if err != nil {
			return nil, frame{}, err
		}
		if response.StatusCode == http.StatusSwitchingProtocols {
			return nil, frame{}, malformed("it switches protocols, unasked")
		}
		if response.StatusCode >= http.StatusOK {
			response.Request, response.TLS = req, c.state
			f, err := frameOf(response, req.Method)
			return response, f, err
		}
	}
	return nil, frame{}, malformed("too many interim answers")
}

// readHead appends what comes up to the empty line to b: a status line, and headers of
// the form Name:value, with names in their canonical form. Each ends with \n.
func (c *conn) readHead(b []byte, left *int64) ([]byte, error) {
	b, err := c.readLine(b, left)
	if err != nil {
		return b, err
	}
	return c.readFields(append(b, '\n'), left)
}

// readFields appends headers.
func (c *conn) readFields(b []byte, left *int64) ([]byte, error) {
	for {
		start := len(b)
		var err error
		if b, err = c.readLine(b, left); err != nil {
			return b, err
		}
		line := b[start:]
		if len(line) == 0 {
			return b, nil
		}
		n, err := normalize(line)
		if err != nil {
			return b, err
		}
		b = append(b[:start+n], '\n')
	}
}

// readLine appends a line without its end.
func (c *conn) readLine(b []byte, left *int64) ([]byte, error) {
	start := len(b)
	for {
		part, err := c.reader.ReadSlice('\n')
		if *left -= int64(len(part)); *left < 0 {
			return b, errLongHeader
		}
		b = append(b, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return b, err
		}
		line := bytes.TrimSuffix(b[start:len(b)-1], []byte("\r"))
		return b[:start+len(line)], nil
	}
}

// normalize brings a header's line into its form, and returns how long that is. A line
// that goes on with the header before it begins with a space, which is in no name.
func normalize(line []byte) (int, error) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 || !canonical(line[:colon]) {
		return 0, malformed("the name of a header is not a token")
	}
	value := bytes.Trim(line[colon+1:], " \t")
	for _, b := range value {
		if b < ' ' && b != '\t' || b == 0x7f {
			return 0, malformed("a header has control characters")
		}
	}
	return colon + 1 + copy(line[colon+1:], value), nil
}

// canonical writes a header's name as [http.CanonicalHeaderKey] does. It reports
// whether it is a name.
func canonical(name []byte) bool {
	upper := true
	for i, b := range name {
		if !httpguts.IsTokenRune(rune(b)) {
			return false
		}
		switch {
		case upper && 'a' <= b && b <= 'z':
			name[i] = b - ('a' - 'A')
		case !upper && 'A' <= b && b <= 'Z':
			name[i] = b + ('a' - 'A')
		}
		upper = b == '-'
	}
	return len(name) > 0
}

// parse reads what readHead has written. The strings of the response are parts of it.
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

func parseFields(text string) http.Header {
	n := strings.Count(text, "\n")
	header, values := make(http.Header, n), make([]string, n)
	for len(text) > 0 {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		name, value, _ := strings.Cut(line, ":")
		if there := header[name]; there != nil {
			header[name] = append(there, value)
			continue
		}
		values[0] = value
		header[name], values = values[:1:1], values[1:]
	}
	return header
}
