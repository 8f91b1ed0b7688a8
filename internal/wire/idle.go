package wire

import (
	"cmp"
	"time"
)

// take returns an idle connection to an origin, or nil. It prefers the one that was used last, so
// that superfluous ones reach their timeout.
func (t *Transport) take(at origin) *conn {
	for {
		c := t.pop(at)
		if c == nil || c.silent() {
			return c
		}
		c.hangUp()
	}
}

func (t *Transport) pop(at origin) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.idle[at]
	if len(list) == 0 {
		return nil
	}
	last := len(list) - 1
	c := list[last]
	list[last] = nil
	t.idle[at] = list[:last]
	return c
}

// put keeps a connection for the next request, or closes it if enough are idle.
func (t *Transport) put(c *conn) {
	c.used, c.since = true, time.Now()
	if !t.push(c) {
		c.hangUp()
	}
}

func (t *Transport) push(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.idle[c.origin]
	if len(list) >= cmp.Or(t.MaxIdle, 512) {
		return false
	}
	if t.idle == nil {
		t.idle = make(map[origin][]*conn)
	}
	t.idle[c.origin] = append(list, c)
	if t.janitor == nil {
		t.janitor = time.AfterFunc(t.idleTimeout(), t.sweep)
	}
	return true
}

func (t *Transport) idleTimeout() time.Duration { return cmp.Or(t.IdleTimeout, time.Minute) }

// sweep closes connections that were idle for too long, and sets the timer for the next one.
func (t *Transport) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	next := time.Duration(0)
	for at, list := range t.idle {
		for len(list) > 0 && now.Sub(list[0].since) >= t.idleTimeout() {
			list[0].hangUp()
			list[0] = nil
			list = list[1:]
		}
		if len(list) == 0 {
			delete(t.idle, at)
			continue
		}
		t.idle[at] = list
		if left := t.idleTimeout() - now.Sub(list[0].since); next == 0 || left < next {
			next = left
		}
	}
	if next == 0 {
		t.janitor = nil
		return
	}
	t.janitor.Reset(next)
}

// CloseIdleConnections closes the connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, list := range t.idle {
		for _, c := range list {
			c.hangUp()
		}
	}
	clear(t.idle)
	if t.janitor != nil {
		t.janitor.Stop()
		t.janitor = nil
	}
}
