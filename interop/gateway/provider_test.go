package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// provider is a mock provider on a listener. It takes files too, and remembers what it
// was sent.
type provider struct {
	*mockprovider.Server
	url       string
	listening *httptest.Server

	mu   sync.Mutex
	seen []*received
}

// received is a request that a provider has got.
type received struct {
	*http.Request
	body []byte
}

// newProvider starts one, for which it is always the same time.
func newProvider(t *testing.T, now time.Time) *provider {
	p := &provider{Server: mockprovider.New(mockprovider.Config{Script: script, Now: func() time.Time { return now }})}
	p.listening = httptest.NewServer(p)
	t.Cleanup(p.listening.Close)
	p.url = p.listening.URL
	return p
}

// script is what the mock does by itself, but that it reports waits in milliseconds.
func script(c mockprovider.Call) mockprovider.Reply {
	r := mockprovider.FromHeader(c)
	if r.RetryAfter > 0 {
		r.Header = http.Header{"Retry-After-Ms": {strconv.FormatInt(r.RetryAfter.Milliseconds(), 10)}}
		r.RetryAfter = 0
	}
	return r
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.seen = append(p.seen, &received{r.Clone(r.Context()), body})
	p.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.Server.ServeHTTP(w, r)
}

// received returns all requests so far.
func (p *provider) received() []*received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// contains reports whether something stands anywhere in a request.
func (r *received) contains(what string) bool {
	var head bytes.Buffer
	r.Header.Write(&head)
	head.WriteString(r.URL.String())
	head.WriteString(r.RequestURI)
	return strings.Contains(head.String(), what) || bytes.Contains(r.body, []byte(what))
}
