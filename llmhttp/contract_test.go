package llmhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
)

// Answers that report 7 tokens of input and 5 of output. The stream reports them in a chunk
// that a caller who has not asked for usage does not see.
const (
	wholeAnswer = `{"object":"response","status":"completed","usage":{"input_tokens":7,"output_tokens":5,"total_tokens":12}}`
	streamBegin = `data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}` + "\n\n"
	streamUsage = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}` + "\n\n"
	streamEnd   = "data: [DONE]\n\n"
)

// answered returns a response as a transport does.
func answered(status int, header http.Header, body io.ReadCloser) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: body, ContentLength: -1}
}

// answering returns a transport that reads each request and always gives the same answer.
func answering(status int, header http.Header, text string) tripper {
	return func(r *http.Request) (*http.Response, error) {
		defer r.Body.Close()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		return answered(status, header.Clone(), io.NopCloser(strings.NewReader(text))), nil
	}
}

// request returns the call as a request.
func (x wire) request(ctx context.Context, t *testing.T) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", x.url, strings.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// A call whose deadline its limits cannot meet is refused at once, and the error says why. Nobody knows when a
// call under way ends: a call that waits for that until its context ends gets an error that is a timeout, and
// no refusal of the limiter's.
func TestDeadlineWhileWaiting(t *testing.T) {
	for _, c := range []struct {
		name   string
		quota  ratelimit.ModelQuota
		limits string // that know when they let the call pass
	}{
		{"requests", ratelimit.ModelQuota{MaxRPM: 1}, "max_rpm"},
		{"tokens", ratelimit.ModelQuota{MaxTPM: 500}, "max_tpm"},
		{"calls at a time", ratelimit.ModelQuota{MaxConcurrent: 1}, ""},
	} {
		for _, timeout := range []string{"context", "client"} {
			t.Run(c.name+"/"+timeout, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := llmhttptest.New(t, llmhttptest.Script(mockprovider.Reply{Output: 400}), c.quota)
					first := streams[0].open(t.Context(), t, w.Client)
					defer first.Body.Close()
					ctx := t.Context()
					if timeout == "client" {
						w.Client.Timeout = 10 * time.Second
					} else {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
						defer cancel()
					}
					began := time.Now()
					if c.limits != "" {
						response, err := whole.send(ctx, w.Client)
						if err != nil {
							t.Fatal(err)
						}
						defer response.Body.Close()
						text, _ := io.ReadAll(response.Body)
						want := `the limit \"` + c.limits + `\" lets the call pass in 1m0s, and its deadline is in 10s`
						if response.StatusCode != 429 || response.Header.Get("X-Should-Retry") != "false" || !strings.Contains(string(text), want) || time.Since(began) != 0 {
							t.Errorf("after %v: %d %v %s", time.Since(began), response.StatusCode, response.Header, text)
						}
						return
					}
					status, err := whole.read(ctx, w.Client)
					var timeout *url.Error
					if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
						t.Errorf("%d, %v", status, err)
					}
					if took := time.Since(began); took != 10*time.Second {
						t.Errorf("it has waited for %v", took)
					}
					if n := w.Server.Totals()[model].Requests; n != 1 {
						t.Errorf("the provider has had %d calls", n)
					}
				})
			})
		}
	}
}

// A stream from which a chunk is hidden loses the Content-Length that the provider sent.
func TestHiddenChunkHasNoLength(t *testing.T) {
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		asked.Store(bytes.Contains(text, []byte("include_usage")))
		body := streamBegin + streamUsage + streamEnd
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		io.WriteString(w, body)
	}))
	defer server.Close()
	for _, c := range []struct {
		name   string
		option []llmhttp.Option
		body   string
		length int64
	}{
		{"hidden", nil, streamBegin + streamEnd, -1},
		{"left", []llmhttp.Option{llmhttp.LeaveStreams()}, streamBegin + streamUsage + streamEnd, int64(len(streamBegin + streamUsage + streamEnd))},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := &llmhttptest.Recorder{}
			client := &http.Client{Transport: llmhttp.New(server.Client().Transport, llmhttptest.NewLimiter(t, ample, events), c.option...)}
			response, err := wire{"", server.URL + "/v1/chat/completions", streams[0].body}.send(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if string(text) != c.body || err != nil {
				t.Errorf("%q, %v", text, err)
			}
			header := response.Header.Get("Content-Length")
			if response.ContentLength != c.length || (header == "") != (c.length < 0) {
				t.Errorf("its length is %d, and %q by its header; want %d", response.ContentLength, header, c.length)
			}
			if asked.Load() != (c.length < 0) {
				t.Errorf("asked for usage: %v", asked.Load())
			}
			events.Used(t, 1, 7, 5)
		})
	}
}

// endless is a context that never ends, although it has a Done channel. It counts the
// functions that wait for its end.
type endless struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *endless) Done() <-chan struct{} { return c.done }
func (c *endless) Value(any) any         { return nil } // unlike a context of the standard library

func (c *endless) AfterFunc(func()) (stop func() bool) {
	c.waiting.Add(1)
	return func() bool {
		c.waiting.Add(-1)
		return true
	}
}

// A call that has ended leaves no function behind in its context, which may live long.
func TestNothingStaysWithTheContext(t *testing.T) {
	broken := errors.New("connection reset")
	for _, c := range []struct {
		name string
		rest io.Reader // what follows of the stream
		end  func(io.ReadCloser)
	}{
		{"read", strings.NewReader(streamEnd), func(b io.ReadCloser) { io.Copy(io.Discard, b) }},
		{"closed", strings.NewReader(streamEnd), func(b io.ReadCloser) { b.Close() }},
		{"broken", failing{broken}, func(b io.ReadCloser) { io.Copy(io.Discard, b) }},
		{"read and closed", strings.NewReader(streamEnd), func(b io.ReadCloser) {
			io.Copy(io.Discard, b)
			b.Close()
			b.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := tripper(func(*http.Request) (*http.Response, error) {
				return answered(200, nil, io.NopCloser(io.MultiReader(strings.NewReader(streamBegin), c.rest))), nil
			})
			ctx := &endless{Context: t.Context(), done: make(chan struct{})}
			response, err := llmhttp.New(base, llmhttptest.NewLimiter(t, ample, nil)).RoundTrip(streams[0].request(ctx, t))
			if err != nil {
				t.Fatal(err)
			}
			if n := ctx.waiting.Load(); n != 1 {
				t.Errorf("while it streams, %d wait for the end of its context", n)
			}
			c.end(response.Body)
			if n := ctx.waiting.Load(); n != 0 {
				t.Errorf("after it has ended, %d wait for the end of its context", n)
			}
		})
	}
}

// A context that ends during a read settles the call when the read returns, even if the
// caller does not read on, and even if the body does not watch the context.
func TestContextEndsDuringRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, write := io.Pipe()
		base := tripper(func(*http.Request) (*http.Response, error) { return answered(200, nil, read), nil })
		events := &llmhttptest.Recorder{}
		ctx, cancel := context.WithCancel(t.Context())
		response, err := llmhttp.New(base, llmhttptest.NewLimiter(t, ample, events)).RoundTrip(streams[0].request(ctx, t))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := response.Body.Read(make([]byte, 1000))
			done <- err
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		io.WriteString(write, streamBegin)
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := events.Count(event.Settled); n != 1 {
			t.Errorf("%d calls are settled", n)
		}
	})
}

// A context that has ended before an answer comes settles its call when the answer comes
// all the same. The test makes many calls, so that the end comes at every moment.
func TestContextEndsBeforeTheAnswer(t *testing.T) {
	const calls = 500
	synctest.Test(t, func(t *testing.T) {
		end := func() {}
		base := tripper(func(*http.Request) (*http.Response, error) {
			end()
			return answered(200, nil, io.NopCloser(strings.NewReader(streamBegin))), nil
		})
		events := &llmhttptest.Recorder{}
		transport := llmhttp.New(base, llmhttptest.NewLimiter(t, ample, events))
		for range calls {
			ctx, cancel := context.WithCancel(t.Context())
			end = cancel
			if _, err := transport.RoundTrip(streams[0].request(ctx, t)); err != nil {
				t.Error(err)
			}
			cancel()
		}
		synctest.Wait()
		if n := events.Count(event.Settled); n != calls {
			t.Errorf("%d of %d calls are settled", n, calls)
		}
	})
}

// handedOn is a body that records whether it was closed.
type handedOn struct {
	io.Reader
	closed atomic.Int64
}

func (b *handedOn) Close() error {
	b.closed.Add(1)
	return nil
}

// Whatever becomes of a request, its body is closed, and nothing else of it changes.
func TestRequestIsLeftAsItIs(t *testing.T) {
	broken := errors.New("broken")
	asks := streams[0].body
	deaf := tripper(func(r *http.Request) (*http.Response, error) {
		r.Body.Close()
		return nil, broken
	})
	fine := answering(200, nil, streamBegin+streamUsage+streamEnd)
	for _, c := range []struct {
		name   string
		quota  ratelimit.ModelQuota
		base   http.RoundTripper
		body   io.Reader
		change func(*http.Request)
		status int // 0: the transport returns an error
	}{
		{"sent", ample, fine, strings.NewReader(asks), nil, 200},
		{"length unknown", ample, fine, strings.NewReader(asks), func(r *http.Request) { r.ContentLength = -1 }, 200},
		{"chunked", ample, fine, strings.NewReader(asks), func(r *http.Request) { r.TransferEncoding = []string{"chunked"} }, 200},
		{"signed", ample, fine, strings.NewReader(asks), func(r *http.Request) { r.Header.Set("X-Amz-Date", "20260101T000000Z") }, 200},
		{"refused by the limiter", ratelimit.ModelQuota{MaxTPM: 1}, fine, strings.NewReader(strings.Replace(asks, "Hi", strings.Repeat("Hi ", 1000), 1)), nil, 400},
		{"refused by the provider", ample, answering(429, nil, "{}"), strings.NewReader(asks), nil, 429},
		{"broken", ample, fine, io.MultiReader(strings.NewReader(asks[:10]), failing{broken}), nil, 0},
		{"no JSON", ample, fine, strings.NewReader("Hi"), nil, 0},
		{"compressed", ample, fine, strings.NewReader("\x1f\x8b"), func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 0},
		{"not sent", ample, deaf, strings.NewReader(asks), nil, 0},
		{"no time", ample, fine, strings.NewReader(asks), func(r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			*r = *r.WithContext(ctx)
		}, 0},
		{"no call of a model", ample, fine, strings.NewReader(asks), func(r *http.Request) { r.URL.Path = "/v1/files" }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := &handedOn{Reader: c.body}
			req := streams[0].request(t.Context(), t)
			req.Body, req.ContentLength = body, int64(len(asks))
			req.Header.Set("Accept-Encoding", "br")
			req.Header.Set("Authorization", "Bearer key")
			if c.change != nil {
				c.change(req)
			}
			before := *req
			before.Header, before.URL = req.Header.Clone(), cloneURL(req.URL)
			before.TransferEncoding = slices.Clone(req.TransferEncoding)

			response, err := llmhttp.New(c.base, llmhttptest.NewLimiter(t, c.quota, nil)).RoundTrip(req)
			if (err == nil) != (c.status != 0) || err == nil && response.StatusCode != c.status {
				t.Fatalf("%v, %v", response, err)
			}
			if body.closed.Load() == 0 {
				t.Error("its body is not closed")
			}
			if response != nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			again, err := req.GetBody()
			if text, _ := io.ReadAll(again); err != nil || string(text) != asks {
				t.Errorf("its body is %q the next time, %v", text, err)
			}
			if diff := cmp.Diff(before.Header, req.Header); diff != "" {
				t.Errorf("headers before (-) and after (+):\n%s", diff)
			}
			if req.Body != before.Body || req.ContentLength != before.ContentLength || *req.URL != *before.URL ||
				req.Host != before.Host || req.Context() != before.Context() || !slices.Equal(req.TransferEncoding, before.TransferEncoding) {
				t.Errorf("before: %+v\nafter: %+v", before, *req)
			}
		})
	}
}

func cloneURL(u *url.URL) *url.URL {
	c := *u
	return &c
}

// The provider gets the whole body, even where the Content-Length is wrong.
func TestLengthIsWrong(t *testing.T) {
	var got string
	var length int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, length = string(text), r.ContentLength
		io.WriteString(w, wholeAnswer)
	}))
	defer server.Close()
	n := int64(len(whole.body))
	for _, said := range []int64{-1, 0, 1, n - 1, n, n + 1, 2 * n, 1 << 62} {
		t.Run(strconv.FormatInt(said, 10), func(t *testing.T) {
			req := wire{"", server.URL + "/v1/responses", whole.body}.request(t.Context(), t)
			req.ContentLength = said
			response, err := llmhttp.New(server.Client().Transport, llmhttptest.NewLimiter(t, ample, nil)).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got != whole.body || length != n {
				t.Errorf("the provider gets %q with a length of %d bytes; want %d", got, length, n)
			}
		})
	}
}

// A body that cannot be read to its end is not sent, wherever it breaks off and whatever
// its Content-Length is.
func TestBodyBreaksAnywhere(t *testing.T) {
	base := tripper(func(*http.Request) (*http.Response, error) {
		t.Error("it is sent")
		return nil, io.EOF
	})
	n := len(whole.body)
	for _, broken := range []error{errors.New("the file is gone"), io.ErrUnexpectedEOF} {
		for _, said := range []int64{-1, 1, int64(n) - 1, int64(n), int64(n) + 1} {
			for _, after := range []int{0, 1, n - 1, n} {
				req := whole.request(t.Context(), t)
				req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(whole.body[:after]), failing{broken})), said
				limiter := llmhttptest.NewLimiter(t, ample, nil)
				if _, err := llmhttp.New(base, limiter).RoundTrip(req); !errors.Is(err, broken) {
					t.Errorf("%d bytes of %d: %v; want %v", after, said, err, broken)
				}
				if s := limiter.Stats(model); s.RPM != 0 {
					t.Errorf("%d bytes of %d: %+v", after, said, s)
				}
			}
		}
	}
}

// The transport asks for no compressed answer, which it could not read. A signed request is
// sent unchanged, to the byte.
func TestSignedRequestsAreSentUnchanged(t *testing.T) {
	for _, c := range []struct {
		header string
		signed bool
	}{
		{"X-Amz-Content-Sha256", true},
		{"X-Amz-Date", true},
		{"Signature", true},
		{"Content-Digest", true},
		{"Digest", true},
		{"Content-Md5", true},
		{"Repr-Digest", true},
		{"Signature-Input", true},
		{"X-Project-Id", false},
	} {
		t.Run(c.header, func(t *testing.T) {
			var header http.Header
			var text []byte
			var length int64
			base := tripper(func(r *http.Request) (*http.Response, error) {
				header, length = r.Header.Clone(), r.ContentLength
				text, _ = io.ReadAll(r.Body)
				return answering(200, nil, streamBegin+streamUsage+streamEnd)(r)
			})
			req := streams[0].request(t.Context(), t)
			req.Header.Set(c.header, "something")
			req.Header.Set("Accept-Encoding", "br")
			events := &llmhttptest.Recorder{}
			response, err := llmhttp.New(base, llmhttptest.NewLimiter(t, ample, events)).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			seen, _ := io.ReadAll(response.Body)
			if c.signed != (string(seen) == streamBegin+streamUsage+streamEnd) {
				t.Errorf("the caller sees %q", seen)
			}
			if c.signed != (string(text) == streams[0].body) || c.signed == bytes.Contains(text, []byte("include_usage")) || length != int64(len(text)) {
				t.Errorf("%q is sent, and said to have %d bytes", text, length)
			}
			want := req.Header.Clone()
			if !c.signed {
				want.Del("Accept-Encoding")
			}
			if diff := cmp.Diff(want, header); diff != "" {
				t.Errorf("headers that should be (-) and that are (+) sent:\n%s", diff)
			}
			events.Used(t, 1, 7, 5)
		})
	}
}

// The Request of every response is the caller's, of refusals too.
func TestResponseIsToTheRequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		quota  ratelimit.ModelQuota
		status int
	}{
		{"answer", ample, 200},
		{"refusal", ample, 429},
		{"failure", ample, 500},
		{"limiter", ratelimit.ModelQuota{MaxInputTPM: 1}, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := tripper(func(r *http.Request) (*http.Response, error) {
				response, err := answering(c.status, nil, wholeAnswer)(r)
				response.Request = r
				return response, err
			})
			req := wire{"", whole.url, strings.Replace(whole.body, "Hi", strings.Repeat("Hi ", 100), 1)}.request(t.Context(), t)
			response, err := llmhttp.New(base, llmhttptest.NewLimiter(t, c.quota, nil)).RoundTrip(req)
			if err != nil || response.StatusCode != c.status || response.Request != req {
				t.Errorf("%+v, %v", response, err)
			}
		})
	}
}

// While the caller reads an answer, the request's body is not kept in memory: neither the
// caller's nor the one that asks for usage.
func TestBodyIsForgotten(t *testing.T) {
	for _, x := range []wire{streams[0], whole} {
		t.Run(x.name, func(t *testing.T) {
			var sent weak.Pointer[byte]
			base := tripper(func(r *http.Request) (*http.Response, error) {
				_, err := r.Body.(io.WriterTo).WriteTo(writes(func(p []byte) { sent = weak.Make(&p[0]) }))
				response := answered(200, nil, io.NopCloser(strings.NewReader(streamBegin)))
				response.Request = r
				return response, err
			})
			req := x.request(t.Context(), t)
			response, err := llmhttp.New(base, llmhttptest.NewLimiter(t, ample, nil)).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			if sent.Value() != nil {
				t.Error("the body is still there")
			}
			response.Body.Close()
			runtime.KeepAlive(req)
		})
	}
}

// writes is an [io.Writer] that calls a function.
type writes func([]byte)

func (f writes) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// idler is a transport that counts how often its idle connections are closed.
type idler struct {
	tripper
	closed int
}

func (i *idler) CloseIdleConnections() { i.closed++ }

// The client's CloseIdleConnections reaches the base transport, if that has the method.
func TestCloseIdleConnections(t *testing.T) {
	below := &idler{}
	limiter := llmhttptest.NewLimiter(t, ample, nil)
	for _, base := range []http.RoundTripper{below, tripper(nil)} {
		client := &http.Client{Transport: llmhttp.New(base, limiter)}
		client.CloseIdleConnections()
	}
	if below.closed != 1 {
		t.Errorf("it was asked %d times", below.closed)
	}
}

// zipped returns a text compressed with gzip.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// A response that the base transport leaves compressed reaches the caller unchanged, and is
// metered all the same. However it ends, no goroutine is left.
func TestCompressedResponse(t *testing.T) {
	stream := zipped(t, streamBegin+streamUsage+streamEnd)
	for _, c := range []struct {
		name   string
		x      wire
		text   string
		most   int64 // bytes that the caller reads
		cancel bool  // the caller cancels the context, and does not close the body
		exact  bool  // the response reports its usage
	}{
		{"stream", streams[0], stream, 1 << 20, false, true},
		{"whole", whole, zipped(t, wholeAnswer), 1 << 20, false, true},
		{"unread", streams[0], stream, 0, false, true}, // closing reads on
		{"closed", streams[0], stream, 20, false, true},
		{"cancelled", streams[0], stream, 20, true, false},
		{"cut off", streams[0], stream[:20], 1 << 20, false, false},
		{"no gzip", streams[0], streamBegin + streamUsage + streamEnd, 1 << 20, false, false},
		{"empty", streams[0], "", 1 << 20, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // waits for all goroutines to end
				events := &llmhttptest.Recorder{}
				limiter := llmhttptest.NewLimiter(t, ample, events)
				transport := llmhttp.New(answering(200, http.Header{"Content-Encoding": {"gzip"}}, c.text), limiter)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				response, err := transport.RoundTrip(c.x.request(ctx, t))
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(io.LimitReader(response.Body, c.most))
				if want := c.text[:min(len(c.text), int(c.most))]; string(text) != want || err != nil {
					t.Errorf("%q, want %q; %v", text, want, err)
				}
				if response.Header.Get("Content-Encoding") != "gzip" {
					t.Errorf("%v", response.Header)
				}
				if c.cancel {
					cancel()
				} else {
					response.Body.Close()
				}
				synctest.Wait()
				if c.exact {
					events.Used(t, 1, 7, 5)
				} else if s := limiter.Stats(model); events.Count(event.Settled) != 1 || s.TPM < 500 || s.Concurrent != 0 {
					t.Errorf("%+v, %+v", events.All(), s)
				}
			})
		})
	}
}

// Several goroutines may close a body during a read: the read ends, and the call is settled
// once.
func TestCloseDuringRead(t *testing.T) {
	for _, proto := range []int{1, 2} {
		t.Run("http"+strconv.Itoa(proto), func(t *testing.T) {
			mock := mockprovider.New(llmhttptest.Script(mockprovider.Reply{Fault: mockprovider.FaultStall, After: 4}))
			server := httptest.NewUnstartedServer(mock)
			server.EnableHTTP2 = proto == 2
			server.StartTLS()
			defer server.Close()
			events := &llmhttptest.Recorder{}
			client := &http.Client{Transport: llmhttp.New(server.Client().Transport, llmhttptest.NewLimiter(t, ample, events))}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // rather than wait forever
			defer cancel()
			const calls = 20
			for range calls {
				response, err := wire{"", server.URL + "/v1/chat/completions", streams[0].body}.send(ctx, client)
				if err != nil {
					t.Fatal(err)
				}
				if response.ProtoMajor != proto {
					t.Fatal(response.Proto)
				}
				begun := make(chan struct{})
				var all sync.WaitGroup
				all.Go(func() {
					io.ReadFull(response.Body, make([]byte, 100))
					close(begun)
					if _, err := io.Copy(io.Discard, response.Body); errors.Is(err, context.DeadlineExceeded) {
						t.Error("the read has not ended")
					}
				})
				<-begun
				for range 3 {
					all.Go(func() { response.Body.Close() })
				}
				all.Wait()
			}
			if n, cancelled := events.Count(event.Settled), events.Count(event.Cancelled); n != calls || cancelled != 0 {
				t.Errorf("%d of %d calls are settled, %d are cancelled", n, calls, cancelled)
			}
		})
	}
}
