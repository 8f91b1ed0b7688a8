package gateway

import (
	"errors"
	"runtime"
)

// errNoMemory is the error of a body for which there is no memory left within max_bodies.
var errNoMemory = errors.New("ratelimit: the gateway holds as much as it may")

// grow returns text in a buffer with room for so many bytes. The whole buffer counts towards
// max_bodies, filled or not, from before it is allocated until the answer begins: the bodies
// of waiting calls are in memory for long.
func (x *exchange) grow(text []byte, room int64) ([]byte, error) {
	if err := x.reserveBytes(room - int64(cap(text))); err != nil {
		return text, err
	}
	grown := make([]byte, len(text), room)
	copy(grown, text)
	x.g.track(grown)
	return grown, nil
}

// reserveBytes counts n more bytes of this request towards max_bodies. It returns errNoMemory
// if that is too many; release takes them back in any case.
func (x *exchange) reserveBytes(n int64) error {
	x.bodyBytes += n
	if x.g.bodyBytes.Add(n) > x.cfg.Server.MaxBodies {
		return errNoMemory
	}
	x.g.collect(n, x.cfg.Server.MaxBodies)
	return nil
}

// collect runs the garbage collector before n more bytes are allocated for a body, if bodies
// that are not needed any more take up much memory: an eighth of maxBodies.
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

// release drops the body, and takes its bytes off those that count towards max_bodies.
func (x *exchange) release() {
	x.g.bodyBytes.Add(-x.bodyBytes)
	x.bodyBytes, x.body, x.call.Fit.Body = 0, nil, nil
}

// Bodies returns how many bytes of memory large bodies take up. Bodies that are not needed any
// more count until the garbage collector has freed them.
func (g *Gateway) Bodies() int64 { return g.bodyMemory.Load() }
