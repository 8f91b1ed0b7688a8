package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Refusal is an error that a server answers with. Its first word is the kind of the error.
type Refusal string

func (r Refusal) Error() string { return "ratelimit: redis says: " + string(r) }

func (r Refusal) is(word string) bool {
	first, _, _ := strings.Cut(string(r), " ")
	return first == word
}

var errMalformed = errors.New("ratelimit: not an answer of Redis")

// do sends a command through a Unix socket, and returns the answer.
func do(socket string, args ...string) (any, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: redis-server is not there: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := conn.Write(command(args)); err != nil {
		return nil, fmt.Errorf("ratelimit: not sent: %w", err)
	}
	return answer(bufio.NewReader(conn))
}

// command encodes a command.
func command(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

// answer reads one answer: nil, an int64, a string, a []any, or a [Refusal].
func answer(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("ratelimit: no answer: %w", err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errMalformed
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, Refusal(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, errMalformed
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		return text(r, n)
	case kind == '*':
		return list(r, n)
	}
	return nil, errMalformed
}

func text(r *bufio.Reader, n int64) (any, error) {
	b := make([]byte, n+2)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("ratelimit: half an answer: %w", err)
	}
	return string(b[:n]), nil
}

func list(r *bufio.Reader, n int64) (any, error) {
	all := make([]any, n)
	for i := range all {
		var err error
		var refusal Refusal
		all[i], err = answer(r)
		if err != nil && !errors.As(err, &refusal) {
			return nil, err
		}
		if err != nil {
			all[i] = refusal
		}
	}
	return all, nil
}
