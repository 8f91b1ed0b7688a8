package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// window is the time in which the witness looks for more than a minute's limit. It is a
// second shorter than a minute, because calls take different times from the gateway to the
// provider.
const window = 59 * time.Second

// witness is the demo's provider. It measures by itself how much gets through.
type witness struct {
	provider http.Handler

	mu   sync.Mutex
	seen map[string]*seen // by the names of models, and by those of projects
}

// seen is what the witness has seen of a model or of a project.
type seen struct {
	active, mostActive int       // how many calls are being answered, and the most at one time
	arrivals           []arrival // the calls of the last window
	tokens             int       // the tokens of these calls
	mostRequests       int       // the most requests in a window
	mostTokens         int       // the most tokens in a window
}

type arrival struct {
	at     time.Time
	tokens int
}

func newWitness() *witness {
	w := &witness{seen: map[string]*seen{}}
	w.provider = mockprovider.New(mockprovider.Config{
		Script: w.answer,
		Limits: map[string]mockprovider.Limit{
			large: {Requests: largeRequests, Tokens: largeTokens},
			small: {Requests: smallRequests, Tokens: smallTokens},
		},
	})
	return w
}

// demoCall is what the witness reads of a call. The demo puts the project into OpenAI's field
// user.
type demoCall struct {
	Model string `json:"model"`
	User  string `json:"user"`
}

// ServeHTTP answers a call, and counts how many are being answered.
func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var a demoCall
	json.Unmarshal(body, &a) // the provider answers a bad body with an error
	w.count(a, 1)
	defer w.count(a, -1)
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.provider.ServeHTTP(rw, r)
}

func (w *witness) count(a demoCall, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.both(a) {
		s.active += n
		s.mostActive = max(s.mostActive, s.active)
	}
}

// both returns what was seen of a call's model and of its project.
func (w *witness) both(a demoCall) []*seen { return []*seen{w.of(a.Model), w.of(a.User)} }

func (w *witness) of(name string) *seen {
	s := w.seen[name]
	if s == nil {
		s = &seen{}
		w.seen[name] = s
	}
	return s
}

// How the demo's provider answers.
const (
	answerTime  = 240 * time.Millisecond // how long a whole answer takes, streamed or not
	errorsEvery = 23                     // one call in so many fails
)

// answer is the script of the provider: an answer has as many tokens as the call allows and
// takes a while, and now and then it is an error.
func (w *witness) answer(c mockprovider.Call) mockprovider.Reply {
	var a demoCall
	json.Unmarshal(c.Body, &a)
	if c.Model == large && c.Number%errorsEvery == 0 {
		w.record(a, 0)
		return mockprovider.Reply{Status: http.StatusInternalServerError}
	}
	w.record(a, c.Prompt+c.MaxOutput)
	reply := mockprovider.Reply{Output: max(c.MaxOutput, 1), Delay: answerTime}
	if c.Stream {
		reply.Delay = answerTime / time.Duration(reply.Output)
	}
	return reply
}

// record adds a call to the usage of its model and of its project.
func (w *witness) record(a demoCall, tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, s := range w.both(a) {
		s.record(arrival{now, tokens})
	}
}

func (s *seen) record(a arrival) {
	s.arrivals = append(s.arrivals, a)
	s.tokens += a.tokens
	for a.at.Sub(s.arrivals[0].at) > window {
		s.tokens -= s.arrivals[0].tokens
		s.arrivals = s.arrivals[1:]
	}
	s.mostRequests, s.mostTokens = max(s.mostRequests, len(s.arrivals)), max(s.mostTokens, s.tokens)
}

// answering returns how many calls of a project are being answered.
func (w *witness) answering(project string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of(project).active
}

// overshoot returns by how much the limits were ever exceeded: the sum of concurrent calls,
// requests and tokens above their limits.
func (w *witness) overshoot() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.of(large).mostActive-largeConcurrent, 0) +
		max(w.of(large).mostRequests-largeRequests, 0) + max(w.of(large).mostTokens-largeTokens, 0) +
		max(w.of(small).mostRequests-smallRequests, 0) + max(w.of(small).mostTokens-smallTokens, 0) +
		max(w.of("intern").mostRequests-internRequests, 0) + max(w.of("reports").mostTokens-reportsTokens, 0)
}
