package gateway

import (
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// While a call waits, its client gets a sign of life after firstSign, and then one every nextSign. Proxies often
// close a connection on which nothing has come for 30 or 60 seconds.
const (
	firstSign = 5 * time.Second
	nextSign  = 15 * time.Second
)

// signs sends signs of life to the client of a call that waits.
type signs struct {
	mu    sync.Mutex // held while a sign is sent
	over  bool
	timer *time.Timer
}

// sendSigns begins to send signs of life to the client, if there are any for the request. The function that it
// returns ends that: afterwards nothing is being written to the client.
func (x *exchange) sendSigns() (end func()) {
	send := x.signOfLife()
	if send == nil {
		return func() {}
	}
	s := &signs{}
	s.mu.Lock() // the timer's function must see the timer
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(firstSign, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.over && send() {
			s.timer.Reset(nextSign)
		}
	})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
		s.timer.Stop()
	}
}

// signOfLife returns the function that sends a sign of life, and reports whether the client may get more of
// them. It is nil if the configuration or the API of the request allows none.
func (x *exchange) signOfLife() (send func() bool) {
	while := x.cfg.Server.WhileWaiting
	if while == config.WaitNothing {
		return nil
	}
	if x.Stream && !x.signed {
		if idle := x.endpoint.Idle(&x.target); idle != "" {
			return func() bool {
				x.begin()
				return x.write([]byte(idle), true)
			}
		}
	}
	if while != config.WaitEarlyHints || !x.r.ProtoAtLeast(1, 1) {
		return nil
	}
	return func() bool {
		x.extendWriteDeadline()
		x.w.WriteHeader(http.StatusEarlyHints)
		return true
	}
}

// begin begins the answer to a request for a stream before anything is known of it but the form: from now on,
// whatever goes wrong is an event of the stream.
func (x *exchange) begin() {
	x.extendWriteDeadline()
	if x.begun {
		return
	}
	x.begun = true
	h := x.w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-store"}
	h[fieldPolicy], h[fieldType] = sandboxed, unsniffed
	x.setRequestID(h)
	x.w.WriteHeader(http.StatusOK)
}

// forwardInStream sends a provider's response to a client whose stream has begun: the body, or an event that
// says what is wrong.
func (x *exchange) forwardInStream(response *http.Response, body io.Reader) {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	response.ContentLength = -1 // something was written before the body
	switch {
	case response.StatusCode/100 != 2:
		text, _ := io.ReadAll(io.LimitReader(body, call.MaxErrorBody))
		x.endStream(x.endpoint.FailInStream(response.StatusCode, text))
	case kind != "text/event-stream" || response.Header.Get("Content-Encoding") != "":
		_, err := io.Copy(io.Discard, body) // for the meter
		x.complete = err == nil
		x.Outcome, x.Error = Failed, "the provider has answered with "+kind+", and not with the stream that was asked for"
		x.endStream(x.endpoint.RefuseInStream(dialect.Refusal{Status: http.StatusBadGateway, Message: x.Error, ID: x.ID}))
	case !x.copy(body, response):
		panic(http.ErrAbortHandler) // closes the connection, so that the client sees that the answer is not complete
	}
}

// endStream writes the last events of a stream that has begun.
func (x *exchange) endStream(events []byte) {
	x.extendWriteDeadline()
	x.write(events, false)
}
