package redisstore

import (
	"errors"
	"time"
)

// undoLate undoes a take whose caller has left before the answer came.
func (r *remote) undoLate(late result, t *task) {
	if late.err == nil && t.taken {
		r.undo(t.takes)
	}
}

// undo gives takes back, and does not wait for the answer.
func (r *remote) undo(takes []*chargeReceipt) {
	for _, part := range r.byPart(len(takes), func(i int) string { return takes[i].charge.Key }) {
		r.send(r.opOf(refund(pick(takes, part))))
	}
}

// refund returns the settlement of takes that gives them back.
func refund(takes []*chargeReceipt) *task {
	return &task{kind: taskSettle, takes: takes, actual: make([]int64, len(takes))}
}

// send sends an op, and does not wait for the answer. If the op has not happened, it is sent again when
// Redis is back, or after a while.
func (r *remote) send(o *op) {
	o.late = func(late result) {
		if late.notRun {
			r.keepUnsent(o)
		}
	}
	if err := r.link.send(o); errors.Is(err, ErrLost) {
		r.keepUnsent(o)
	}
}

// keepUnsent keeps an op to be sent again.
func (r *remote) keepUnsent(o *op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsent) == 0 {
		time.AfterFunc(r.timeout, r.resend)
	}
	if len(r.unsent) < maxUnsent {
		r.unsent = append(r.unsent, &op{part: o.part, task: o.task})
	}
}

// resend sends the ops that could not be sent.
func (r *remote) resend() {
	r.mu.Lock()
	unsent := r.unsent
	r.unsent = nil
	r.mu.Unlock()
	for _, o := range unsent {
		r.send(o)
	}
}

const maxUnsent = 4096 // beyond that, takes are not given back
