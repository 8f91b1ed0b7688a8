package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

// watch notices that a client leaves while its request is being served: the end of the
// connection can be read then. It begins only if that takes longer than a moment, so
// that what is answered at once pays nothing for it: not even for a timer, which goes on
// from one request to the next.
type watch struct {
	peer *peer

	mu     sync.Mutex
	over   sync.Cond   // it does not read any more
	timer  *time.Timer // after which it begins to read; nil: there was none yet
	timed  bool        // the timer runs
	young  bool        // the request has come since it was set
	state  int
	cancel context.CancelFunc // of the request; nil: there is none
	byte   [1]byte            // that has come of the next request
	has    bool
}

// The states of a watch.
const (
	asleep   = iota
	rising   // it is about to read
	looking  // it reads
	stopping // it reads, and is to stop
)

// watchAfter is how long a request may take before its client is watched: no longer
// than twice that passes unwatched.
const watchAfter = 20 * time.Millisecond

func (w *watch) init(p *peer) {
	w.peer = p
	w.over.L = &w.mu
}

// open begins a request.
func (w *watch) open(cancel context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = cancel
}

// hangUp ends the context of the request, if there is one.
func (w *watch) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
}

// start watches the client from a moment later on. All of the request must have been
// read. Who reads the end of a request that is over starts nothing.
func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil || w.has || w.state != asleep {
		return
	}
	w.state, w.young = rising, true
	if !w.timed {
		w.time()
	}
}

func (w *watch) time() {
	w.timed, w.young = true, false
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, w.run)
		return
	}
	w.timer.Reset(watchAfter)
}

// stop ends the watch, and waits for that.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == looking {
		w.state = stopping
		w.peer.reads.end()
		for w.state == stopping {
			w.over.Wait()
		}
		w.peer.reads.until(time.Time{})
	}
	w.state, w.cancel = asleep, nil
	if w.peer.reader == nil {
		w.peer.borrowReader()
	}
}

// run reads a byte. Only that of a next request comes before the end.
func (w *watch) run() {
	if !w.begin() {
		return
	}
	for {
		n, err := w.peer.conn.Read(w.byte[:])
		if w.ended(n, err) {
			return
		}
	}
}

// begin reports whether the time has come to read.
func (w *watch) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timed = false
	if w.state != rising {
		return false
	}
	if w.young {
		w.time()
		return false
	}
	w.state = looking
	w.peer.returnReader()
	return true
}

// ended heeds what was read. It reports whether there is nothing more to read.
func (w *watch) ended(n int, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	timeout, ok := err.(net.Error)
	late := ok && timeout.Timeout()
	switch {
	case n > 0:
		w.has = true
	case late && w.state == looking:
		w.peer.reads.until(time.Time{}) // whatever the handler has said: there is no body to wait for
		w.peer.reads.tooSoon(err)
		return false
	case !late:
		w.cancel()
	}
	w.state = asleep
	w.over.Broadcast()
	return true
}

// take moves the byte of the next request, if there is one.
func (w *watch) take(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.has || len(b) == 0 {
		return false
	}
	b[0], w.has = w.byte[0], false
	return true
}
