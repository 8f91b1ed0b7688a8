package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

const ok = "HTTP/1.1 200 OK\r\n"

// goodAnswers are unusual but valid. kept says whether the next request goes over the same
// connection.
var goodAnswers = []struct {
	name, method, answer string
	status, body         string
	kept                 bool
}{
	{"a length", "GET", ok + "Content-Length: 2\r\n\r\nhi", "200 OK", "hi", true},
	{"no body", "GET", ok + "Content-Length: 0\r\n\r\n", "200 OK", "", true},
	{"no reason", "GET", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200", "", true},
	{"a reason with odd letters", "GET", "HTTP/1.1 200 \xfcber alles\r\nContent-Length: 0\r\n\r\n", "200 \xfcber alles", "", true},
	{"bare line feeds", "GET", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "200 OK", "hi", true},
	{"spaces around a value", "GET", ok + "Content-Length: \t 2 \t\r\n\r\nhi", "200 OK", "hi", true},
	{"the same length twice", "GET", ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "200 OK", "hi", true},
	{"lower case", "GET", ok + "content-length: 2\r\n\r\nhi", "200 OK", "hi", true},
	{"a header twice", "GET", ok + "A: 1\r\nB: 2\r\nA: 3\r\nContent-Length: 2\r\n\r\nhi", "200 OK", "hi", true},
	{"chunks", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", "200 OK", "hi", true},
	{"Chunked", "GET", ok + "Transfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "200 OK", "hi", true},
	{"chunks with extensions", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0;c\r\n\r\n", "200 OK", "hi", true},
	{"a trailer", "GET", ok + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n", "200 OK", "hi", true},
	{"no length at all", "GET", ok + "\r\nhi", "200 OK", "hi", false},
	{"Connection: close", "GET", ok + "Connection: x, Close\r\nContent-Length: 2\r\n\r\nhi", "200 OK", "hi", false},
	{"Connection: close and no body", "GET", ok + "Connection: close\r\nContent-Length: 0\r\n\r\n", "200 OK", "", false},
	{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", "200 OK", "hi", false},
	{"interim answers", "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi", "200 OK", "hi", true},
	{"HEAD", "HEAD", ok + "Content-Length: 2\r\n\r\n", "200 OK", "", true},
	{"HEAD in chunks", "HEAD", ok + "Transfer-Encoding: chunked\r\n\r\n", "200 OK", "", true},
	{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", "204 No Content", "", true},
	{"304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", "304 Not Modified", "", true},
	{"an odd status", "GET", "HTTP/1.1 529 Overloaded\r\nContent-Length: 0\r\n\r\n", "529 Overloaded", "", true},
	{"bytes behind a length", "GET", ok + "Content-Length: 2\r\n\r\nhi" + ok, "200 OK", "hi", false},
	{"bytes behind chunks", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n!", "200 OK", "hi", false},
	{"a body with 204", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nhi", "204 No Content", "", false},
	{"a body with HEAD", "HEAD", ok + "Content-Length: 2\r\n\r\nhi", "200 OK", "", false},
	{"headers beyond the reader's buffer", "GET", ok + "X: " + strings.Repeat("x", 3*readerSize) + "\r\nContent-Length: 2\r\n\r\nhi", "200 OK", "hi", true},
}

// badAnswers must be refused.
var badAnswers = []struct{ name, answer string }{
	{"nothing", ""},
	{"half a status", "HTTP/1.1 20"},
	{"no end of the headers", ok + "A: b\r\n"},
	{"no HTTP", "SSH-2.0-OpenSSH\r\n\r\n"},
	{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n"},
	{"HTTP/0.9", "HTTP/0.9 200 OK\r\n\r\n"},
	{"two spaces", "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n"},
	{"a short status", "HTTP/1.1 20 OK\r\n\r\n"},
	{"a long status", "HTTP/1.1 2000 OK\r\n\r\n"},
	{"a signed status", "HTTP/1.1 +20 OK\r\n\r\n"},
	{"a status below 100", "HTTP/1.1 099 OK\r\n\r\n"},
	{"a control character in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n"},
	{"101", "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
	{"interim answers without end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50)},
	{"a header without a colon", ok + "AB\r\n\r\n"},
	{"a header without a name", ok + ": b\r\n\r\n"},
	{"a space before the colon", ok + "Content-Length : 2\r\n\r\nhi"},
	{"a space in the name", ok + "A B: c\r\n\r\n"},
	{"a space before the first header", ok + " A: b\r\n\r\n"},
	{"a folded header", ok + "A: b\r\n c\r\n\r\n"},
	{"a control character in a value", ok + "A: b\x00\r\n\r\n"},
	{"a bare carriage return", ok + "A: b\rContent-Length: 2\r\n\r\nhi"},
	{"both a length and chunks", ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	{"two lengths", ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!"},
	{"two lengths in one header", ok + "Content-Length: 2, 2\r\n\r\nhi"},
	{"a signed length", ok + "Content-Length: +2\r\n\r\nhi"},
	{"a negative length", ok + "Content-Length: -2\r\n\r\nhi"},
	{"an empty length", ok + "Content-Length:\r\n\r\nhi"},
	{"a huge length", ok + "Content-Length: 99999999999999999999\r\n\r\nhi"},
	{"a coding that is not chunked", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	{"two codings", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	{"a coding that is no ASCII", ok + "Transfer-Encoding: chun\u212aed\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	{"chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
	{"a body that is cut off", ok + "Content-Length: 3\r\n\r\nhi"},
	{"chunks that are cut off", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"},
	{"chunks without their last CRLF", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"},
	{"a chunk that is longer than it says", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nhi\r\n0\r\n\r\n"},
	{"a chunk's size that is no number", ok + "Transfer-Encoding: chunked\r\n\r\n+2\r\nhi\r\n0\r\n\r\n"},
	{"a chunk's size with a bare line feed", ok + "Transfer-Encoding: chunked\r\n\r\n2\nhi\r\n0\r\n\r\n"},
	{"a trailer with a bare line feed", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\n"},
	{"a trailer that is no header", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX\r\n\r\n"},
	{"a trailer that is too long", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n" + strings.Repeat("X: yyyyyyyyyyyyy\r\n", 300) + "\r\n"},
	{"headers that are too long", ok + strings.Repeat("X: yyyyyyyyyyyyy\r\n", 20000) + "\r\n"},
	{"one header that is too long", ok + "X: " + strings.Repeat("y", 300<<10) + "\r\n\r\n"},
}

// A server sends each of these answers byte for byte, twice.
func TestAnswers(t *testing.T) {
	for _, c := range goodAnswers {
		t.Run(c.name, func(t *testing.T) {
			server := startRaw(t, always(c.answer, c.name == "no length at all"))
			transport := newTransport(t, nil)
			for range 2 {
				must(t, transport, newRequest(t, c.method, server.url, ""), c.status, c.body)
			}
			if n := server.accepted.Load(); (n == 1) != c.kept {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// A server sends answers that must be refused.
func TestBadAnswers(t *testing.T) {
	for _, c := range badAnswers {
		t.Run(c.name, func(t *testing.T) {
			server := startRaw(t, always(c.answer, true))
			transport := newTransport(t, nil)
			got, err := send(transport, newRequest(t, "GET", server.url+"/?key=secret", ""))
			var fault *Error
			if !errors.As(err, &fault) || !fault.Sent {
				t.Fatalf("%+v, %v", got, err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "ratelimit: "+server.url[len("http://"):]+": ") || strings.Contains(text, "secret") {
				t.Error(text)
			}
			if len(transport.idle) > 0 {
				t.Error("the connection is kept")
			}
		})
	}
}

// Chunks come one by one, and the last one in pieces. Each read returns what has come, without
// waiting for the rest.
func TestStreamDoesNotWait(t *testing.T) {
	parts := []string{
		ok + "Transfer-Encoding: chunked\r\n\r\n1\r\na", "\r\n1\r\nb\r", "\n1\r\nc\r\n1", "\r\nd\r\n0\r\n",
		"X: y\r", "\n\r\n",
	}
	next := make(chan struct{})
	server := startRaw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for readRequest(r) == nil {
			for _, part := range parts {
				if _, there := <-next; !there {
					return
				}
				io.WriteString(c, part)
			}
		}
	})
	t.Cleanup(func() { close(next) })
	transport := newTransport(t, nil)
	for range 2 {
		go func() { next <- struct{}{} }()
		response, err := transport.RoundTrip(newRequest(t, "GET", server.url, ""))
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 100)
		for i, want := range []string{"a", "b", "c", "d"} {
			if n, err := response.Body.Read(p); string(p[:n]) != want || err != nil {
				t.Fatalf("%q, %v; want %q", p[:n], err, want)
			}
			if i < 3 {
				next <- struct{}{}
			}
		}
		next <- struct{}{}
		next <- struct{}{}
		if n, err := response.Body.Read(p); n != 0 || err != io.EOF {
			t.Fatalf("%q, %v at the end", p[:n], err)
		}
	}
	if n := server.accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Buffered returns how much of a body has come with its headers.
func TestBuffered(t *testing.T) {
	for answer, want := range map[string]int{hello: 2, ok + "Content-Length: 9\r\n\r\n": 0} {
		server := startRaw(t, always(answer, false))
		response, err := newTransport(t, nil).RoundTrip(newRequest(t, "GET", server.url, ""))
		if err != nil {
			t.Fatal(err)
		}
		if n := response.Body.(interface{ Buffered() int }).Buffered(); n != want {
			t.Errorf("%q: %d", answer, n)
		}
		response.Body.Close()
	}
}

// MaxHeader counts every byte up to the body, interim answers included.
func TestMaxHeader(t *testing.T) {
	const interim = "HTTP/1.1 100 Continue\r\n\r\n"
	server := startRaw(t, always(interim+hello, false))
	exact := int64(len(interim) + len(hello) - len("hi"))
	must(t, newTransport(t, &Transport{MaxHeader: exact}), newRequest(t, "GET", server.url, ""), "200", "hi")
	if _, err := send(newTransport(t, &Transport{MaxHeader: exact - 1}), newRequest(t, "GET", server.url, "")); !errors.Is(err, errLongHeader) {
		t.Error(err)
	}
}
