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

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// provider is a mock on a listener. It records the requests that it gets, and can let calls
// wait before it answers them.
type provider struct {
	*mockprovider.Server
	url string

	mu      sync.Mutex
	gate    chan struct{} // calls wait until it is closed; nil: calls do not wait
	blockAt int           // the number of calls after which a gate is set; 0: none is set
	came    []arrival
	inside  int // calls in progress, with those that wait
	peak    int // the largest value of inside
	waiting int // calls that wait, or left before the gate was opened
}

// arrival is a request that a provider has got.
type arrival struct {
	at     time.Time
	method string
	uri    string
	header http.Header
	model  string
	text   string // of the client's message
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

// enter records a request, and returns the gate that the call has to wait for.
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
	if p.blockAt > 0 && len(p.came) > p.blockAt {
		p.gate, p.blockAt = make(chan struct{}), 0
	}
	if p.gate == nil {
		return opened
	}
	p.waiting++
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

// block lets calls wait from now on.
func (p *provider) block() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

// blockAfter lets calls wait after n calls have come.
func (p *provider) blockAfter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blockAt = n
}

// release lets waiting calls and later ones go on.
func (p *provider) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		close(p.gate)
		p.gate = nil
	}
	p.blockAt, p.waiting = 0, 0
}

// blocks reports whether n calls wait.
func (p *provider) blocks(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting == n
}

// busy returns how many calls are in progress, and how many there were at most.
func (p *provider) busy() (now, peak int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inside, p.peak
}

// arrivals returns the calls of a model that have come, or all calls if model is empty.
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

// almostMinute is the least time between the arrivals of two calls that were admitted a
// minute apart: the second may be faster on its way.
const almostMinute = 50 * time.Second

// mostAMinute returns the largest number of calls of a model that came within a minute.
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
