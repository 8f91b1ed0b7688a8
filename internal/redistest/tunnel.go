package redistest

import (
	"net"
	"time"
)

// tunnel is a client's connection through a proxy.
type tunnel struct {
	proxy          *Proxy
	client, server *net.TCPConn
	done           chan struct{} // closed with the tunnel

	// The proxy's lock guards these fields, and server until it is set.
	closed      bool
	holdsAnswer bool // it holds an answer that must never arrive
}

// chunk is what came from the server in one read.
type chunk struct {
	bytes []byte
	due   time.Time
}

// serve passes everything on until either side has closed the connection.
func (c *tunnel) serve() {
	defer c.finish()
	if !c.awaitFlow(false) || !c.dial() {
		return
	}
	pieces := make(chan chunk, 1024)
	c.proxy.tasks.Go(c.requests)
	c.proxy.tasks.Go(func() { c.receive(pieces) })
	c.answers(pieces)
}

func (c *tunnel) finish() {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.close()
	delete(c.proxy.tunnels, c)
}

// close is called with the proxy's lock.
func (c *tunnel) close() {
	if c.closed {
		return
	}
	c.closed = true
	close(c.done)
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
	c.proxy.changed.Broadcast()
}

// awaitFlow waits while the proxy is stalled, and reports whether the tunnel is open. answer says
// whether the data is an answer.
func (c *tunnel) awaitFlow(answer bool) bool {
	p := c.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for !c.closed && (p.faults.stalled || answer && p.faults.answersStalled) {
		c.holdsAnswer = c.holdsAnswer || answer && p.faults.answersStalled
		p.changed.Wait()
	}
	return !c.closed
}

// dial connects to the server.
func (c *tunnel) dial() bool {
	conn, err := net.Dial("tcp", c.proxy.target)
	if err != nil {
		return false
	}
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	if c.closed {
		conn.Close()
		return false
	}
	c.server = conn.(*net.TCPConn)
	return true
}

// requests passes on what the client sends. At the end the server reads everything, and then closes
// the connection.
func (c *tunnel) requests() {
	b := make([]byte, 16<<10)
	for {
		n, ended := c.client.Read(b)
		if !c.awaitFlow(false) {
			return
		}
		if ended != nil {
			c.server.CloseWrite()
			return
		}
		if _, err := c.server.Write(b[:n]); err != nil {
			return
		}
	}
}

// receive reads what the server sends.
func (c *tunnel) receive(pieces chan<- chunk) {
	defer close(pieces)
	for {
		b := make([]byte, 16<<10)
		n, err := c.server.Read(b)
		if err != nil {
			return
		}
		select {
		case pieces <- chunk{bytes: b[:n], due: time.Now().Add(c.proxy.delay())}:
		case <-c.done:
			return
		}
	}
}

// answers passes on what was received, until the end or until a cut.
func (c *tunnel) answers(pieces <-chan chunk) {
	var cut *cut
	for p := range pieces {
		if !c.sleep(time.Until(p.due)) || !c.awaitFlow(true) {
			return
		}
		if cut == nil {
			cut = c.proxy.takeCut()
		}
		if cut != nil && cut.after <= len(p.bytes) {
			c.client.Write(p.bytes[:cut.after])
			if cut.reset {
				c.client.SetLinger(0)
			}
			return
		}
		if _, err := c.client.Write(p.bytes); err != nil {
			return
		}
		if cut != nil {
			cut.after -= len(p.bytes)
		}
	}
	c.awaitFlow(true) // a stall also delays the end of the connection
}

// sleep waits, and reports whether the tunnel is open.
func (c *tunnel) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.done:
		return false
	}
}
