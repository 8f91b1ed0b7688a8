package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// slow is a provider whose streams send one event, and end when the test says so.
type slow struct {
	began chan struct{} // gets a value when a call begins
	next  chan struct{} // the test closes it to end all streams
	gone  chan struct{} // gets a value when a call is cut off
}

func newSlow() *slow {
	return &slow{make(chan struct{}, 8), make(chan struct{}), make(chan struct{}, 8)}
}

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "data: {\"choices\":[]}\n\n")
	http.NewResponseController(w).Flush()
	s.began <- struct{}{}
	select {
	case <-s.next:
		io.WriteString(w, "data: [DONE]\n\n")
	case <-r.Context().Done():
		s.gone <- struct{}{}
	}
}

// stream begins a stream, reads its first event, and returns it.
func (r *running) stream(t *testing.T) (*bufio.Reader, io.Closer) {
	t.Helper()
	text := strings.Replace(chat, `"model"`, `"stream":true,"model"`, 1)
	resp, err := http.Post(r.base+"/openai/v1/chat/completions", "application/json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	body := bufio.NewReader(resp.Body)
	if line, err := body.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	return body, resp.Body
}

// half connects, and sends half of a request's headers.
func (r *running) half(t *testing.T) net.Conn {
	t.Helper()
	return r.dial(t, "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: gateway\r\n")
}

// dial connects, and sends a text.
func (r *running) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.Clients.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDrainLetsStreamsFinish(t *testing.T) {
	provider := newSlow()
	r := start(t, provider, basic)
	body, _ := r.stream(t)
	late := r.half(t)
	answers := bufio.NewReader(r.dial(t, "GET /nothing HTTP/1.1\r\nHost: gateway\r\n\r\n"))
	if resp, err := http.ReadResponse(answers, nil); err != nil || resp.Close {
		t.Fatalf("before the end: %+v, %v", resp, err)
	} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	r.end()
	r.log.await(t, "new requests are refused", 1)
	if _, err := answers.ReadByte(); err != io.EOF {
		t.Errorf("a connection that is idle is not closed: %v", err)
	}
	// A request that had not arrived in full is refused with an answer.
	fmt.Fprintf(late, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(chat), chat)
	resp, err := http.ReadResponse(bufio.NewReader(late), nil)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !resp.Close {
		t.Errorf("a late request gets %+v, %v", resp, err)
	}
	if status, err := r.call(&http.Client{Transport: &http.Transport{}}); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a new connection gets %d, %v", status, err)
	}
	resp, err = http.Get(r.admin + "/readyz")
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("readyz: %+v, %v", resp, err)
	}
	resp.Body.Close()
	close(provider.next)
	rest, err := io.ReadAll(body)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	if err := r.result(t); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", r.Clients.String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

func TestDrainCutsOffAtItsLimit(t *testing.T) {
	provider := newSlow()
	r := start(t, provider, strings.Replace(basic, "drain: 20s", "drain: 100ms, read_on: 100ms", 1))
	body, _ := r.stream(t)
	if err := r.stop(t); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the stream has ended as if it were complete")
	}
	<-provider.gone
	r.log.await(t, "are cut off", 1)
	if n := r.Gateway.Active(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

// The gateway does not wait for a client that leaves while it drains.
func TestDrainDoesNotWaitForClientsThatLeft(t *testing.T) {
	r := start(t, newSlow(), basic)
	_, stream := r.stream(t)
	r.end()
	r.log.await(t, "new requests are refused", 1)
	stream.Close()
	began := time.Now()
	if err := r.result(t); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
