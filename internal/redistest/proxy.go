package redistest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and a server, and fails on demand. Faults add up,
// and may be changed at any time. An answer is whatever the server sends, its
// answer to a client's greeting too: arm ResetAfter and DropAnswer when the
// client is connected.
type Proxy struct {
	Addr string // host:port

	t      testing.TB
	target string
	tasks  sync.WaitGroup

	door     sync.Mutex
	listener *net.TCPListener // nil: new connections are refused
	deaf     chan struct{}    // closed when the listener has accepted its last
	closed   bool

	mu       sync.Mutex
	changed  sync.Cond // a fault, or whether a passage is closed
	faults   faults
	passages map[*passage]bool
}

type faults struct {
	stalled        bool // nothing passes
	answersStalled bool // no answer passes
	delay          time.Duration
	cut            *cut // of the next answer
}

// cut is the end of a connection in the midst of an answer.
type cut struct {
	after int // bytes
	reset bool
}

// NewProxy returns a proxy to the server at target (host:port), without a fault,
// that runs until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), t: t, target: target, passages: map[*passage]bool{}}
	p.changed.L = &p.mu
	p.open(l)
	t.Cleanup(p.Close)
	return p
}

// URL returns the address as clients want it.
func (p *Proxy) URL() string { return "redis://" + p.Addr }

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.door.Lock()
	defer p.door.Unlock()
	p.shut()
}

// Stall passes nothing on, either way. Connections stay, new ones are accepted.
// What is held passes when it heals, as when a network comes back: a server may
// get a request that the client gave up long ago.
func (p *Proxy) Stall() {
	p.change(func(f *faults) { f.stalled = true })
}

// StallAnswers passes requests on and holds the answers. These are lost: when it
// heals, connections that have any are closed.
func (p *Proxy) StallAnswers() {
	p.change(func(f *faults) { f.answersStalled = true })
}

// Delay passes answers on that much later than they come.
func (p *Proxy) Delay(d time.Duration) {
	p.change(func(f *faults) { f.delay = d })
}

// ResetAfter resets the connection that gets the next answer, after n more bytes
// to the client. It happens once.
func (p *Proxy) ResetAfter(n int) {
	p.change(func(f *faults) { f.cut = &cut{after: n, reset: true} })
}

// DropAnswer throws the next answer away and closes its connection: the server
// has done what it was told, and the client does not know. It happens once.
func (p *Proxy) DropAnswer() {
	p.change(func(f *faults) { f.cut = &cut{} })
}

// Heal ends all faults, those too that are yet to happen.
func (p *Proxy) Heal() {
	p.t.Helper()
	p.change(func(f *faults) {
		*f = faults{}
		for c := range p.passages {
			if c.lost {
				c.close()
			}
		}
	})
	p.door.Lock()
	defer p.door.Unlock()
	if p.closed || p.listener != nil {
		return
	}
	l, err := listenOn(p.Addr)
	if err != nil {
		p.t.Errorf("ratelimit: the proxy cannot accept connections again: %v", err)
		return
	}
	p.open(l)
}

// Close ends the proxy and all connections. It returns when nothing is left.
func (p *Proxy) Close() {
	p.door.Lock()
	defer p.door.Unlock()
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

// open accepts connections from l.
func (p *Proxy) open(l *net.TCPListener) {
	deaf := make(chan struct{})
	p.listener, p.deaf = l, deaf
	go func() {
		defer close(deaf)
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return
			}
			p.accept(conn)
		}
	}()
}

// shut accepts no more connections, and then closes all.
func (p *Proxy) shut() {
	if p.listener == nil {
		return
	}
	deafen(p.listener)
	<-p.deaf
	p.listener = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.passages {
		c.close()
	}
}

func (p *Proxy) accept(client *net.TCPConn) {
	c := &passage{proxy: p, client: client, done: make(chan struct{})}
	p.mu.Lock()
	p.passages[c] = true
	p.mu.Unlock()
	p.tasks.Go(c.serve)
}

// delay returns how much later answers pass that come now.
func (p *Proxy) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults.delay
}

// claim returns the cut of the next answer to whoever comes first, else nil.
func (p *Proxy) claim() *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.faults.cut
	p.faults.cut = nil
	return c
}
