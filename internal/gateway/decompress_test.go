package gateway

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// compressed returns a text in a coding.
func compressed(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "deflate without its wrapping":
		w, _ = flate.NewWriter(&b, 9)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var codings = []string{"gzip", "deflate", "deflate without its wrapping", "br", "zstd"}

// A compressed body is read, and the provider gets it as it was read. Once, it got a 415, though providers take
// it.
func TestCompressedBodies(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	for _, coding := range codings {
		name, _, _ := strings.Cut(coding, " ")
		body := strings.Replace(hello, "gpt-4o", "best", 1)
		if a := r.post(t, chat, compressed(t, coding, body), "Content-Encoding", strings.ToUpper(name), "Content-Type", "application/json"); a.status != 200 {
			t.Errorf("%s: %d %s", coding, a.status, a.body)
			continue
		}
		got, sent := <-upstream.requests, <-upstream.bodies
		if sent != hello || got.Header["Content-Encoding"] != nil || got.ContentLength != int64(len(hello)) {
			t.Errorf("%s: sent %q with %v", coding, sent, got.Header)
		}
		testkit.Equal(t, "the model of "+coding, "best", r.last(t).Model)
	}
	testkit.Equal(t, "the bytes that are held by nobody", int64(0), r.bodyBytes.Load())
}

// The gateway refuses a compressed body whose content is longer than max_body, and one that cannot be decompressed.
// It sends nothing to the provider, and releases the memory of the body.
func TestCompressedBodiesAreBounded(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach+"server: {max_body: 64KiB, max_bodies: 32MiB}\n", upstream)
	for _, coding := range codings {
		name, _, _ := strings.Cut(coding, " ")
		bomb := compressed(t, coding, strings.Repeat(" ", 1<<20)+hello)
		if len(bomb) > 64<<10 {
			continue // too long in any case
		}
		a := r.post(t, chat, bomb, "Content-Encoding", name)
		if a.status != 413 || !strings.Contains(a.body, "longer than 65536 bytes, which is what max_body of server") {
			t.Errorf("%s: %d %s", coding, a.status, a.body)
		}
		for _, wrong := range []string{hello, bomb[:len(bomb)/2]} {
			if a := r.post(t, chat, wrong, "Content-Encoding", name); a.status != 400 && a.status != 413 {
				t.Errorf("%s: %d %s", coding, a.status, a.body)
			}
		}
	}
	r.settled(t)
	if n, held := len(upstream.requests), r.bodyBytes.Load(); n > 0 || held != 0 {
		t.Errorf("%d requests were sent, and %d bytes are held by nobody", n, held)
	}
	if a := r.post(t, chat, strings.Repeat(" ", 64<<10)+hello); a.status != 413 || !strings.Contains(a.body, "max_body") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The memory of decompression counts towards that of all bodies.
func TestDecompressionNeedsMemory(t *testing.T) {
	r := newRigBefore(t, oneOfEach+"server: {max_body: 1MiB, max_bodies: 2MiB}\n", newSeen())
	if a := r.post(t, chat, compressed(t, "zstd", hello), "Content-Encoding", "zstd"); a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.settled(t)
	testkit.Equal(t, "the bytes that are held by nobody", int64(0), r.bodyBytes.Load())
}

// Other codings, and one in another, get a 415 that names those that are read.
func TestOtherCodings(t *testing.T) {
	r := newRigBefore(t, oneOfEach, newSeen())
	for _, headers := range [][]string{
		{"Content-Encoding", "compress"}, {"Content-Encoding", "gzip, br"}, {"Content-Encoding", "gzip", "Content-Encoding", "gzip"}, {"Content-Encoding", "identity, dcb"},
	} {
		if a := r.post(t, chat, hello, headers...); a.status != 415 || !strings.Contains(a.body, "one of gzip, deflate, br and zstd") {
			t.Errorf("%v: %d %s", headers, a.status, a.body)
		}
	}
}
