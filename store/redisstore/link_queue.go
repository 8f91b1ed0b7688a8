package redisstore

import (
	"cmp"
	"errors"
	"runtime"

	"dappco.re/go/core/go-ratelimit/store"
)

// queue is the ops that wait to be sent.
type queue struct {
	part    int // the part of all ops, in a cluster
	breaker *breaker
	ops     []*op  // in the order in which they came; ops whose callers have left are finished
	sending bool   // a goroutine sends batches
	held    bool   // a timer sends what nothing else has sent: see enqueue
	born    string // the server's birth mark, as this link knows it; "" before the first answer: see learn
	floor   floor  // of the server's clock: each master of a cluster has one of its own
}

// run sends batches until the queue is empty.
func (l *link) run(q *queue) {
	for b := l.nextBatch(q); b != nil; b = l.nextBatch(q) {
		l.sendBatch(b)
		runtime.Gosched() // lets the callers of the batch return, so that they share the next one
	}
}

// nextBatch returns a batch of the ops that have waited longest. If no ops wait, it returns nil, and the
// queue sends no more.
func (l *link) nextBatch(q *queue) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.newBatch(q)
	for len(q.ops) > 0 && len(b.ops) < maxBatchOps {
		o := q.ops[0]
		if o.state != opFinished {
			if len(b.ops) == 0 {
				b.reads = o.reads
			} else if o.reads != b.reads || o.apart || b.ops[0].apart {
				break // the marker stores all answers of a batch with writes, and the answers to reads are large
			}
			o.state, o.batch = opSent, b
			b.ops = append(b.ops, o)
			l.queued--
		}
		q.ops = q.ops[1:]
	}
	if len(b.ops) == 0 {
		q.ops, q.sending = nil, false
		return nil
	}
	return b
}

// requeue puts ops in front of a queue. Nobody needs those that are useless once their callers have left.
func (l *link) requeue(q *queue, ops []*op) {
	l.mu.Lock()
	err := q.breaker.err
	if l.closed {
		err = store.ErrClosed
	}
	var useless, waiting []*op
	for _, o := range ops {
		if err != nil || o.dropLate && o.state == opFinished {
			useless = append(useless, o)
		} else {
			o.state = opQueued
			waiting = append(waiting, o)
		}
	}
	l.queued += len(waiting)
	q.ops = append(waiting, q.ops...)
	l.mu.Unlock()
	for _, o := range useless {
		l.finish(o, result{err: cmp.Or(err, errUseless), notRun: true})
	}
}

var errUseless = errors.New("ratelimit: the caller has left")

// drain fails all ops in the queues of a breaker, or in all queues if the breaker is nil. The caller
// has locked the link. After unlocking it, the caller calls late, which passes the error to the late
// functions of the ops that no caller waits for.
func (l *link) drain(of *breaker, err error) (late func()) {
	var unheard []*op
	for i := range l.queues {
		q := &l.queues[i]
		if of != nil && q.breaker != of {
			continue
		}
		for _, o := range q.ops {
			if o.state == opFinished {
				continue
			}
			l.queued--
			if !o.resolve(result{err: err}) {
				unheard = append(unheard, o)
			}
		}
		q.ops = nil
	}
	return func() {
		for _, o := range unheard {
			l.finish(o, result{err: err, notRun: true})
		}
	}
}
