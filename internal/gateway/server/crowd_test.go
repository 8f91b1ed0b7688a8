package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// held is a handler whose requests to /hold last until the test releases them.
type held struct{ begun, release chan struct{} }

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/hold" {
		h.begun <- struct{}{}
		<-h.release
	}
	io.WriteString(w, "served")
}

// room is a server in a crowd.
type room struct {
	t     *testing.T
	crowd *crowd
	held
}

// servers are the two kinds of servers of a gateway.
var servers = map[string]func(http.Handler) httpServer{
	"wire":     func(h http.Handler) httpServer { return &wire.Server{Handler: h} },
	"net/http": func(h http.Handler) httpServer { return &netHTTP{http.Server{Handler: h, ConnState: follow}} },
}

func newRoom(t *testing.T, server func(http.Handler) httpServer, most, mostOf int) *room {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, crowd: newCrowd(l, most), held: held{make(chan struct{}, 10), make(chan struct{})}}
	r.crowd.mostOf = mostOf
	s := server(&r.held)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(r.crowd)
	}()
	t.Cleanup(func() {
		s.Close()
		r.crowd.Close()
		<-done
	})
	return r
}

// connect opens a connection of a client.
func (r *room) connect() net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", r.crowd.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// send sends a request, and read reads its answer. It reports whether there was one.
func send(c net.Conn, path string) { fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path) }

func read(c net.Conn) bool {
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil
}

// When there are too many connections, idle ones are closed, the oldest first, and none that is busy. While all are
// busy, a client waits until one is free.
func TestCrowd(t *testing.T) {
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t, server, 4, 100)
			first, second := r.connect(), r.connect()
			for _, c := range []net.Conn{first, second} {
				send(c, "/hold")
				<-r.begun
			}
			oldest := r.connect()
			send(oldest, "/")
			if !read(oldest) {
				t.Fatal("it is not served")
			}
			newest, last := r.connect(), r.connect() // one more than there may be
			for _, c := range []net.Conn{newest, last} {
				send(c, "/hold")
				<-r.begun
			}
			if read(oldest) {
				t.Error("the idle connection is still open")
			}
			late := r.connect()
			send(late, "/")
			testkit.Eventually(t, "the crowd waits", func() bool {
				r.crowd.mu.Lock()
				defer r.crowd.mu.Unlock()
				return r.crowd.waiting && len(r.crowd.members) == 5
			})
			r.release <- struct{}{}
			if !read(late) {
				t.Error("the client that has waited is not served")
			}
			close(r.release)
			served := 0
			for _, c := range []net.Conn{first, second, newest, last} {
				if read(c) {
					served++
				}
			}
			if served != 4 {
				t.Errorf("%d of 4 requests in progress were answered", served)
			}
		})
	}
}

// Of an address with too many connections, those are closed that are idle.
func TestCrowdOfOneAddress(t *testing.T) {
	r := newRoom(t, servers["wire"], 0, 4)
	working := r.connect()
	send(working, "/hold")
	<-r.begun
	oldest := r.connect()
	for range 3 {
		r.connect()
	}
	testkit.Eventually(t, "four are idle", func() bool {
		r.crowd.mu.Lock()
		defer r.crowd.mu.Unlock()
		idle := 0
		for m := range r.crowd.members {
			if _, ok := m.idleSince(time.Now()); ok {
				idle++
			}
		}
		return idle == 4
	})
	r.connect()
	if read(oldest) {
		t.Error("the oldest one is open")
	}
	close(r.release)
	if !read(working) {
		t.Error("a request in progress was not answered")
	}
}

func TestAddressOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::/64", "[2001:db8::2]:81": "2001:db8::/64",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Equal(t, address, want, addressOf(tcp))
	}
	for n, want := range map[int][2]int{0: {0, 0}, 100: {18, 8}, 300: {118, 18}, 1024: {480, 64}, 1 << 20: {524256, 2048}} {
		testkit.Equal(t, fmt.Sprint(n, " descriptors"), want, [2]int{mostClients(n), mostAdmins(n)})
	}
}

// A connection whose request has come and was not read yet is not closed as idle: a busy machine may take longer than
// the time after which a connection counts as idle.
func TestCrowdKeepsRequestsThatAreNotRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(l, 0)
	defer c.Close()
	accept := func(request string) *member {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		accepted, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { accepted.Close() })
		io.WriteString(client, request)
		m := accepted.(*member)
		m.idle.Store(1) // for long
		return m
	}
	asks := accept("GET / HTTP/1.1\r\n")
	testkit.Eventually(t, "its request has come", func() bool { return unread(asks.Conn) })
	idle := accept("")
	c.mu.Lock()
	c.evict(asks.address)
	_, more := c.idlest()
	c.mu.Unlock()
	if more {
		t.Error("the connection with a request is to be closed next")
	}
	if asks.idle.Load() == evicted || idle.idle.Load() != evicted {
		t.Errorf("closed: the connection with a request %v, the idle one %v", asks.idle.Load() == evicted, idle.idle.Load() == evicted)
	}
}

// A connection of whose request a part was read is not idle: a busy machine may not have come to the rest. net/http
// reports a request only when all of its header was read.
func TestCrowdKeepsRequestsThatAreBeingRead(t *testing.T) {
	r := newRoom(t, servers["wire"], 0, 100)
	client := r.connect()
	io.WriteString(client, "GET / HTTP/1.1\r\n")
	testkit.Eventually(t, "the server has read a part", func() bool {
		r.crowd.mu.Lock()
		defer r.crowd.mu.Unlock()
		for m := range r.crowd.members {
			return m.idle.Load() == busy && !unread(m.Conn)
		}
		return false
	})
	io.WriteString(client, "Host: x\r\n\r\n")
	if !read(client) {
		t.Error("it is not served")
	}
}
