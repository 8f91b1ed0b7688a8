package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// dialects are calls of streams, what the last visible piece of their answer has, and what ends them.
var dialects = []struct{ name, path, body, last, end string }{
	{"chat", chat, fmt.Sprintf(chatOf, "o5", ""), `"content":"the"`, "[DONE]"},
	{"chat that asks for usage", chat, fmt.Sprintf(chatOf, "o5", `,"stream_options":{"include_usage":true}`), `"content":"the"`, "[DONE]"},
	{"messages", messages, `{"model":"claude-6","stream":true,"max_tokens":64000,"messages":[{"role":"user","content":"Think"}]}`, `"text":"the"`, `"message_stop"`},
	{"responses", responses, `{"model":"o5","stream":true,"input":"Think"}`, `"delta":"the"`, `"response.completed"`},
	{"Gemini", generateStream, `{"contents":[{"parts":[{"text":"Think"}]}]}`, `"text":"the"`, `"finishReason"`},
	{"Ollama", "/ollama/api/chat", `{"model":"o5","messages":[{"role":"user","content":"Think"}]}`, `"content":"the"`, `"done":true`},
}

// withOllama is budgeted with one more provider.
var withOllama = strings.Replace(budgeted, "defaults:", "  ollama: {base_url: MOCK}\ndefaults:", 1)

// A client that leaves at the last token, before the usage comes, pays for what was used: the gateway
// reads on. Once, 80 of 80 such streams cost $0.21 of $104.
func TestLeavingAtTheLastTokenIsNotFree(t *testing.T) {
	const tokens = 5_000
	for i, c := range dialects {
		streams := testkit.Rounds(2, 8)
		if i == 0 {
			streams = testkit.Rounds(16, 80)
		}
		t.Run(c.name, func(t *testing.T) {
			r := newRigBefore(t, withOllama+"server: {read_on: 1m}\n", pausing{c.last, mockprovider.New(mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
				return mockprovider.Reply{Reasoning: tokens, Output: 1}
			}})})
			var all sync.WaitGroup
			for range streams {
				all.Go(func() { r.leaveAfter(t, c.last, c.path, c.body, "leaver") })
			}
			all.Wait()
			if got := r.charged(t, "leaver"); got < streams*tokens {
				t.Errorf("%d tokens were used, and %d are charged", streams*tokens, got)
			}
		})
	}
}

// pausing is a provider that makes a pause behind the last token of a stream. The client is gone when
// it goes on.
type pausing struct {
	last     string // what the event of the token has
	provider http.Handler
}

func (p pausing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := httptest.NewRecorder()
	p.provider.ServeHTTP(all, r)
	stream := all.Body.String()
	end := strings.Index(stream, p.last)
	end += strings.IndexByte(stream[end:], '\n') + 1
	w.Header().Set("Content-Type", all.Header().Get("Content-Type"))
	io.WriteString(w, stream[:end]+"\n")
	http.NewResponseController(w).Flush()
	time.Sleep(100 * time.Millisecond)
	io.WriteString(w, strings.TrimPrefix(stream[end:], "\n"))
}

// A client leaves, and the usage does not come while the gateway reads on: the call is charged the most that it
// can have used.
func TestLeavingCostsWhatTheRequestAllows(t *testing.T) {
	r := newRig(t, budgeted+"server: {read_on: 1ms}\n", mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Reasoning: 60_000, Output: 10, Fault: mockprovider.FaultStall, After: 6}
	}})
	const body = `{"model":"claude-6","stream":true,"max_tokens":64000,"messages":[{"role":"user","content":"Think"}]}`
	for range 5 {
		r.leaveAfter(t, "message_start", messages, body, "leaver")
	}
	if got := r.charged(t, "leaver"); got < 5*60_000 {
		t.Errorf("%d tokens are charged for 5 streams of 60,000", got)
	}
}

// A client that leaves before there is any answer is charged in the same way.
func TestLeavingBeforeTheAnswerIsNotFree(t *testing.T) {
	got := make(chan struct{})
	r := newRigBefore(t, budgeted+"server: {read_on: 1ms}\n", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // the server notices that the gateway hangs up only after that
		close(got)
		<-r.Context().Done()
	}))
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-got
		leave()
	}()
	body := strings.NewReader(`{"model":"claude-6","max_tokens":64000,"messages":[{"role":"user","content":"Think"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+messages, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(fieldProject, "leaver")
	if response, err := http.DefaultClient.Do(req); err == nil {
		response.Body.Close()
		t.Fatal("there is an answer")
	}
	if got := r.charged(t, "leaver"); got < 64_000 {
		t.Errorf("%d tokens are charged for a call that may use 64,000", got)
	}
}

// A stream that has ended has ended, although the client closes the connection at its last event and
// the provider has not: many clients do.
func TestStreamsThatHaveEndedAreNotLeft(t *testing.T) {
	for _, c := range dialects {
		t.Run(c.name, func(t *testing.T) {
			provider := mockprovider.New(mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return mockprovider.Reply{Output: 3} }})
			r := newRigBefore(t, withOllama+"server: {read_on: 1ms}\n", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				provider.ServeHTTP(w, r)
				http.NewResponseController(w).Flush()
				<-r.Context().Done() // the body goes on until the gateway hangs up
			}))
			r.leaveAfter(t, c.end, c.path, c.body, "leaver")
			if last := r.last(t); last.Outcome != Passed || !last.Exact || last.Output != 3 {
				t.Errorf("it is %s, with %d tokens of output, exact %v", last.Outcome, last.Output, last.Exact)
			}
		})
	}
}

// A client that leaves before the last event has left.
func TestStreamsThatHaveNotEndedAreLeft(t *testing.T) {
	r := newRig(t, budgeted+"server: {read_on: 1ms}\n", thinking)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	bufio.NewScanner(open(t, ctx, r, chat, fmt.Sprintf(chatOf, "o5", ""), "leaver").Body).Scan()
	leave()
	if last := r.last(t); last.Outcome != Left {
		t.Errorf("it is %s", last.Outcome)
	}
}
