package server

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// crowd is a listener that bounds its open connections, so that idle ones do not use up the descriptors of the process.
// When there are too many, it closes those that have been idle for longest, of the address that has most of them. A
// connection with a request in progress, or with one that is still to be read, is never closed: while all have one,
// further clients wait to be served.
type crowd struct {
	net.Listener
	most   int // open connections; 0: any number
	mostOf int // open connections of one address, beyond which idle ones are closed

	mu      sync.Mutex
	free    sync.Cond // signals that a connection or the listener is closed, or that it is time to look again
	members map[*member]struct{}
	counts  map[string]int // of members, by their addresses
	closed  bool
	waiting bool // makeRoom waits
}

// mostOfAddress is how many connections one address may have before those that are idle are closed. A proxy in front of
// the gateway may have more of them that are busy.
const mostOfAddress = 4096

// newCrowd returns a listener that bounds its open connections. most is the bound; 0 is none.
func newCrowd(l net.Listener, most int) *crowd {
	c := &crowd{Listener: l, most: most, mostOf: mostOfAddress, members: map[*member]struct{}{}, counts: map[string]int{}}
	c.free.L = &c.mu
	return c
}

// member is an open connection of a crowd.
type member struct {
	net.Conn
	crowd   *crowd
	address string
	idle    atomic.Int64 // when its idle time began, in Unix nanoseconds; or busy, or evicted
}

const (
	busy    = 0
	evicted = -1
)

// idleTime is how long a connection must be idle before it is closed: the first request of a new one may be on its way.
const idleTime = 100 * time.Millisecond

// Accept implements [net.Listener].
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	m := &member{Conn: conn, crowd: c, address: addressOf(conn.RemoteAddr())} // busy, so that it does not make room for itself
	defer m.End()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[m] = struct{}{}
	c.counts[m.address]++
	if c.counts[m.address] > c.mostOf {
		c.evict(m.address)
	}
	c.makeRoom()
	return m, nil
}

// makeRoom closes idle connections while there are too many. If there are none, it waits.
func (c *crowd) makeRoom() {
	for c.most > 0 && len(c.members) > c.most && !c.closed {
		c.waiting = true
		if address, found := c.idlest(); found {
			c.evict(address)
			continue
		}
		timer := time.AfterFunc(idleTime, c.wake)
		c.free.Wait()
		timer.Stop()
	}
	c.waiting = false
}

// wake has makeRoom look again for connections that it can close.
func (c *crowd) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free.Broadcast()
}

// idleSince returns when the connection has become idle, in Unix nanoseconds. ok is false if it is not to be closed:
// it is busy, or has a request that a busy machine has not read yet.
func (m *member) idleSince(now time.Time) (at int64, ok bool) {
	at = m.idle.Load()
	return at, at > 0 && at <= now.Add(-idleTime).UnixNano() && !unread(m.Conn)
}

// idlest returns the address that has most idle connections. found is false if none has any.
func (c *crowd) idlest() (address string, found bool) {
	idle, most, now := map[string]int{}, 0, time.Now()
	for m := range c.members {
		if _, ok := m.idleSince(now); ok {
			idle[m.address]++
			if idle[m.address] > most {
				address, most = m.address, idle[m.address]
			}
		}
	}
	return address, most > 0
}

// evict closes the connections of an address that have been idle for longest. It closes several, so that it need not
// look at all connections for every client that comes, and half of them at most.
func (c *crowd) evict(address string) {
	type since struct {
		*member
		at int64
	}
	var idle []since
	now := time.Now()
	for m := range c.members {
		if at, ok := m.idleSince(now); ok && m.address == address {
			idle = append(idle, since{m, at})
		}
	}
	slices.SortFunc(idle, func(a, b since) int { return cmp.Compare(a.at, b.at) })
	for _, each := range idle[:min((len(idle)+1)/2, 64)] {
		if each.idle.CompareAndSwap(each.at, evicted) {
			each.Conn.Close()
			c.remove(each.member)
		}
	}
}

// remove removes a connection that is closed, unless it was removed before.
func (c *crowd) remove(m *member) {
	if _, open := c.members[m]; !open {
		return
	}
	delete(c.members, m)
	c.counts[m.address]--
	if c.counts[m.address] == 0 {
		delete(c.counts, m.address)
	}
	c.free.Broadcast()
}

// Close implements [net.Listener].
func (c *crowd) Close() error {
	c.mu.Lock()
	c.closed = true
	c.free.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// Begin says that a request is in progress. It returns false if the connection was closed before.
func (m *member) Begin() bool {
	return m.idle.Swap(busy) != evicted
}

// End says that no request is in progress any more.
func (m *member) End() {
	m.idle.Store(time.Now().UnixNano())
}

// Close implements [net.Conn].
func (m *member) Close() error {
	m.crowd.mu.Lock()
	m.crowd.remove(m)
	m.crowd.mu.Unlock()
	return m.Conn.Close()
}

// CloseWrite closes the connection for writing.
func (m *member) CloseWrite() error {
	if half, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// follow marks a connection of net/http's server as busy or idle.
func follow(c net.Conn, state http.ConnState) {
	if layer, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = layer.NetConn()
	}
	m, ok := c.(*member)
	switch {
	case !ok:
	case state == http.StateActive:
		m.Begin()
	case state == http.StateIdle:
		m.End()
	}
}

// addressOf returns the address whose connections count together: of IPv6, the network of a customer.
func addressOf(remote net.Addr) string {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return ""
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if address.Is6() {
		return netip.PrefixFrom(address, 64).Masked().String()
	}
	return address.String()
}
