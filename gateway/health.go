package gateway

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
)

// health is how a deployment fares.
type health struct {
	active atomic.Int64 // calls under way
	until  atomic.Int64 // Unix nanoseconds: it has failed, and others come first until then

	// forbidden has the models that it has answered with 403. Clients choose models, so
	// that says nothing of the others.
	forbidden lately
}

// unwell is how long a deployment that has failed comes after the others.
const unwell = 10 * time.Second

// failed notes that it could not be reached.
func (h *health) failed() { h.until.Store(time.Now().Add(unwell).UnixNano()) }

// heard notes the status of an answer to a call of a model. One that says that all is
// used up says nothing of its health.
func (h *health) heard(status int, model string) {
	switch {
	case status == 403:
		h.forbidden.note(maphash.String(seed, model), unwell)
	case status == 401 || status >= 500 && !call.MayThrottle(status):
		h.failed()
	case status < 300 && h.until.Load() != 0:
		h.until.Store(0)
	}
}

// well reports whether calls of a model may go there before they go to others.
func (h *health) well(now time.Time, model string) bool {
	return now.UnixNano() >= h.until.Load() && !(h.forbidden.any() && h.forbidden.has(maphash.String(seed, model)))
}
