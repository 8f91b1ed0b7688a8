package gateway

import (
	"errors"
	"runtime"
)

// errNoMemory is the error of a body for which there is no memory left within max_bodies.
var errNoMemory = errors.New("ratelimit: the gateway holds as much as it may")

// grow returns text in a buffer of the size that room says. The room counts as held whether it is
// filled or not, from before it is allocated until the answer begins: the bodies of calls
// that wait are in memory for long.
func (x *exchange) grow(text []byte, room int64) ([]byte, error) {
	if err := x.holdBytes(room - int64(cap(text))); err != nil {
		return text, err
	}
	grown := make([]byte, len(text), room)
	copy(grown, text)
	x.g.track(grown)
	return grown, nil
}

// holdBytes adds to the bytes that the gateway holds, or returns errNoMemory.
func (x *exchange) holdBytes(n int64) error {
	x.heldBytes += n
	if x.g.heldBytes.Add(n) > x.cfg.Server.MaxBodies {
		return errNoMemory
	}
	x.g.collect(n, x.cfg.Server.MaxBodies)
	return nil
}

// collect runs the garbage collector before n more bytes are allocated for a body, if
// bodies that nobody holds any more take up much: an eighth of maxBodies.
func (g *Gateway) collect(n, maxBodies int64) {
	full := func() bool { return n > maxPreallocated && g.bodyMemory.Load()+n > maxBodies+maxBodies/8 }
	if !full() {
		return
	}
	g.collecting.Lock()
	defer g.collecting.Unlock()
	if full() { // another request may have collected meanwhile
		runtime.GC()
	}
}

// track counts the memory of a large body until the garbage collector frees it.
func (g *Gateway) track(body []byte) {
	if cap(body) <= maxPreallocated {
		return
	}
	g.bodyMemory.Add(int64(cap(body)))
	runtime.AddCleanup(&body[:1][0], func(n int64) { g.bodyMemory.Add(-n) }, int64(cap(body)))
}

// release lets go of the body.
func (x *exchange) release() {
	x.g.heldBytes.Add(-x.heldBytes)
	x.heldBytes, x.body = 0, nil
}

// Bodies returns how many bytes of memory large bodies take up, with those that nobody holds
// any more and the garbage collector has not freed yet.
func (g *Gateway) Bodies() int64 { return g.bodyMemory.Load() }
