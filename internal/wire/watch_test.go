package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// leave is how a client can go.
var leave = map[string]func(net.Conn){
	"closes":      func(c net.Conn) { c.Close() },
	"half-closes": func(c net.Conn) { c.(*net.TCPConn).CloseWrite() },
	"resets": func(c net.Conn) {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	},
}

// A client that leaves is noticed, whatever the handler does then.
func TestClientLeaves(t *testing.T) {
	for _, c := range []struct{ name, asked, path string }{
		{"while it waits", get, "/wait"},
		{"while it waits, with a body read", "POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", "/wait"},
		{"while it waits, with chunks read", "POST /wait HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "/wait"},
		{"between chunks", "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "/stream"},
		{"while its body is read", "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nhi", "/body"},
	} {
		for how, go_ := range leave {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				began, left := make(chan struct{}), make(chan error, 1)
				conn := serving(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/stream" {
						io.WriteString(w, "hello")
						flush(w)
					}
					if r.URL.Path == "/body" {
						close(began)
						io.ReadAll(r.Body)
					} else {
						io.ReadAll(r.Body)
						close(began)
					}
					<-r.Context().Done()
					left <- r.Context().Err()
				})
				io.WriteString(conn, c.asked)
				<-began
				go_(conn)
				select {
				case err := <-left:
					if err != context.Canceled {
						t.Error(err)
					}
				case <-time.After(10 * time.Second):
					t.Error("nobody has noticed")
				}
			})
		}
	}
}

// Requests that come while another is being served are neither lost nor taken for the
// client's leaving.
func TestPipelining(t *testing.T) {
	const requests = 20
	next := make(chan struct{})
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		<-next
		if err := r.Context().Err(); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	})
	answers := bufio.NewReader(c)
	send := func(i int) { fmt.Fprintf(c, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n%02d", i, i) }
	send(0)
	for i := range requests {
		time.Sleep(3 * watchAfter) // so that it is watched
		send(i + 1)
		next <- struct{}{}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != fmt.Sprintf("/%d %02d", i, i) {
			t.Fatalf("%d: %q, %v", i, text, err)
		}
	}
	close(next)
}

// Requests that have come with one that takes long are not lost either.
func TestPipeliningAtOnce(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3 * watchAfter) // so that it is watched
		io.WriteString(w, r.URL.Path)
	})
	answers := bufio.NewReader(c)
	const request = "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n"
	fmt.Fprintf(c, request+request+request, 0, 1, 2)
	for i := range 3 {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != fmt.Sprintf("/%d", i) {
			t.Fatalf("%d: %q, %v", i, text, err)
		}
	}
}

// A request that is answered within a moment has no goroutine of its own.
func TestNobodyWatchesShortRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		s := &Server{}
		began, next := make(chan struct{}), make(chan struct{})
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began <- struct{}{}
			<-next
		})
		s.listen(stub{})
		go s.admit(server).serve()
		answers := bufio.NewReader(client)
		for _, c := range []struct {
			lasts   time.Duration
			watched bool
		}{{0, false}, {watchAfter / 2, false}, {3 * watchAfter, true}, {0, false}, {time.Hour, true}, {watchAfter / 2, false}} {
			io.WriteString(client, get)
			<-began
			time.Sleep(c.lasts)
			synctest.Wait()
			if watched := strings.Contains(stacks(), "(*watch).run"); watched != c.watched {
				t.Errorf("after %v it is watched: %v", c.lasts, watched)
			}
			next <- struct{}{}
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		client.Close()
		synctest.Wait()
	})
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// stub is a listener at which nobody comes.
type stub struct{ net.Listener }

func (stub) Close() error { return nil }

// Deadlines of reading that the handler has set do not end its context once all of the
// body is there.
func TestReadDeadlineWhileWatched(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		for _, wait := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond} {
			control.SetReadDeadline(time.Now().Add(wait))
			select {
			case <-r.Context().Done():
				t.Error("the context has ended")
			case <-time.After(2 * wait):
			}
		}
	})
	answers := bufio.NewReader(c)
	for range 2 {
		io.WriteString(c, get)
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

func TestSlowClients(t *testing.T) {
	for _, c := range []struct {
		name  string
		sends []string
		after time.Duration // the connection is closed
	}{
		{"nothing comes", nil, 10 * time.Second},
		{"half of the headers", []string{"GET / HTTP/1.1\r\n"}, 10 * time.Second},
		{"between requests", []string{get}, time.Minute},
		{"half of the second headers", []string{get, "GET / HTTP/1.1\r\n"}, 10 * time.Second},
		{"after several", []string{get, get, get, get}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				s := &Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), HeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
				s.listen(stub{})
				go s.admit(server).serve()
				ended := make(chan time.Time)
				go func() {
					io.Copy(io.Discard, client)
					ended <- time.Now()
				}()
				for _, text := range c.sends {
					time.Sleep(7 * time.Second)
					io.WriteString(client, text)
				}
				began := time.Now()
				if after := (<-ended).Sub(began); after != c.after {
					t.Errorf("it was closed after %v; want %v", after, c.after)
				}
			})
		})
	}
}

// A body that does not come is given up at the handler's deadline.
func TestReadDeadline(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := io.ReadAll(r.Body)
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() {
			t.Error(err)
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nhi")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusRequestTimeout || !resp.Close {
		t.Errorf("%+v, %v", resp, err)
	}
}

// Who reads the end of a body when its handler has returned does not have the next
// request read by two.
func TestNobodyWatchesBetweenRequests(t *testing.T) {
	var w watch
	w.init(&peer{reader: bufio.NewReader(nil)})
	w.open(func() {})
	w.start()
	w.stop()
	w.start()
	if w.state != asleep {
		t.Errorf("its state is %d", w.state)
	}
}
