package llmhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
)

// wire is a call that is made without an SDK.
type wire struct{ name, url, body string }

// streams are calls whose answers are streamed, one for each API.
var streams = []wire{
	{"chat", "https://api.openai.com/v1/chat/completions", `{"model":"some-model","stream":true,"max_tokens":500,"messages":[{"role":"user","content":"Hi"}]}`},
	{"responses", "https://api.openai.com/v1/responses", `{"model":"some-model","stream":true,"max_output_tokens":500,"input":"Hi"}`},
	{"completions", "https://api.openai.com/v1/completions", `{"model":"some-model","stream":true,"max_tokens":500,"prompt":"Hi"}`},
	{"messages", "https://api.anthropic.com/v1/messages", `{"model":"some-model","stream":true,"max_tokens":500,"messages":[{"role":"user","content":"Hi"}]}`},
	{"gemini", "https://generativelanguage.googleapis.com/v1beta/models/some-model:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":500}}`},
	{"gemini-array", "https://generativelanguage.googleapis.com/v1beta/models/some-model:streamGenerateContent", `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":500}}`},
	{"ollama-chat", "http://localhost:11434/api/chat", `{"model":"some-model","messages":[{"role":"user","content":"Hi"}],"options":{"num_predict":500}}`},
	{"ollama-generate", "http://localhost:11434/api/generate", `{"model":"some-model","prompt":"Hi","options":{"num_predict":500}}`},
}

// whole is a call whose answer is not streamed.
var whole = wire{"whole", "https://api.openai.com/v1/responses", `{"model":"some-model","max_output_tokens":500,"input":"Hi"}`}

// send sends the call.
func (x wire) send(ctx context.Context, client *http.Client) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", x.url, strings.NewReader(x.body))
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// open sends the call, and reads a little of the answer.
func (x wire) open(ctx context.Context, t *testing.T, client *http.Client) *http.Response {
	t.Helper()
	response, err := x.send(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	return response
}

// read sends the call, and reads all of the answer.
func (x wire) read(ctx context.Context, client *http.Client) (status int, err error) {
	response, err := x.send(ctx, client)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// However a stream ends, its call is settled, its concurrency slot is free, and the
// connection to the provider is closed.
func TestStreamsEnd(t *testing.T) {
	stalls := mockprovider.Reply{Fault: mockprovider.FaultStall, After: 40, Output: 100}
	for _, c := range []struct {
		name  string
		reply mockprovider.Reply
		end   func(*testing.T, *http.Response, context.CancelFunc)
	}{
		{"closed", stalls, func(t *testing.T, r *http.Response, _ context.CancelFunc) { r.Body.Close() }},
		{"closed-twice", stalls, func(t *testing.T, r *http.Response, _ context.CancelFunc) {
			r.Body.Close()
			r.Body.Close()
			if n, err := r.Body.Read(make([]byte, 1)); err == nil {
				t.Errorf("%d bytes were read after the end", n)
			}
		}},
		{"closed-while-read", stalls, func(t *testing.T, r *http.Response, _ context.CancelFunc) {
			done := make(chan error)
			go func() {
				_, err := io.Copy(io.Discard, r.Body)
				done <- err
			}()
			synctest.Wait()
			r.Body.Close()
			if err := <-done; err == nil {
				t.Error("the read has found an end")
			}
		}},
		{"cancelled", stalls, func(t *testing.T, r *http.Response, cancel context.CancelFunc) { cancel() }},
		{"cancelled-while-read", stalls, func(t *testing.T, r *http.Response, cancel context.CancelFunc) {
			done := make(chan error)
			go func() {
				_, err := io.Copy(io.Discard, r.Body)
				done <- err
			}()
			synctest.Wait()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}},
		{"timed-out", stalls, func(t *testing.T, r *http.Response, _ context.CancelFunc) {
			if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}},
		{"abandoned", stalls, func(*testing.T, *http.Response, context.CancelFunc) { time.Sleep(2 * time.Hour) }},
		{"reset", mockprovider.Reply{Fault: mockprovider.FaultReset, After: 40, Output: 100}, func(t *testing.T, r *http.Response, _ context.CancelFunc) {
			if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
		}},
		{"broken-off", mockprovider.Reply{Fault: mockprovider.FaultEnd, After: 40, Output: 100}, func(t *testing.T, r *http.Response, _ context.CancelFunc) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
		}},
	} {
		for _, x := range streams {
			t.Run(c.name+"/"+x.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := llmhttptest.New(t, llmhttptest.Script(c.reply), ratelimit.ModelQuota{MaxTPM: 1_000_000, MaxConcurrent: 1}, llmhttp.ChargeSeen())
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					response := x.open(ctx, t, w.Client)
					if n := w.Limiter.Stats(model).Concurrent; n != 1 {
						t.Errorf("%d concurrency slots are taken while it streams", n)
					}
					c.end(t, response, cancel)
					synctest.Wait()
					used, sent := w.Ended(), w.Server.Totals()[model]
					if used.Output < 1 || used.Output > sent.Output {
						t.Errorf("%+v is settled; the provider has sent %+v", used, sent)
					}
					if n := w.Server.Active(); n != 0 {
						t.Errorf("the provider still answers %d calls", n)
					}
				})
			})
		}
	}
}

// A stream of which the caller reads all but the end of the body is settled exactly.
func TestEndUnread(t *testing.T) {
	for _, x := range streams {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := llmhttptest.New(t, llmhttptest.Script(mockprovider.Reply{Output: 20}), ample)
				response, err := x.send(t.Context(), w.Client)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(response.Body)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response, err = x.send(t.Context(), w.Client); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(response.Body, make([]byte, len(text))); err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				synctest.Wait()
				w.Settled()
			})
		})
	}
}

// A call that gets no answer is charged what was reserved, if it was sent.
func TestNoAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply mockprovider.Reply
	}{
		{"reset", mockprovider.Reply{Fault: mockprovider.FaultReset}},
		{"timeout", mockprovider.Reply{Fault: mockprovider.FaultStall}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := llmhttptest.New(t, llmhttptest.Script(c.reply), ample)
				w.Client.Timeout = time.Minute / 2
				if status, err := whole.read(t.Context(), w.Client); err == nil {
					t.Errorf("%d", status)
				}
				synctest.Wait()
				w.Ended()
				if s := w.Limiter.Stats(model); s.RPM != 1 || s.TPM < 500 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A call that never reaches the provider costs nothing.
func TestNeverSent(t *testing.T) {
	broken := errors.New("no route to host")
	for _, c := range []struct {
		name string
		dial func(context.Context) error
		is   error
	}{
		{"dial", func(context.Context) error { return broken }, broken},
		{"dial-timeout", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := llmhttptest.New(t, mockprovider.Config{}, ample)
				w.Direct.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, c.dial(ctx) }
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := whole.read(ctx, w.Client); !errors.Is(err, c.is) {
					t.Error(err)
				}
				synctest.Wait()
				w.Unused()
				if n := w.Events.Count(event.Cancelled); n != 1 {
					t.Errorf("%d calls were cancelled", n)
				}
			})
		})
	}
}

// A transport of another type has sent nothing if it has not begun to read the body.
func TestTransportsOfOtherTypes(t *testing.T) {
	broken := errors.New("no route to host")
	for _, c := range []struct {
		name string
		base tripper
		kind event.Kind
	}{
		{"before", func(*http.Request) (*http.Response, error) { return nil, broken }, event.Cancelled},
		{"after", func(r *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, r.Body)
			return nil, broken
		}, event.Settled},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := &llmhttptest.Recorder{}
			limiter := llmhttptest.NewLimiter(t, ample, events)
			client := &http.Client{Transport: llmhttp.New(c.base, limiter)}
			if _, err := whole.read(t.Context(), client); !errors.Is(err, broken) {
				t.Error(err)
			}
			if s := limiter.Stats(model); events.Count(c.kind) != 1 || s.Concurrent != 0 || (s.TPM == 0) != (c.kind == event.Cancelled) {
				t.Errorf("%+v, %+v", events.All(), s)
			}
		})
	}
}

// tripper is an [http.RoundTripper] that calls a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request whose body cannot be read is not sent, and costs nothing.
func TestBodyBroken(t *testing.T) {
	broken := errors.New("the file is gone")
	w := llmhttptest.New(t, mockprovider.Config{}, ample)
	req, err := http.NewRequestWithContext(t.Context(), "POST", whole.url, io.MultiReader(strings.NewReader(whole.body[:10]), failing{broken}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Client.Do(req); !errors.Is(err, broken) {
		t.Error(err)
	}
	w.Unused()
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A caller that stops waiting is charged nothing, and the provider gets no request.
func TestGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := llmhttptest.New(t, mockprovider.Config{}, ratelimit.ModelQuota{MaxTPM: 1_000_000, MaxConcurrent: 1})
		first := streams[0].open(t.Context(), t, w.Client)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := whole.read(ctx, w.Client)
			done <- err
		}()
		synctest.Wait()
		if n := w.Server.Totals()[model].Requests; n != 1 {
			t.Errorf("%d calls have reached the provider, which may have one at a time", n)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		io.Copy(io.Discard, first.Body)
		first.Body.Close()
		synctest.Wait()
		w.Settled()
		if status, err := whole.read(t.Context(), w.Client); status != 200 || err != nil {
			t.Error(status, err)
		}
	})
}

// The next call gets the concurrency slot of a stream as soon as the stream ends, however
// long that takes.
func TestOneAtATime(t *testing.T) {
	for delay, calls := range map[time.Duration]int{time.Second: 10, 25 * time.Minute: 3} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { oneAtATime(t, delay, calls) })
		})
	}
}

func oneAtATime(t *testing.T, delay time.Duration, calls int) {
	var w *llmhttptest.World
	var most atomic.Int64
	w = llmhttptest.New(t, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		most.Store(max(most.Load(), int64(w.Server.Active())))
		return mockprovider.Reply{Delay: delay}
	}}, ratelimit.ModelQuota{MaxTPM: 1_000_000, MaxConcurrent: 1}, llmhttp.MaxWait(30*24*time.Hour))
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() {
			if status, err := streams[i%len(streams)].read(t.Context(), w.Client); status != 200 || err != nil {
				t.Error(status, err)
			}
		})
	}
	group.Wait()
	synctest.Wait()
	if most.Load() != 1 {
		t.Errorf("%d streams at a time", most.Load())
	}
	w.Settled()
}

// Connections are reused as much as without the transport.
func TestConnectionsAreReused(t *testing.T) {
	dials := func(t *testing.T, x wire, limited bool) (n int) {
		synctest.Test(t, func(t *testing.T) {
			w := llmhttptest.New(t, mockprovider.Config{}, ample)
			dial := w.Direct.DialContext
			count := func(ctx context.Context, network, addr string) (net.Conn, error) {
				n++
				return dial(ctx, network, addr)
			}
			w.Direct.DialContext, w.Direct.DialTLSContext = count, count
			client := &http.Client{Transport: w.Direct}
			if limited {
				client = w.Client
			}
			for range 5 {
				if _, err := x.read(t.Context(), client); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		})
		return n
	}
	for _, x := range append(streams, whole) {
		t.Run(x.name, func(t *testing.T) {
			if without, with := dials(t, x, false), dials(t, x, true); without != 1 || with != 1 {
				t.Errorf("%d connections without the transport, %d with it", without, with)
			}
		})
	}
}

// A call that the provider has refused counts as a request that used no tokens.
func TestRefusedIsCounted(t *testing.T) {
	w := llmhttptest.New(t, llmhttptest.Script(mockprovider.Reply{Status: 400}), ample)
	if status, err := whole.read(t.Context(), w.Client); status != 400 || err != nil {
		t.Error(status, err)
	}
	w.Settled()
	if s := w.Limiter.Stats(model); s.RPM != 1 || s.TPM != 0 {
		t.Errorf("%+v", s)
	}
}

// A call whose response does not report usage is charged what was reserved.
func TestResponseWithoutUsage(t *testing.T) {
	silent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"ok":true}`) })
	limiter := llmhttptest.NewLimiter(t, ample, nil)
	client := &http.Client{Transport: llmhttp.New(handled{silent}, limiter)}
	if status, err := whole.read(t.Context(), client); status != 200 || err != nil {
		t.Error(status, err)
	}
	if s := limiter.Stats(model); s.RPM != 1 || s.TPM < 500 || s.Concurrent != 0 {
		t.Errorf("%+v", s)
	}
}

// handled is a transport that calls a handler, without a network.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	read, write := io.Pipe()
	answer := &http.Response{Status: "200 OK", StatusCode: 200, Header: http.Header{}, Body: read, Request: r, ContentLength: -1}
	go func() {
		io.Copy(io.Discard, r.Body)
		h.ServeHTTP(writer{answer.Header, write}, r)
		write.Close()
	}()
	return answer, nil
}

type writer struct {
	header http.Header
	io.Writer
}

func (w writer) Header() http.Header { return w.header }
func (w writer) WriteHeader(int)     {}

// transportFunc is a transport that a program has made itself.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport that panics, or returns no body or nothing at all, leaves no slot behind, and its call is
// charged once.
func TestTransportsThatFail(t *testing.T) {
	answer := func(status int) transportFunc {
		return func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}}, nil
		}
	}
	for name, c := range map[string]struct {
		base               transportFunc
		settled, cancelled int
	}{
		"panics":         {func(*http.Request) (*http.Response, error) { panic("not connected") }, 0, 1},
		"panics-later":   {func(r *http.Request) (*http.Response, error) { io.Copy(io.Discard, r.Body); panic("no answer") }, 1, 0},
		"no-body":        {answer(200), 1, 0},
		"no-body-of-429": {answer(429), 1, 0},
		"nothing":        {func(*http.Request) (*http.Response, error) { return nil, nil }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			events := &llmhttptest.Recorder{}
			limiter := llmhttptest.NewLimiter(t, ample, events)
			client := &http.Client{Transport: llmhttp.New(c.base, limiter)}
			func() {
				defer func() {
					if failure := recover(); failure != nil && !strings.HasPrefix(name, "panics") {
						t.Errorf("it panics: %v", failure)
					}
				}()
				wire{"", "http://127.0.0.1/v1/chat/completions", streams[0].body}.read(t.Context(), client)
			}()
			if s := limiter.Stats(model); s.Concurrent != 0 {
				t.Errorf("%d slots are taken", s.Concurrent)
			}
			if settled, cancelled := events.Count(event.Settled), events.Count(event.Cancelled); settled != c.settled || cancelled != c.cancelled {
				t.Errorf("%d settled, %d cancelled; want %d and %d", settled, cancelled, c.settled, c.cancelled)
			}
		})
	}
}
