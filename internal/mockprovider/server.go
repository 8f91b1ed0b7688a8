package mockprovider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Config configures a server. The zero Config is a server that answers every call with a short
// text, unless a header of the call says otherwise.
type Config struct {
	// Script returns the reply to a call: [FromHeader] by default. Goroutines call it concurrently.
	Script func(Call) Reply

	Limits map[string]Limit // the limits of models, by name; other models have no limit
	Delay  time.Duration    // the Delay of replies that have none
	Now    func() time.Time // the clock; time.Now by default

	// Bill returns what the APIs for administrators say that is billed; nil: there are no such APIs. Their key is "admin".
	Bill func() []BillLine
}

// Server is a handler that answers as the providers do. Make one with [New].
type Server struct {
	config  Config
	limits  map[string]*modelLimits
	ledger  ledger
	active  atomic.Int64
	batches batches

	background background
	stores     vectorStores
}

// New returns a server.
func New(config Config) *Server {
	s := &Server{config: config, limits: map[string]*modelLimits{}}
	if s.config.Script == nil {
		s.config.Script = FromHeader
	}
	if s.config.Now == nil {
		s.config.Now = time.Now
	}
	for model, limit := range config.Limits {
		s.limits[model] = newModelLimits(limit)
	}
	s.ledger.models, s.ledger.calls = map[string]Totals{}, map[string]int{}
	return s
}

// Active returns how many calls are being answered.
func (s *Server) Active() int { return int(s.active.Load()) }

// maxBody is the largest body of a request, in bytes.
const maxBody = 64 << 20

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.active.Add(1)
	defer s.active.Add(-1)
	e := &exchange{server: s, w: w, r: r, now: s.config.Now()}
	if e.countsTokens() || e.listsModels() || e.servesBills() || e.fetches() || e.servesVectorStores() || e.servesBatches() || e.servesBackground() {
		return
	}
	if failed := e.read(); failed != nil {
		e.fail(*failed, limitStates{})
		return
	}
	e.answer()
}

// exchange is one request and its answer.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	now    time.Time
	format format
	call   Call
	reply  Reply
}

// read reads the call.
func (e *exchange) read() *failure {
	way, ok := routeOf(e.r.Method, e.r.URL)
	if !ok {
		return &failure{status: http.StatusNotFound, message: "there is nothing at " + e.r.URL.Path}
	}
	e.format = way.format
	e.call = Call{
		API: way.api, Provider: providerAt(e.r.Host, way.owner), Model: way.model, Stream: way.stream, Answers: 1,
		Path: e.r.URL.Path, Header: e.r.Header, array: way.array, cacheWrites: way.cacheWrites,
	}
	if e.r.Method != http.MethodPost && e.r.Method != http.MethodPatch {
		return &failure{status: http.StatusMethodNotAllowed, message: "calls of models are POST requests"}
	}
	var err error
	if e.call.Body, err = io.ReadAll(http.MaxBytesReader(e.w, e.r.Body, maxBody)); err != nil {
		return &failure{status: http.StatusRequestEntityTooLarge, message: err.Error()}
	}
	if e.call.isForm() {
		err = e.call.readForm()
	} else {
		err = json.Unmarshal(e.call.Body, &e.call.fields)
	}
	if err != nil {
		return &failure{status: http.StatusBadRequest, message: "the body is neither a JSON object nor a form: " + err.Error()}
	}
	e.call.Model = cmp.Or(e.call.Model, e.call.fields.text("model"))
	if f, ok := e.format.(modelFormat); ok && e.call.Model == "" {
		e.call.Model = f.model(&e.call)
	}
	if e.call.Model == "" {
		return &failure{status: http.StatusBadRequest, message: "you must provide a model"}
	}
	e.call.readStored(&e.server.batches)
	if err = e.format.read(&e.call); err != nil {
		return &failure{status: http.StatusBadRequest, message: err.Error()}
	}
	return nil
}

// answer sends the reply of the script, if the limits let the call pass.
func (e *exchange) answer() {
	s, c := e.server, &e.call
	c.Number = s.ledger.number(c.Model)
	e.reply = s.config.Script(*c)
	if e.reply.Status != 0 {
		message := cmp.Or(e.reply.Text, fmt.Sprintf("the mock was told to answer with %d", e.reply.Status))
		e.fail(failure{status: e.reply.Status, code: e.reply.Code, message: message, retry: e.reply.RetryAfter}, e.scriptedLimits())
		return
	}
	a := newAnswer(c, &e.reply, e.now)
	if e.reply.Fault == FaultError && !c.Stream {
		e.fail(a.failure(), limitStates{})
		return
	}
	var at limitStates
	if l := s.limits[c.Model]; l != nil {
		var wait time.Duration
		wait, at = l.take(a.countedInput(), a.usage.output, e.now)
		if wait > 0 {
			e.fail(failure{status: http.StatusTooManyRequests, message: "Rate limit reached for " + c.Model, retry: wait}, at)
			return
		}
	}
	a.useTools()
	if c.API == dialect.Responses {
		c.units[llm.ByteDays] = s.stores.search(c.fields, e.now)
	}
	units := c.units
	if _, later := e.format.(billedLater); later {
		units = llm.Units{}
	}
	s.ledger.add(c.Model, Totals{Requests: 1, Input: a.usage.input, Cached: a.usage.cached, CacheWrite: a.usage.cacheWrite, Units: units})
	e.headers(at, false)
	switch {
	case c.Stream:
		if c.isBackground() {
			e.keepLater(&later{answer: a, format: e.format.(laterFormat)})
		}
		e.stream(a)
	case c.isBackground():
		e.queue(a)
	default:
		e.whole(a)
	}
}

// scriptedLimits returns states of limits that fit a 429 of the script.
func (e *exchange) scriptedLimits() limitStates {
	if e.reply.Status != http.StatusTooManyRequests {
		return limitStates{}
	}
	return limitStates{
		requests: limitState{limit: 60, remaining: 0, reset: max(e.reply.RetryAfter, time.Second)},
		tokens:   limitState{limit: 100_000, remaining: 100_000},
	}
}

// provider returns the provider whose headers and errors the answer has.
func (e *exchange) provider() llm.Provider {
	return cmp.Or(e.reply.As, e.call.Provider, dialect.OpenAI)
}

func (e *exchange) headers(at limitStates, failed bool) {
	h := e.w.Header()
	if write := imitationOf(e.provider()).limits; write != nil {
		write(h, at, limitTime{e.now, failed})
	}
	h.Set("X-Request-Id", fmt.Sprintf("req_mock%d", e.call.Number))
	h.Set("Request-Id", h.Get("X-Request-Id"))
	maps.Copy(h, e.reply.Header)
}

// fail answers with an error.
func (e *exchange) fail(f failure, at limitStates) {
	f.model = e.call.Model
	if f.model != "" {
		e.server.ledger.add(f.model, Totals{Refused: 1})
	}
	own := imitationOf(e.provider())
	if f.retry > 0 && own.retryHeader != nil {
		own.retryHeader(e.w.Header(), f.retry)
	}
	e.headers(at, true)
	if own.errorHeader != nil {
		own.errorHeader(e.w.Header(), f)
	}
	e.json(f.status, encode(f.body(e.provider())))
}

// whole sends an answer in one piece.
func (e *exchange) whole(a *answer) {
	if !e.waitDelay() {
		return
	}
	body := encode(e.format.whole(a))
	if f, ok := e.format.(headerFormat); ok {
		f.headers(e.w.Header(), a.usage)
	}
	switch {
	case e.reply.Fault == FaultStall:
		<-e.r.Context().Done()
		return
	case e.reply.Fault == FaultReset && e.reply.After == 0:
		panic(http.ErrAbortHandler)
	}
	e.server.ledger.add(e.call.Model, Totals{Output: a.usage.output, Reasoning: a.usage.reasoning})
	if e.reply.Fault == FaultReset {
		e.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		e.json(http.StatusOK, body[:len(body)/2])
		http.NewResponseController(e.w).Flush()
		panic(http.ErrAbortHandler)
	}
	if f, ok := e.format.(binaryFormat); ok {
		kind, content := f.content()
		e.w.Header().Set("Content-Type", kind)
		e.w.Write(content)
		return
	}
	e.json(http.StatusOK, body)
}

func (e *exchange) json(status int, body []byte) {
	e.w.Header().Set("Content-Type", "application/json")
	e.w.WriteHeader(status)
	e.w.Write(body)
}

// waitDelay waits for the delay of the reply, and reports whether the client is still there.
func (e *exchange) waitDelay() bool {
	delay := cmp.Or(e.reply.Delay, e.server.config.Delay)
	if delay == 0 {
		return e.r.Context().Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.r.Context().Done():
		return false
	}
}
