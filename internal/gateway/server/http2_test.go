package server

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2 is a connection of HTTP/2 on which a test sends the frames that it likes.
type h2 struct {
	*http2.Framer
	conn   *tls.Conn
	stream uint32 // the last one
}

// startTLS starts a server that speaks HTTP/2 with clients.
func startTLS(t *testing.T, provider http.Handler, text string) *running {
	t.Helper()
	files := newPair(t)
	r := start(t, provider, text+"tls: {cert: "+files.cert+", key: "+files.key+"}\n")
	r.base = "https://" + r.Clients.String()
	return r
}

// dialHTTP2 opens a connection with these settings.
func (r *running) dialHTTP2(t *testing.T, settings ...http2.Setting) *h2 {
	t.Helper()
	conn, err := tls.Dial("tcp", r.Clients.String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := &h2{Framer: http2.NewFramer(conn, conn), conn: conn}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := c.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return c
}

// open sends the headers of a request on a stream of its own. Fields are given as names and values.
func (c *h2) open(t *testing.T, end bool, fields ...string) uint32 {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	if c.stream += 2; c.stream%2 == 0 {
		c.stream--
	}
	if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end}); err != nil {
		t.Fatal(err)
	}
	return c.stream
}

// post sends a call of a model on a stream of its own, with further headers.
func (c *h2) post(t *testing.T, r *running, fields ...string) uint32 {
	t.Helper()
	id := c.open(t, false, append([]string{
		":method", "POST", ":scheme", "https", ":path", "/openai/v1/chat/completions", ":authority", r.Clients.String(), "content-type", "application/json",
	}, fields...)...)
	if err := c.WriteData(id, true, []byte(chat)); err != nil {
		t.Fatal(err)
	}
	return id
}

// await reads frames until one is as wanted.
func (c *h2) await(t *testing.T, what string, wanted func(http2.Frame) bool) http2.Frame {
	t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatalf("%s does not come: %v", what, err)
		}
		if wanted(f) {
			return f
		}
	}
}

// A client of HTTP/2 that takes nothing of its answers does not hold streams, and so a connection that counts as busy,
// for longer than write_timeout: neither with a refusal, nor with a page of the gateway's own or an answer of a provider.
func TestStreamsThatAreNotRead(t *testing.T) {
	r := startTLS(t, mock(), strings.Replace(basic, "drain: 20s", "drain: 20s, write_timeout: 1s", 1))
	c := r.dialHTTP2(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	open := map[uint32]bool{c.post(t, r): true}
	for _, path := range []string{"/nothing", "/healthz", "/ratelimit"} {
		open[c.open(t, true, ":method", "GET", ":scheme", "https", ":path", path, ":authority", r.Clients.String(), "accept", "text/html")] = true
	}
	c.await(t, "the end of all streams", func(f http2.Frame) bool {
		if _, ok := f.(*http2.RSTStreamFrame); ok {
			delete(open, f.Header().StreamID)
		}
		return len(open) == 0
	})
}

// Headers that are too long end a connection of HTTP/2, in one frame or in many that never end, and no provider gets
// them.
func TestHeaderFloodOfHTTP2(t *testing.T) {
	got := make(chan struct{}, 1)
	r := startTLS(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- struct{}{} }), strings.Replace(basic, "drain: 20s", "drain: 20s, max_header: 8KiB", 1))
	long := strings.Repeat("x", 20<<10)
	for _, flood := range []func(*h2){
		func(c *h2) {
			c.open(t, true, ":method", "GET", ":scheme", "https", ":path", "/openai/v1/models", ":authority", r.Clients.String(), "x-more", long)
		},
		func(c *h2) {
			const get, more = "\x82", "\x00\x01x\x7f\xe9\x06" // in HPACK: the method, and a field whose value has 1000 bytes
			err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(get)})
			for range 100 {
				if err == nil {
					err = c.WriteContinuation(1, false, []byte(more+long[:1000]))
				}
			}
		},
	} {
		c := r.dialHTTP2(t)
		flood(c)
		var err error
		for err == nil { // until the server ends the connection
			_, err = c.ReadFrame()
		}
	}
	if len(got) > 0 {
		t.Error("the provider got a request")
	}
}
