package gateway

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// health is the health of a deployment.
type health struct {
	active      atomic.Int64 // calls in progress
	failedUntil atomic.Int64 // Unix nanoseconds: until then, calls prefer other deployments

	// forbidden has hashes of the models for which the deployment has answered 403. Clients
	// choose models, so a 403 does not concern other models.
	forbidden expiringSet
}

// unhealthyFor is how long calls prefer other deployments to one that has failed.
const unhealthyFor = 10 * time.Second

// markFailed records that the deployment could not be reached, or has failed.
func (h *health) markFailed() { h.failedUntil.Store(time.Now().Add(unhealthyFor).UnixNano()) }

// observe records the status of an answer to a call of a model. A status that throttles does
// not concern the deployment's health.
func (h *health) observe(status int, model string) {
	switch {
	case status == 403:
		h.forbidden.add(maphash.String(hashSeed, model), unhealthyFor)
	case status == 401 || status >= 500 && !dialect.MayThrottle(status):
		h.markFailed()
	case status < 300 && h.failedUntil.Load() != 0:
		h.failedUntil.Store(0)
	}
}

// healthy reports whether the deployment has not failed lately, nor forbidden calls of a model.
func (h *health) healthy(now time.Time, model string) bool {
	return now.UnixNano() >= h.failedUntil.Load() && !h.forbidden.has(maphash.String(hashSeed, model))
}
