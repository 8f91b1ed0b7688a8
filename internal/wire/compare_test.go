package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stricter are the reasons for which this package refuses answers that net/http's transport
// accepts: another reader could read them in another way, or a gateway must not pass them on.
var stricter = []malformed{
	"it is neither HTTP/1.1 nor HTTP/1.0",                      // it takes HTTP/0.9 and HTTP/2.0
	"its status is not three digits and a reason",              // it takes two spaces, +20, and control characters
	"it switches protocols, unasked",                           // it takes 101
	"too many interim answers",                                 // it takes as many as MaxResponseHeaderBytes has room for
	"the name of a header is not a token",                      // it takes spaces in names, and lines that go on: RFC 9112, 5.2: a gateway must not pass them on
	"it has both a Transfer-Encoding and a Content-Length",     // RFC 9112, 6.3: ought to be handled as an error
	"it has a Transfer-Encoding, which HTTP/1.0 does not know", // it takes any in HTTP/1.0
	"a header has control characters",                          // it takes them in lines that go on
}

// FuzzCompare lets net/http's transport and ours read the same answer. Theirs must accept every
// answer that ours accepts, and read it in the same way.
func FuzzCompare(f *testing.F) {
	log.SetOutput(io.Discard) // net/http logs unsolicited answers
	f.Cleanup(func() { log.SetOutput(os.Stderr) })
	for _, c := range goodAnswers {
		f.Add([]byte(c.answer), c.method == "HEAD")
	}
	for _, c := range badAnswers {
		if len(c.answer) < 4<<10 {
			f.Add([]byte(c.answer), false)
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte, head bool) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		want, theirs := sendTheirs(t, method, answer)
		got, ours := sendOurs(t, method, answer)
		var reason malformed
		switch {
		case ours == nil && theirs == nil:
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q: net/http's (-) and ours (+):\n%s", answer, diff)
			}
		case ours == nil:
			t.Errorf("%q: net/http says %v; we take it: %+v", answer, theirs, got)
		case theirs == nil && (!errors.As(ours, &reason) || !slices.Contains(stricter, reason)):
			t.Errorf("%q: net/http takes it: %+v; we say %v", answer, want, ours)
		}
	})
}

// answering returns a connection on which every request gets the answer.
func answering(answer []byte) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		if readRequest(bufio.NewReader(server)) == nil {
			server.Write(answer)
		}
	}()
	return client
}

func sendTheirs(t *testing.T, method string, answer []byte) (result, error) {
	transport := &http.Transport{
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return answering(answer), nil },
	}
	defer transport.CloseIdleConnections()
	got, err := send(transport, newRequest(t, method, "http://host/", ""))
	return alike(got), err
}

func sendOurs(t *testing.T, method string, answer []byte) (result, error) {
	transport := &Transport{}
	defer transport.CloseIdleConnections()
	c := transport.newConn(origin{"http", "host"}, answering(answer))
	got, err := send(over(c), newRequest(t, method, "http://host/", ""))
	return alike(got), err
}

// alike returns a result without permitted differences: net/http removes a Connection that says
// close, moves trailers, and adds a Cache-Control.
func alike(r result) result {
	for _, name := range []string{"Connection", "Trailer"} {
		r.Header.Del(name)
	}
	if r.Header.Get("Pragma") == "no-cache" {
		r.Header.Del("Cache-Control")
	}
	return r
}
