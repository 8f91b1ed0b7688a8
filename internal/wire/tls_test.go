package wire

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// startTLS starts a server with httptest's certificate, and a transport that trusts it.
func startTLS(t *testing.T, handler http.HandlerFunc, change func(*httptest.Server)) (*httptest.Server, *Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}} // the transport asks for the latter only
	if change != nil {
		change(server)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return server, newTransport(t, &Transport{TLS: &tls.Config{RootCAs: trusted}})
}

func TestTLS(t *testing.T) {
	var resumed atomic.Int32
	server, transport := startTLS(t, func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.DidResume {
			resumed.Add(1)
		}
		text, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.Proto+" "+r.TLS.NegotiatedProtocol+" "+r.TLS.ServerName+" "+string(text))
	}, nil)
	transport.TLS.ServerName = "example.com" // a name in the certificate
	for range 3 {
		must(t, transport, newRequest(t, "POST", server.URL, "hi"), "200", "HTTP/1.1 http/1.1 example.com hi")
	}
	response, err := transport.RoundTrip(newRequest(t, "GET", server.URL, ""))
	if err != nil || response.TLS == nil || response.TLS.NegotiatedProtocol != "http/1.1" {
		t.Fatalf("%+v, %v", response, err)
	}
	io.Copy(io.Discard, response.Body)
	if resumed.Load() != 0 {
		t.Error("the first connection was resumed")
	}
	transport.CloseIdleConnections()
	must(t, transport, newRequest(t, "POST", server.URL, "hi"), "200", "HTTP/1.1 http/1.1 example.com hi")
	if resumed.Load() != 1 {
		t.Error("the second connection was not resumed")
	}
}

// TestTLSKeepsConnections counts connections, with bodies of every kind.
func TestTLSKeepsConnections(t *testing.T) {
	var conns atomic.Int32
	server, transport := startTLS(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		w.Write(text[:len(text)/2])
		w.(http.Flusher).Flush()
		w.Write(text[len(text)/2:])
	}, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
	})
	for _, size := range []int{0, 1, 1000, maxCopied, maxCopied + 1, 1 << 20} {
		text := strings.Repeat("x", size)
		must(t, transport, newRequest(t, "POST", server.URL, text), "200", text)
		streamed := newRequest(t, "POST", server.URL, "")
		streamed.Body = io.NopCloser(strings.NewReader(text))
		must(t, transport, streamed, "200", text)
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestTLSRefuses(t *testing.T) {
	server, trusting := startTLS(t, func(http.ResponseWriter, *http.Request) {}, func(s *httptest.Server) {
		s.Config.ErrorLog = nothing
	})
	for name, transport := range map[string]*Transport{
		"an unknown authority": {},
		"another name":         {TLS: &tls.Config{RootCAs: trusting.TLS.RootCAs, ServerName: "another.example"}},
	} {
		_, err := send(newTransport(t, transport), newRequest(t, "POST", server.URL, "text"))
		var fault *Error
		var cause *tls.CertificateVerificationError
		if !errors.As(err, &fault) || fault.Sent || !errors.As(err, &cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server sends a second answer with the first. The transport has already read it from the socket,
// but has not decrypted it.
func TestTLSUnasked(t *testing.T) {
	certificate, trusting := startTLS(t, nil, nil)
	server := startRaw(t, func(raw net.Conn) {
		held := &corked{Conn: raw}
		c := tls.Server(held, certificate.TLS)
		r := bufio.NewReader(c)
		for readRequest(r) == nil {
			held.cork = true
			io.WriteString(c, hello)
			io.WriteString(c, ok+"Content-Length: 4\r\n\r\nevil")
			held.uncork()
		}
	})
	for range 3 {
		must(t, trusting, newRequest(t, "GET", "https"+server.url[len("http"):], ""), "200", "hi")
	}
	if n := server.accepted.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// corked keeps what is written, and then writes it at once.
type corked struct {
	net.Conn
	cork bool
	text []byte
}

func (c *corked) Write(p []byte) (int, error) {
	if !c.cork {
		return c.Conn.Write(p)
	}
	c.text = append(c.text, p...)
	return len(p), nil
}

func (c *corked) uncork() {
	c.Conn.Write(c.text)
	c.cork, c.text = false, nil
}
