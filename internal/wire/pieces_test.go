package wire_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// A body in pieces arrives as one, over our transport and over net/http's.
func TestPieces(t *testing.T) {
	got := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- text
	}))
	defer server.Close()
	own, standard := &wire.Transport{}, &http.Transport{}
	defer own.CloseIdleConnections()
	defer standard.CloseIdleConnections()
	for _, transport := range []http.RoundTripper{own, standard} {
		for _, size := range []int{0, 1, 300 << 10, 2 << 20} {
			pieces := wire.Pieces{bytes.Repeat([]byte("a"), size), nil, []byte("b"), bytes.Repeat([]byte("c"), size)}
			want := slices.Concat(pieces...)
			request, _ := http.NewRequest("POST", server.URL, &pieces)
			request.ContentLength = pieces.Len()
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if text := <-got; !bytes.Equal(text, want) {
				t.Errorf("%T: %d bytes arrived; want %d", transport, len(text), len(want))
			}
		}
	}
}
