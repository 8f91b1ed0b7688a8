package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// The prices of every model of these tests, in nanodollars a token. The gateway has the same prices in its
// configuration, in dollars a million tokens: see doorPrices.
const (
	nanosInput      = 3_000
	nanosCached     = 300
	nanosWrite      = 3_750
	nanosWriteHour  = 6_000
	nanosOutput     = 15_000
	nanosDollar     = 1_000_000_000
	tokensOfMessage = 4 // what a provider adds to each message of a prompt
	tokensOfPrompt  = 3 // what a provider adds to each prompt
)

const doorPrices = `
prices:
  own-model: {input: 3, cached_input: 0.30, cache_write: 3.75, cache_write_hour: 6, output: 15, priority: 200%, max_output: 50_000}
  "*": {input: 3, cached_input: 0.30, cache_write: 3.75, cache_write_hour: 6, output: 15, priority: 200%}
`

// A door is the provider's side of the tests of hard limits. It adds up what the mock has really used for each
// budget, in whole nanodollars and tokens, by prices of its own, and knows nothing of what the gateway has counted.
type door struct {
	*mockprovider.Server
	url string

	mu    sync.Mutex
	plans []*plan
	gate  chan struct{}   // whole answers wait until it is closed
	held  int             // calls that wait, or have waited, for the gate
	seen  func(calls int) // is called at each call, with the number of calls since it was set; nil: nobody is
	calls int
}

// tab is what the calls on one budget have used at the provider.
type tab struct {
	passed  int
	nanos   int64
	charges []charge
}

// charge is tokens that were used at a moment.
type charge struct {
	at     time.Time
	tokens int64
}

// mostTokens returns the most tokens that were used within a minute.
func (b *tab) mostTokens() (most int64) {
	var sum int64
	first := 0
	for _, c := range b.charges {
		sum += c.tokens
		for c.at.Sub(b.charges[first].at) >= almostMinute {
			sum -= b.charges[first].tokens
			first++
		}
		most = max(most, sum)
	}
	return most
}

func newDoor(t *testing.T) *door {
	d := &door{gate: opened}
	d.Server = mockprovider.New(mockprovider.Config{Script: d.answer})
	listening := httptest.NewServer(d)
	t.Cleanup(listening.Close)
	d.url = listening.URL
	return d
}

// add remembers what a call is going to do.
func (d *door) add(p *plan) *plan {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.id, p.read = len(d.plans), make(chan struct{}, 1)
	p.came, p.comes = context.WithCancel(context.Background())
	d.plans = append(d.plans, p)
	return p
}

// planOf returns the plan of the call that a header names.
func (d *door) planOf(h http.Header) *plan {
	id, err := strconv.Atoi(h.Get("X-Plan"))
	if err != nil {
		panic("the gateway has not passed on the header X-Plan")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.plans[id]
}

// hold lets whole answers wait until the returned function is called.
func (d *door) hold() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gate := make(chan struct{})
	d.gate, d.held = gate, 0
	return sync.OnceFunc(func() {
		close(gate)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gate = opened
	})
}

// holding returns how many calls have come to the gate.
func (d *door) holding() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p := d.planOf(r.Header)
	p.ctx = r.Context()
	p.comes()
	gate := d.enter()
	select {
	case <-gate:
	case <-r.Context().Done(): // the provider answers all the same, and counts it
	}
	d.Server.ServeHTTP(w, r)
}

// onCall has a function called at each call from now on, with the number of calls since then.
func (d *door) onCall(seen func(calls int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen, d.calls = seen, 0
}

// enter counts a call that has come, and returns the gate that it has to wait for.
func (d *door) enter() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held++
	d.calls++
	if d.seen != nil {
		d.seen(d.calls)
	}
	return d.gate
}

// answer is the mock's script. A whole answer is counted here, before anybody can have seen a byte of it, and so is a
// stream whose tokens are hidden. Other streams are counted as they go.
func (d *door) answer(c mockprovider.Call) mockprovider.Reply {
	p := d.planOf(c.Header)
	most := c.MaxOutput
	if most == 0 {
		most = p.budget.dialect.published
	}
	length := max(most*p.permille/1000, 1)
	r := mockprovider.Reply{
		Input: p.promptTokens(c.Body), Token: p.token, Chunk: p.chunk, As: p.budget.dialect.as,
		Fault: p.fault, After: p.after,
	}
	r.Cached = r.Input * p.cached / 1000
	if p.budget.dialect.writesCaches {
		r.CacheWrite = (r.Input - r.Cached) * p.written / 1000
		r.Parts.CacheWriteHour = r.CacheWrite / 2
	}
	input := int64(r.Input-r.Cached-r.CacheWrite)*nanosInput + int64(r.Cached)*nanosCached +
		int64(r.CacheWrite-r.Parts.CacheWriteHour)*nanosWrite + int64(r.Parts.CacheWriteHour)*nanosWriteHour
	if p.priority {
		r.Parts.Tier = "priority"
	}
	if c.Stream && p.shown {
		d.count(p, 1, r.Input, input)
		r.Output = length
		r.Event = func(tokens int) bool { return d.follow(p, tokens) }
		return r
	}
	r.Output = min(length, shownTokens)
	r.Hidden = length - r.Output
	output := length * c.Answers
	d.count(p, 1, r.Input+output, input+int64(output)*nanosOutput)
	return r
}

// shownTokens is how many tokens of an answer have a text, if the others are hidden.
const shownTokens = 12

// follow counts the tokens of an event of a stream that is about to be sent. It waits until the client has seen the
// event before: a model writes more slowly than a network carries.
func (d *door) follow(p *plan, tokens int) bool {
	if tokens == 0 {
		return true
	}
	if p.begun {
		select {
		case <-p.read:
		case <-p.ctx.Done():
			return false
		}
	}
	p.begun = true
	select { // what the client has read before this event
	case <-p.read:
	default:
	}
	d.count(p, 0, tokens, int64(tokens)*nanosOutput)
	return true
}

// count adds what a call has used to its budget. The priority tier costs twice as much.
func (d *door) count(p *plan, calls, tokens int, nanos int64) {
	if p.priority {
		nanos *= 2
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b := &p.budget.tab
	b.passed += calls
	b.nanos += nanos
	b.charges = append(b.charges, charge{time.Now(), int64(tokens)})
}

// tab returns what a budget's calls have used.
func (d *door) tab(b *budget) tab {
	d.mu.Lock()
	defer d.mu.Unlock()
	return b.tab
}

// plan is what a call asks for, and what the provider makes of it.
type plan struct {
	id     int
	budget *budget

	text    string
	most    int // max_tokens, by the name that the dialect has for it; 0: the call has none
	answers int
	stream  bool

	priority bool // the call asks for the priority tier

	tokens          func(text string) int // the provider's tokenizer
	permille        int                   // the length of each answer, in thousandths of the most that the call allows
	cached, written int                   // in thousandths of the prompt and of the rest
	shown           bool                  // the text of a stream has all of its tokens
	token           string                // the text of each token
	chunk           int                   // tokens in an event
	leaves          leaving
	fault           mockprovider.Fault
	after           int

	ctx   context.Context // the request's at the provider
	came  context.Context // ends when the call has come to the provider
	comes func()
	read  chan struct{} // has a value if the client has read something
	begun bool          // an event with tokens was sent
}

// leaving is when a client leaves.
type leaving int

const (
	stays  leaving = iota
	midway         // when the answer has begun
	atOnce         // when the request is sent
)

// promptTokens returns how many tokens the provider's tokenizer finds in the texts of a body.
func (p *plan) promptTokens(body []byte) int {
	var value map[string]any
	if err := json.Unmarshal(body, &value); err != nil {
		return 0
	}
	n := tokensOfPrompt
	for _, name := range []string{"messages", "contents", "input", "prompt"} {
		n += p.tokensIn(value[name])
	}
	return n
}

func (p *plan) tokensIn(value any) (n int) {
	switch v := value.(type) {
	case string:
		return p.tokens(v)
	case []any:
		for _, each := range v {
			n += p.tokensIn(each)
		}
	case map[string]any:
		if _, ok := v["role"]; ok {
			n += tokensOfMessage
		}
		for _, name := range []string{"content", "parts", "text"} {
			n += p.tokensIn(v[name])
		}
	}
	return n
}

// tokenizers are the tokenizers that a provider may have. None makes more tokens than bytes.
var tokenizers = []func(string) int{
	func(text string) int { return len(text) },
	utf8.RuneCountInString,
	mockprovider.Count,
}
