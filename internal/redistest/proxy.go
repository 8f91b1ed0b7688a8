package redistest

import (
	"net"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Proxy stands between clients and a server, and fails on demand. Faults add up, and may be changed
// at any time. An answer is anything that the server sends, including its answer to a client's
// greeting: call ResetAfter and DropAnswer when the client is connected.
type Proxy struct {
	Addr string // host:port

	t      testing.TB
	target string
	tasks  sync.WaitGroup

	listenerMu sync.Mutex
	listener   *net.TCPListener // nil: new connections are refused
	acceptDone chan struct{}    // closed when the listener has accepted its last connection
	closed     bool

	mu      sync.Mutex
	changed sync.Cond // signals that a fault has changed, or a tunnel is closed
	faults  faults
	tunnels map[*tunnel]bool
}

type faults struct {
	stalled        bool // nothing passes
	answersStalled bool // no answer passes
	delay          time.Duration
	cut            *cut // of the next answer
}

// cut is the end of a connection in the middle of an answer.
type cut struct {
	after int // bytes
	reset bool
}

// NewProxy returns a proxy to the server at target (host:port), without a fault, that runs until
// the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{Addr: testkit.NewPort(t).Addr, t: t, target: target, tunnels: map[*tunnel]bool{}}
	p.changed.L = &p.mu
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// URL returns the address for clients.
func (p *Proxy) URL() string { return "redis://" + p.Addr }

// PatientURL is URL for clients that take a slow answer of a busy machine for no loss, and notice within two seconds
// that nothing answers.
func (p *Proxy) PatientURL() string { return p.URL() + "?timeout=2s" }

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.listenerMu.Lock()
	defer p.listenerMu.Unlock()
	p.shut()
}

// Stall passes nothing on, in either direction. Connections stay, and new ones are accepted. What
// it holds passes after Heal, as when a network comes back: a server may get a request that the
// client has given up long ago.
func (p *Proxy) Stall() {
	p.change(func(f *faults) { f.stalled = true })
}

// StallAnswers passes requests on and holds the answers. These are lost: Heal closes the
// connections that have any.
func (p *Proxy) StallAnswers() {
	p.change(func(f *faults) { f.answersStalled = true })
}

// Delay delays answers.
func (p *Proxy) Delay(d time.Duration) {
	p.change(func(f *faults) { f.delay = d })
}

// ResetAfter resets the connection of the next answer, after n more bytes to the client. It happens
// once.
func (p *Proxy) ResetAfter(n int) {
	p.change(func(f *faults) { f.cut = &cut{after: n, reset: true} })
}

// DropAnswer drops the next answer and closes its connection: the server has run the command, and
// the client does not know. It happens once.
func (p *Proxy) DropAnswer() {
	p.change(func(f *faults) { f.cut = &cut{} })
}

// Heal ends all faults, including those that have not happened yet.
func (p *Proxy) Heal() {
	p.t.Helper()
	p.change(func(f *faults) {
		*f = faults{}
		for c := range p.tunnels {
			if c.holdsAnswer {
				c.close()
			}
		}
	})
	p.listenerMu.Lock()
	defer p.listenerMu.Unlock()
	if p.closed || p.listener != nil {
		return
	}
	if err := p.open(); err != nil {
		p.t.Errorf("ratelimit: the proxy cannot accept connections again: %v", err)
	}
}

// Close ends the proxy and all connections. It returns when nothing is left.
func (p *Proxy) Close() {
	p.listenerMu.Lock()
	defer p.listenerMu.Unlock()
	p.closed = true
	p.shut()
	p.tasks.Wait()
}

func (p *Proxy) change(f func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.faults)
	p.changed.Broadcast()
}

// open accepts connections.
func (p *Proxy) open() error {
	listener, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	l, done := listener.(*net.TCPListener), make(chan struct{})
	p.listener, p.acceptDone = l, done
	go func() {
		defer close(done)
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return
			}
			p.accept(conn)
		}
	}()
	return nil
}

// shut accepts no more connections, and then closes all.
func (p *Proxy) shut() {
	if p.listener == nil {
		return
	}
	closeListener(p.listener)
	<-p.acceptDone
	p.listener = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.tunnels {
		c.close()
	}
}

func (p *Proxy) accept(client *net.TCPConn) {
	c := &tunnel{proxy: p, client: client, done: make(chan struct{})}
	p.mu.Lock()
	p.tunnels[c] = true
	p.mu.Unlock()
	p.tasks.Go(c.serve)
}

// delay returns the delay of an answer that comes now.
func (p *Proxy) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults.delay
}

// takeCut returns the cut of the next answer to the first caller, and nil to others.
func (p *Proxy) takeCut() *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.faults.cut
	p.faults.cut = nil
	return c
}
