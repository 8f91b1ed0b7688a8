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

	"dappco.re/go/core/go-ratelimit/internal/alone"
)

// leave is a way in which a client can end its connection.
var leave = map[string]func(net.Conn){
	"closes":      func(c net.Conn) { c.Close() },
	"half-closes": func(c net.Conn) { c.(*net.TCPConn).CloseWrite() },
	"resets": func(c net.Conn) {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	},
}

// The server notices that a client leaves, whatever the handler does then.
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

// piped serves the other end of a pipe.
func piped(s *Server) net.Conn {
	client, server := net.Pipe()
	s.listen(stub{})
	go s.admit(server).serve()
	return client
}

// Requests that come while another is being served are neither lost nor taken for the end of the
// connection.
func TestPipelining(t *testing.T) {
	for _, c := range []struct {
		name  string
		sends []string // one before the first request is served, the others while each is
	}{
		{"one by one", []string{"0 ", "1 ", "2 ", "3 "}},
		{"at once", []string{"0 1 2 "}},
		{"two at once, and more", []string{"0 1 ", "2 3 "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, next := make(chan string), make(chan struct{})
				client := piped(&Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					began <- r.Method + " " + r.URL.Path + " " + string(body)
					<-next
					if err := r.Context().Err(); err != nil {
						t.Error(err)
					}
				})})
				answers := bufio.NewReader(client)
				send := func(numbers string) {
					var text []byte
					for _, n := range strings.Fields(numbers) {
						text = fmt.Appendf(text, "POST /%s HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n0%s", n, n)
					}
					client.Write(text)
				}
				go send(c.sends[0])
				for i := range strings.Count(strings.Join(c.sends, ""), " ") {
					if got, want := <-began, fmt.Sprintf("POST /%d 0%d", i, i); got != want {
						t.Fatalf("%q comes, and not %q", got, want)
					}
					time.Sleep(3 * watchAfter) // so that it is watched
					if i+1 < len(c.sends) {
						go send(c.sends[i+1])
						synctest.Wait()
					}
					next <- struct{}{}
					if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusOK {
						t.Fatalf("%+v, %v", resp, err)
					}
				}
				client.Close()
			})
		})
	}
}

// A request that is answered quickly has no goroutine of its own.
func TestNobodyWatchesShortRequests(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		began, next := make(chan struct{}), make(chan struct{})
		client := piped(&Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began <- struct{}{}
			<-next
		})})
		answers := bufio.NewReader(client)
		const half = watchAfter / 2
		for _, c := range []struct {
			rest, lasts time.Duration
			watched     bool
		}{{0, 0, false}, {0, half, false}, {0, 3 * watchAfter, true}, {0, 0, false}, {0, time.Hour, true}, {0, half, false}, {half / 2, half, false}, {half / 2, half, false}} {
			time.Sleep(c.rest)
			io.WriteString(client, get)
			<-began
			time.Sleep(c.lasts)
			synctest.Wait()
			if watched := strings.Contains(stacks(), "(*watch).run"); watched != c.watched {
				t.Errorf("after %v it is watched: %v", c.lasts, watched)
			}
			next <- struct{}{}
			if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%+v, %v", resp, err)
			}
		}
		client.Close()
	})
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// stub is a listener without clients.
type stub struct{ net.Listener }

func (stub) Close() error { return nil }

// Read deadlines do not end the context once the whole body has come: neither the handler's, nor
// that of the headers.
func TestReadDeadlineWhileWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := piped(&Server{HeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			for _, within := range []time.Duration{watchAfter / 2, time.Minute} {
				control.SetReadDeadline(time.Now().Add(within))
				time.Sleep(2 * time.Minute)
			}
			if err := r.Context().Err(); err != nil {
				t.Error(err)
			}
		})})
		answers := bufio.NewReader(client)
		for range 2 {
			io.WriteString(client, get)
			if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%+v, %v", resp, err)
			}
		}
		client.Close()
	})
}

// Read deadlines do not end the watch either.
func TestClientLeavesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan struct{})
		client := piped(&Server{HeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute))
			<-r.Context().Done()
			close(left)
		})})
		io.WriteString(client, get)
		time.Sleep(time.Hour)
		client.Close()
		<-left
	})
}

// HeaderTimeout does not apply to the body.
func TestBodyAfterHeaderTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := piped(&Server{HeaderTimeout: time.Second, IdleTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "hello" {
				t.Errorf("%q, %v", body, err)
			}
		})})
		io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
		time.Sleep(10 * time.Second)
		io.WriteString(client, "hello")
		if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", resp, err)
		}
		client.Close()
	})
}

// A deadline that is moved to a later time loses nothing of what is being written.
func TestWriteDeadlineIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("0123456789", 1000)
		client := piped(&Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			control.SetWriteDeadline(time.Now().Add(time.Second))
			control.SetWriteDeadline(time.Now().Add(time.Hour))
			io.WriteString(w, text)
		})})
		io.WriteString(client, getClose)
		half := make([]byte, len(text)/2)
		if _, err := io.ReadFull(client, half); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		rest, err := io.ReadAll(client)
		_, got, _ := strings.Cut(string(half)+string(rest), "\r\n\r\n")
		if err != nil || got != text {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
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
				client := piped(&Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), HeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute})
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
		if err := r.Context().Err(); err != nil {
			t.Errorf("it counts as left: %v", err)
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nhi")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusRequestTimeout || !resp.Close {
		t.Errorf("%+v, %v", resp, err)
	}
}

// A goroutine that reads the end of a body after its handler has returned does not start a watch,
// which would read the next request.
func TestNobodyWatchesBetweenRequests(t *testing.T) {
	var w watch
	w.init(&peer{reader: bufio.NewReader(nil)})
	w.beginRequest(func() {})
	w.start()
	w.stop()
	w.start()
	if w.state != watchIdle {
		t.Errorf("its state is %d", w.state)
	}
}
