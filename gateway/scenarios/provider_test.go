package scenarios

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/mockprovider"
)

// provider is a mock on a listener, that remembers what has come, and can let calls wait
// before it answers them.
type provider struct {
	*mockprovider.Server
	url string

	mu     sync.Mutex
	gate   chan struct{} // calls wait until it is closed; nil: they do not
	until  int           // after so many calls there is a gate; 0: there is not
	came   []arrival
	inside int // calls that are being answered, or wait
	peak   int // most of them at a time
	held   int // calls that wait, or have left the gate before it was opened
}

// arrival is a request that a provider has got.
type arrival struct {
	at     time.Time
	method string
	uri    string
	header http.Header
	model  string
	text   string // that the client says
}

func newProvider(t *testing.T) *provider {
	p := &provider{Server: mockprovider.New(mockprovider.Config{})}
	listening := httptest.NewServer(p)
	t.Cleanup(listening.Close)
	t.Cleanup(p.release)
	p.url = listening.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	defer p.leave()
	select {
	case <-p.enter(r, body):
	case <-r.Context().Done():
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.Server.ServeHTTP(w, r)
}

// enter notes a request, and returns what it has to wait for.
func (p *provider) enter(r *http.Request, body []byte) <-chan struct{} {
	a := arrival{at: time.Now(), method: r.Method, uri: r.RequestURI, header: r.Header.Clone()}
	var call struct {
		Model    string
		Messages []struct{ Content string }
	}
	if json.Unmarshal(body, &call) == nil && len(call.Messages) > 0 {
		a.model, a.text = call.Model, call.Messages[0].Content
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came = append(p.came, a)
	p.inside++
	p.peak = max(p.peak, p.inside)
	if p.until > 0 && len(p.came) > p.until {
		p.gate, p.until = make(chan struct{}), 0
	}
	if p.gate == nil {
		return opened
	}
	p.held++
	return p.gate
}

var opened = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (p *provider) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside--
}

// hold lets calls wait from now on.
func (p *provider) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

// holdAfter lets calls wait once so many have come.
func (p *provider) holdAfter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = n
}

// release lets those that wait go on, and those that come.
func (p *provider) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		close(p.gate)
		p.gate = nil
	}
	p.until, p.held = 0, 0
}

// holds reports whether so many calls wait.
func (p *provider) holds(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held == n
}

// busy returns how many calls are being answered, or wait, and how many were at most.
func (p *provider) busy() (now, peak int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inside, p.peak
}

// arrivals returns the calls of a model that have come, or of all.
func (p *provider) arrivals(model string) (of []arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.came {
		if model == "" || a.model == model {
			of = append(of, a)
		}
	}
	return of
}

// tokens returns how many tokens of a model were used.
func (p *provider) tokens(model string) int {
	total := p.Totals()[model]
	return total.Input + total.Output
}

// almostMinute is how close two calls may come that were let in a minute apart: the
// second may be faster on its way.
const almostMinute = 50 * time.Second

// mostAMinute returns how many calls of a model have come within a minute at most.
func (p *provider) mostAMinute(model string) (most int) {
	all := p.arrivals(model)
	for i, first := 0, 0; i < len(all); i++ {
		for all[i].at.Sub(all[first].at) >= almostMinute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
