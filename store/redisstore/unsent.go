package redisstore

import (
	"errors"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// giveBack undoes a take whose caller has left before it was answered.
func (r *remote) giveBack(o *op, charges []store.Charge) {
	t, err := hear(o, charges)
	if err == nil && t.status == allowed {
		r.undo(t.takes())
	}
}

// undo gives back what was taken, without waiting for it.
func (r *remote) undo(takes []*taken) {
	for _, part := range r.byPart(len(takes), func(i int) string { return takes[i].charge.Key }) {
		r.send(r.settle(pick(takes, part), make([]int64, len(part)), true))
	}
}

// send does an op without waiting for it. One that has not happened is sent again
// when Redis is back, or a while later.
func (r *remote) send(o *op) {
	o.failed = r.keep
	if err := r.link.send(o); errors.Is(err, ErrLost) {
		r.keep(o, false)
	}
}

// keep keeps an op to be sent again, unless it may have happened.
func (r *remote) keep(o *op, maybe bool) {
	if maybe {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsent) == 0 {
		time.AfterFunc(r.timeout, r.resend)
	}
	if len(r.unsent) < mostUnsent {
		r.unsent = append(r.unsent, &op{part: o.part, keys: o.keys, body: o.body})
	}
}

// resend sends what could not be sent.
func (r *remote) resend() {
	r.mu.Lock()
	unsent := r.unsent
	r.unsent = nil
	r.mu.Unlock()
	for _, o := range unsent {
		r.send(o)
	}
}

const mostUnsent = 4096 // ops; those beyond leave what was taken
