package wire

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/iotest"
)

var nothing = log.New(io.Discard, "", 0)

// startEcho starts a server that returns the length and the checksum of a body in headers, and the
// body in pieces.
func startEcho(t testing.TB) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Sum", strconv.Itoa(int(crc32.ChecksumIEEE(text))))
		for len(text) > 0 {
			n := min(len(text), 1+rand.IntN(5000))
			w.Write(text[:n])
			text = text[n:]
			if rand.IntN(4) == 0 {
				w.(http.Flusher).Flush()
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Many callers share a transport. Some read slowly, some close early, some cancel. A caller that
// reads to the end reads what it has sent.
func TestTogether(t *testing.T) {
	server := startEcho(t)
	transport := newTransport(t, &Transport{MaxIdle: 4})
	var all sync.WaitGroup
	for worker := range 16 {
		random := rand.New(rand.NewPCG(uint64(worker), 7))
		all.Go(func() {
			for range 40 {
				if err := oneOfMany(transport, server.URL, random); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// pattern has no two equal suffixes.
var pattern = func() (text []byte) {
	for i := range 5000 {
		text = fmt.Appendf(text, "%d,", i)
	}
	return text
}()

func oneOfMany(transport *Transport, url string, random *rand.Rand) error {
	text := pattern[random.IntN(len(pattern)):]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	req.Body = &Pieces{text}
	if random.IntN(3) == 0 {
		req.Body = io.NopCloser(iotest.HalfReader(bytes.NewReader(text)))
	}
	leaves := random.IntN(5) == 0
	if leaves {
		go cancel()
	}
	response, err := transport.RoundTrip(req)
	if err != nil {
		return unless(leaves, err)
	}
	defer response.Body.Close()
	if random.IntN(5) == 0 {
		return nil
	}
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return unless(leaves, err)
	}
	if sum := strconv.Itoa(int(crc32.ChecksumIEEE(text))); !bytes.Equal(got, text) || response.Header.Get("Sum") != sum {
		return fmt.Errorf("%d bytes came back of %d, and they are not the same", len(got), len(text))
	}
	return nil
}

func unless(expected bool, err error) error {
	if expected {
		return nil
	}
	return err
}

// TestBig sends a large body, and receives one.
func TestBig(t *testing.T) {
	server := startEcho(t)
	transport := newTransport(t, nil)
	text := bytes.Repeat([]byte("0123456789abcdef"), 2<<20/16)
	for _, body := range []io.ReadCloser{&Pieces{text}, io.NopCloser(bytes.NewReader(text))} {
		req := newRequest(t, "POST", server.URL, "")
		req.Body = body
		response, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}
