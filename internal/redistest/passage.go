package redistest

import (
	"net"
	"time"
)

// passage is a client's connection through a proxy.
type passage struct {
	proxy          *Proxy
	client, server *net.TCPConn
	done           chan struct{} // closed when the passage is

	// The proxy's lock guards these, and server until it is there.
	closed bool
	lost   bool // it holds an answer that shall never arrive
}

// piece is what came from the server in one go.
type piece struct {
	bytes []byte
	due   time.Time
}

// serve passes all on, until either side has closed the connection.
func (c *passage) serve() {
	defer c.end()
	if !c.may(false) || !c.dial() {
		return
	}
	pieces := make(chan piece, 1024)
	c.proxy.tasks.Go(c.requests)
	c.proxy.tasks.Go(func() { c.receive(pieces) })
	c.answers(pieces)
}

func (c *passage) end() {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.close()
	delete(c.proxy.passages, c)
}

// close is called with the proxy's lock.
func (c *passage) close() {
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

// may waits while the proxy is stalled, and returns whether the passage is open.
func (c *passage) may(answer bool) bool {
	p := c.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for !c.closed && (p.faults.stalled || answer && p.faults.answersStalled) {
		c.lost = c.lost || answer && p.faults.answersStalled
		p.changed.Wait()
	}
	return !c.closed
}

// dial connects to the server.
func (c *passage) dial() bool {
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

// requests passes on what the client sends. The server learns that this was all
// and closes the connection, when it has read it.
func (c *passage) requests() {
	b := make([]byte, 16<<10)
	for {
		n, ended := c.client.Read(b)
		if !c.may(false) {
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
func (c *passage) receive(pieces chan<- piece) {
	defer close(pieces)
	for {
		b := make([]byte, 16<<10)
		n, err := c.server.Read(b)
		if err != nil {
			return
		}
		select {
		case pieces <- piece{bytes: b[:n], due: time.Now().Add(c.proxy.delay())}:
		case <-c.done:
			return
		}
	}
}

// answers passes on what was received, until it is all or is cut.
func (c *passage) answers(pieces <-chan piece) {
	var cut *cut
	for p := range pieces {
		if !c.rest(time.Until(p.due)) || !c.may(true) {
			return
		}
		if cut == nil {
			cut = c.proxy.claim()
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
	c.may(true) // learn that the server has closed the connection
}

// rest waits, and returns whether the passage is open.
func (c *passage) rest(d time.Duration) bool {
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
