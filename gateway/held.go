package gateway

import "errors"

// errFull is that there is no room for more of a body.
var errFull = errors.New("ratelimit: the gateway holds as much as it may")

// held is the body of a call, which counts as held from when it comes to when the answer
// begins: those who wait hold theirs for long.
type held struct{ x *exchange }

func (h held) Read(p []byte) (int, error) {
	n, err := h.x.r.Body.Read(p)
	h.x.holds += int64(n)
	if h.x.g.held.Add(int64(n)) > h.x.cfg.Server.MaxBodies {
		err = errFull
	}
	return n, err
}

// release lets go of the body.
func (x *exchange) release() {
	x.g.held.Add(-x.holds)
	x.holds, x.body = 0, nil
}
