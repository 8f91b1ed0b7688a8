package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// malformed says why a message is refused. It quotes nothing of the message.
type malformed string

func (m malformed) Error() string { return "the message is malformed: " + string(m) }

var errLongHeader = errors.New("the headers are longer than MaxHeader")

// readHead returns the head of a message, up to the empty line: the first line, and headers of the
// form Name:value, with names in their canonical form. Each line ends with \n. left is how many
// more bytes the head may have.
func readHead(r *bufio.Reader, left *int64) (string, error) {
	buffer := buffers.Get().(*[]byte)
	defer putBuffer(buffer)
	b, err := readLine(r, *buffer, left)
	if err == nil {
		b, err = readFields(r, append(b, '\n'), left)
	}
	*buffer = b
	return string(b), err
}

// readFields appends the headers of a message to b, up to the empty line.
func readFields(r *bufio.Reader, b []byte, left *int64) ([]byte, error) {
	for {
		start := len(b)
		var err error
		if b, err = readLine(r, b, left); err != nil {
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

// readLine appends a line to b, without its line end.
func readLine(r *bufio.Reader, b []byte, left *int64) ([]byte, error) {
	start := len(b)
	for {
		part, err := r.ReadSlice('\n')
		*left -= int64(len(part))
		if *left < 0 {
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

// normalize rewrites a header's line in place, and returns its new length. It refuses a line that
// continues the header before it: that begins with a space, which no name has.
func normalize(line []byte) (int, error) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 || !canonical(line[:colon]) {
		return 0, malformed("the name of a header is not a token")
	}
	value := bytes.Trim(line[colon+1:], " \t")
	for _, b := range value {
		if isControl[b] {
			return 0, malformed("a header has control characters")
		}
	}
	return colon + 1 + copy(line[colon+1:], value), nil
}

// The bytes that the name of a header may have, and those that its value may not have. Every byte of a head is looked
// up in one of the two.
var isToken, isControl = func() (token, control [256]bool) {
	for b := range 256 {
		token[b] = b < utf8.RuneSelf && httpguts.IsTokenRune(rune(b))
		control[b] = b < ' ' && b != '\t' || b == 0x7f
	}
	return token, control
}()

// isName reports whether a text is the name of a header.
func isName(text string) bool {
	for i := range len(text) {
		if !isToken[text[i]] {
			return false
		}
	}
	return text != ""
}

// canonical rewrites a header's name as [http.CanonicalHeaderKey] does, and reports whether it is a
// valid name.
func canonical(name []byte) bool {
	upper := true
	for i, b := range name {
		if !isToken[b] {
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

// parseFields returns the headers that readHead has written. Their strings share the memory of the
// text.
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
