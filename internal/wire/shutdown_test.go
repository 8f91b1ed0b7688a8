package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate is a handler that reports each request, and answers when the test opens it.
type gate struct{ began, next chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.began <- struct{}{}
	select {
	case <-g.next:
	case <-r.Context().Done():
	}
	io.WriteString(w, "ok")
}

func TestShutdown(t *testing.T) {
	g := newGate()
	s := &Server{Handler: g}
	addr := serverOf(t, s)
	busy, half, idle := dial(t, addr), dial(t, addr), dial(t, addr)
	io.WriteString(idle, get)
	<-g.began
	g.next <- struct{}{}
	idleAnswers := bufio.NewReader(idle)
	if resp, err := http.ReadResponse(idleAnswers, nil); err != nil || resp.Close {
		t.Fatalf("%+v, %v", resp, err)
	} else {
		io.Copy(io.Discard, resp.Body)
	}
	io.WriteString(half, "GET / HTTP/1.1\r\n")
	awaitUsed(s, 2)
	io.WriteString(busy, get)
	<-g.began

	short, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(short); err != context.Canceled {
		t.Error(err)
	}
	if _, err := idleAnswers.ReadByte(); err != io.EOF {
		t.Errorf("an idle connection is not closed: %v", err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("it still listens")
	}
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(t.Context()) }()
	io.WriteString(half, "Host: a\r\n\r\n")
	<-g.began
	close(g.next)
	for _, c := range []net.Conn{busy, half} {
		answers := bufio.NewReader(c)
		resp, err := http.ReadResponse(answers, nil)
		if err != nil || !resp.Close {
			t.Fatalf("%+v, %v", resp, err)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "ok" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Serve(stub{}); err != http.ErrServerClosed {
		t.Error(err)
	}
}

// awaitUsed waits until so many peers have sent something.
func awaitUsed(s *Server, n int) {
	for used := 0; used < n; {
		used = 0
		s.mu.Lock()
		for p := range s.peers {
			p.mu.Lock()
			if p.used {
				used++
			}
			p.mu.Unlock()
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// While the server drains, a new client is still answered, once.
func TestDrain(t *testing.T) {
	s := &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})}
	addr := serverOf(t, s)
	idle, fresh := dial(t, addr), dial(t, addr)
	io.WriteString(idle, get)
	idleAnswers := bufio.NewReader(idle)
	if resp, err := http.ReadResponse(idleAnswers, nil); err != nil || resp.Close {
		t.Fatalf("%+v, %v", resp, err)
	}
	s.Drain()
	if _, err := idleAnswers.ReadByte(); err != io.EOF {
		t.Errorf("an idle connection is not closed: %v", err)
	}
	for _, c := range []net.Conn{fresh, dial(t, addr)} {
		io.WriteString(c, get+get)
		answers := bufio.NewReader(c)
		if resp, err := http.ReadResponse(answers, nil); err != nil || !resp.Close {
			t.Fatalf("%+v, %v", resp, err)
		}
		if _, err := answers.ReadByte(); err == nil {
			t.Error("there are two answers")
		}
	}
}

func TestClose(t *testing.T) {
	g := newGate()
	s := &Server{Handler: g}
	addr := serverOf(t, s)
	conns := []net.Conn{dial(t, addr), dial(t, addr), dial(t, addr)}
	io.WriteString(conns[0], get)
	io.WriteString(conns[1], get+get) // with a second request, the server cannot notice that it leaves
	<-g.began
	<-g.began
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for i, c := range conns {
		if text, _ := io.ReadAll(c); len(text) > 0 {
			t.Errorf("%d: %q", i, text)
		}
	}
	if err := s.Shutdown(t.Context()); err != nil { // waits for the handlers
		t.Error(err)
	}
}

// Whenever a shutdown comes, a request that a handler has begun is answered.
func TestShutdownUnderLoad(t *testing.T) {
	for range 20 {
		var begun, answered atomic.Int64
		s := &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun.Add(1)
			io.Copy(w, r.Body)
		})}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
		for range 8 {
			c := dial(t, l.Addr().String())
			all.Go(func() { askUntilClosed(t, c, &answered) })
		}
		for answered.Load() < 100 {
			time.Sleep(100 * time.Microsecond)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if begun.Load() != answered.Load() {
			t.Errorf("%d were begun, and %d answered", begun.Load(), answered.Load())
		}
	}
}

func askUntilClosed(t *testing.T, c net.Conn, answered *atomic.Int64) {
	defer c.Close()
	answers := bufio.NewReader(c)
	for {
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return
		}
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "hello" {
			t.Errorf("%q, %v", text, err)
		}
		answered.Add(1)
		if resp.Close {
			return
		}
	}
}

// A listener that fails temporarily is used again.
func TestAcceptAgain(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	l := &failing{Listener: inner, faults: []error{&net.OpError{Op: "accept", Err: tooMany{}}, &net.OpError{Op: "accept", Err: tooMany{}}}}
	var served sync.WaitGroup
	served.Go(func() { s.Serve(l) })
	c := dial(t, inner.Addr().String())
	io.WriteString(c, getClose)
	if text, err := io.ReadAll(c); err != nil || len(text) == 0 {
		t.Errorf("%q, %v", text, err)
	}
	s.Shutdown(t.Context())
	served.Wait()
	broken := errors.New("broken")
	if err := new(Server).Serve(&failing{Listener: stub{}, faults: []error{broken}}); err != broken {
		t.Error(err)
	}
}

type tooMany struct{}

func (tooMany) Error() string   { return "too many open files" }
func (tooMany) Temporary() bool { return true }
func (tooMany) Timeout() bool   { return false }

type failing struct {
	net.Listener
	faults []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.faults) == 0 {
		return l.Listener.Accept()
	}
	err := l.faults[0]
	l.faults = l.faults[1:]
	return nil, err
}
