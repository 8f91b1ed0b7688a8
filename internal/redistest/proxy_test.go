package redistest

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// between returns a server, a proxy to it, and a connected client.
func between(t *testing.T) (*Server, *Proxy, *client) {
	t.Helper()
	t.Parallel()
	s := New(t)
	p := NewProxy(t, s.Addr)
	c := connect(t, p.Addr)
	c.expect("+PONG\r\n", "PING")
	return s, p, c
}

// counts waits until so many requests have reached the server.
func counts(t *testing.T, s *Server, want string) {
	t.Helper()
	eventually(t, "a request", func() bool { return doOrFail(t, s, "GET", "count") == want })
}

func TestProxyPassesAll(t *testing.T) {
	s, p, c := between(t)
	long := strings.Repeat("0123456789", 1<<17)
	c.expect("+OK\r\n", "SET", "key", long)
	c.expect("$1310720\r\n"+long+"\r\n", "GET", "key")
	if p.URL() != "redis://"+p.Addr {
		t.Error(p.URL())
	}
	s.Kill()
	c.ended(nil)
	c = connect(t, p.Addr) // no server
	c.ended(nil)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	connect(t, p.Addr).expect("+PONG\r\n", "PING")
}

func TestProxyCut(t *testing.T) {
	_, p, c := between(t)
	for range 20 {
		p.Cut()
		p.Cut()
		c.ended(nil)
		if _, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
		p.Heal()
		p.Heal()
		c = connect(t, p.Addr)
		c.expect("+PONG\r\n", "PING")
	}
}

func TestProxyStall(t *testing.T) {
	s, p, c := between(t)
	p.Stall()
	c.send("INCR", "count")
	late := connect(t, p.Addr)
	late.send("INCR", "count")
	gone := connect(t, p.Addr)
	gone.send("INCR", "count")
	gone.Close()
	c.silent()
	late.silent()
	expect(t, s, nil, "GET", "count")
	p.Heal()
	counts(t, s, "3") // including the request of the client that has left
	c.read(":")
	late.read(":")
}

// The end of a server is not seen through a stalled network.
func TestProxyStallHidesTheEnd(t *testing.T) {
	s, p, c := between(t)
	p.Stall()
	s.Kill()
	late := connect(t, p.Addr)
	c.silent()
	late.silent()
	p.Heal()
	c.ended(nil)
	late.ended(nil)
}

func TestProxyStallAnswers(t *testing.T) {
	s, p, c := between(t)
	idle := connect(t, p.Addr)
	idle.expect("+PONG\r\n", "PING")
	p.StallAnswers()
	c.send("INCR", "count")
	late := connect(t, p.Addr)
	late.send("INCR", "count")
	counts(t, s, "2")
	c.silent()
	late.silent()
	p.Heal()
	c.ended(nil)
	late.ended(nil)
	idle.expect(":3\r\n", "INCR", "count")
}

func TestProxyDelay(t *testing.T) {
	_, p, c := between(t)
	const delay = 100 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	c.send("PING")
	time.AfterFunc(delay/2, func() { c.Write(command([]string{"PING"})) })
	c.read("+PONG\r\n")
	if took := time.Since(start); took < delay {
		t.Error("an answer came after", took)
	}
	c.read("+PONG\r\n")
	if took := time.Since(start); took < delay*3/2 {
		t.Error("the next came after", took)
	}
	p.Delay(time.Hour)
	c.send("PING")
	c.silent()
	p.Cut()
	c.ended(nil)
}

func TestProxyResetAfter(t *testing.T) {
	for _, n := range []int{0, 4, 7, 9} {
		t.Run("", func(t *testing.T) {
			_, p, c := between(t)
			p.ResetAfter(n)
			answers := "+PONG\r\n+PONG\r\n"
			c.send("PING")
			c.read(answers[:min(n, 7)])
			if n > 7 {
				c.send("PING")
				c.read(answers[7:n])
			}
			c.ended(syscall.ECONNRESET)
			connect(t, p.Addr).expect("+PONG\r\n", "PING") // once
		})
	}
}

func TestProxyDropAnswer(t *testing.T) {
	s, p, c := between(t)
	p.DropAnswer()
	c.send("INCR", "count")
	c.ended(nil)
	expect(t, s, "1", "GET", "count")
	c = connect(t, p.Addr)
	c.expect(":2\r\n", "INCR", "count") // once
	p.DropAnswer()
	p.Heal()
	c.expect(":3\r\n", "INCR", "count")
}

// A proxy that is cut refuses connections at once, even while processes are being started, and can
// be healed at once.
func TestProxyCutWhileOthersStart(t *testing.T) {
	_, p, _ := between(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				exec.Command("true").Run()
			}
		}
	})
	for range 100 {
		p.Cut()
		if _, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
		p.Heal()
	}
}

// Close ends everything, in any state.
func TestProxyClose(t *testing.T) {
	for name, fault := range map[string]func(*Proxy){
		"none":          func(*Proxy) {},
		"cut":           (*Proxy).Cut,
		"stall":         (*Proxy).Stall,
		"stall answers": (*Proxy).StallAnswers,
		"delay":         func(p *Proxy) { p.Delay(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			_, p, c := between(t)
			c.Write(command([]string{"PING"}))
			fault(p)
			p.Close()
			p.Close()
			p.Heal()
			if _, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatal(err)
			}
			if len(p.tunnels) > 0 {
				t.Error(p.tunnels)
			}
		})
	}
}
