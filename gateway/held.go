package gateway

import (
	"errors"
	"runtime"
)

// errFull is that there is no room for more of a body.
var errFull = errors.New("ratelimit: the gateway holds as much as it may")

// grow returns a body with more room. What is held is the room, whether it is filled or
// not: it counts from before it is made to when the answer begins. Calls that wait hold
// theirs for long.
func (x *exchange) grow(text []byte, room int64) ([]byte, error) {
	if err := x.hold(room - int64(cap(text))); err != nil {
		return text, err
	}
	grown := make([]byte, len(text), room)
	copy(grown, text)
	x.g.track(grown)
	return grown, nil
}

// hold adds a number of bytes to what the gateway holds of bodies, if there is room for them.
func (x *exchange) hold(more int64) error {
	x.holds += more
	if x.g.held.Add(more) > x.cfg.Server.MaxBodies {
		return errFull
	}
	x.g.collect(more, x.cfg.Server.MaxBodies)
	return nil
}

// collect has garbage collected before there is more memory for bodies, if much of what
// they have is held no more: an eighth of what may be held.
func (g *Gateway) collect(more, most int64) {
	full := func() bool { return more > mostTrusted && g.bodies.Load()+more > most+most/8 }
	if !full() {
		return
	}
	g.collecting.Lock()
	defer g.collecting.Unlock()
	if full() { // nobody else has collected it meanwhile
		runtime.GC()
	}
}

// track counts the memory of a large body until it is collected.
func (g *Gateway) track(body []byte) {
	if cap(body) <= mostTrusted {
		return
	}
	g.bodies.Add(int64(cap(body)))
	runtime.AddCleanup(&body[:1][0], func(n int64) { g.bodies.Add(-n) }, int64(cap(body)))
}

// release lets go of the body.
func (x *exchange) release() {
	x.g.held.Add(-x.holds)
	x.holds, x.body = 0, nil
}

// Bodies returns how many bytes of memory large bodies have, with those that are held no
// more but were not collected yet.
func (g *Gateway) Bodies() int64 { return g.bodies.Load() }
