package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

// watch notices that a client leaves while its request is being served: reading the connection then
// fails. It starts to read only after watchAfter, so that a quick request pays nothing for it, not
// even for a timer: that keeps running from one request to the next.
type watch struct {
	peer *peer

	mu        sync.Mutex
	stopped   sync.Cond   // signals the end of the read
	timer     *time.Timer // starts the read; nil: not used yet
	timerRuns bool
	fresh     bool // the request came after the timer was set
	state     int
	cancel    context.CancelFunc // ends the context of the request; nil: there is no request
	byte      [1]byte            // the first byte of the next request, if hasByte
	hasByte   bool
}

// The states of a watch.
const (
	watchIdle    = iota
	watchWaiting // it starts to read when the timer fires
	watchReading
	watchStopping // it reads, and has to stop
)

// watchAfter is how long a request may take before its client is watched. At most twice that time
// passes unwatched.
const watchAfter = 20 * time.Millisecond

func (w *watch) init(p *peer) {
	w.peer = p
	w.stopped.L = &w.mu
}

// beginRequest begins a request.
func (w *watch) beginRequest(cancel context.CancelFunc) {
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

// start watches the client from watchAfter on. The whole request must have been read. After the end
// of the request it does nothing.
func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil || w.hasByte || w.state != watchIdle {
		return
	}
	w.state, w.fresh = watchWaiting, true
	if !w.timerRuns {
		w.time()
	}
}

func (w *watch) time() {
	w.timerRuns, w.fresh = true, false
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, w.run)
		return
	}
	w.timer.Reset(watchAfter)
}

// stop ends the watch, and waits until it has stopped reading.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == watchReading {
		w.state = watchStopping
		w.peer.reads.end()
		for w.state == watchStopping {
			w.stopped.Wait()
		}
		w.peer.reads.until(time.Time{})
	}
	w.state, w.cancel = watchIdle, nil
	if w.peer.reader == nil {
		w.peer.borrowReader()
	}
}

// run reads one byte. That is either the first byte of a next request, or the end of the
// connection.
func (w *watch) run() {
	if !w.shouldRead() {
		return
	}
	for {
		n, err := w.peer.conn.Read(w.byte[:])
		if w.ended(n, err) {
			return
		}
	}
}

// shouldRead reports whether it is time to read.
func (w *watch) shouldRead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timerRuns = false
	if w.state != watchWaiting {
		return false
	}
	if w.fresh {
		w.time()
		return false
	}
	w.state = watchReading
	w.peer.returnReader()
	return true
}

// ended handles the result of a read, and reports whether the watch is over.
func (w *watch) ended(n int, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	timeout, ok := err.(net.Error)
	late := ok && timeout.Timeout()
	switch {
	case n > 0:
		w.hasByte = true
	case late && w.state == watchReading:
		w.peer.reads.until(time.Time{}) // ignores the handler's read deadline: there is no body left
		w.peer.reads.tooSoon(err)
		return false
	case !late:
		w.cancel()
	}
	w.state = watchIdle
	w.stopped.Broadcast()
	return true
}

// take moves the first byte of the next request to b, if it has come.
func (w *watch) take(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hasByte || len(b) == 0 {
		return false
	}
	b[0], w.hasByte = w.byte[0], false
	return true
}
