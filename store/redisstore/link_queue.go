package redisstore

import "runtime"

// queue is where ops wait for a lane.
type queue struct {
	part        int // of all of its ops, in a cluster
	breaker     *breaker
	first, last *op
	busy        [lanes]bool
}

func (q *queue) push(o *op) {
	o.prev = q.last
	if q.last == nil {
		q.first = o
	} else {
		q.last.next = o
	}
	q.last = o
}

func (q *queue) remove(o *op) {
	if o.prev == nil {
		q.first = o.next
	} else {
		o.prev.next = o.next
	}
	if o.next == nil {
		q.last = o.prev
	} else {
		o.next.prev = o.prev
	}
	o.prev, o.next = nil, nil
}

// takeLane takes a lane, if one is free.
func (q *queue) takeLane() (lane int, free bool) {
	for lane := range q.busy {
		if !q.busy[lane] {
			q.busy[lane] = true
			return lane, true
		}
	}
	return 0, false
}

// run sends batches until the queue is empty.
func (l *link) run(q *queue, lane int) {
	defer l.running.Done()
	crowded := false
	for {
		if crowded {
			runtime.Gosched() // lets the callers of the last batch return, so that they share the next one
		}
		b := l.nextBatch(q, lane)
		if b == nil {
			return
		}
		l.sendBatch(b)
		crowded = len(b.ops) > 1
	}
}

// nextBatch makes a batch of the ops that have waited longest. If there are none it frees the lane.
func (l *link) nextBatch(q *queue, lane int) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.first == nil {
		q.busy[lane] = false
		return nil
	}
	b := l.newBatch(q, lane)
	b.reads = q.first.reads // reads are not mixed with writes: their answers would make the marker large
	b.ops = make([]*op, 0, min(l.queued, maxBatchOps))
	for q.first != nil && q.first.reads == b.reads && len(b.ops) < maxBatchOps {
		o := q.first
		q.remove(o)
		l.queued--
		o.state, o.batch = opSent, b
		b.ops = append(b.ops, o)
	}
	return b
}

// drainQueue appends all ops of a queue to dropped, and finishes them.
func (l *link) drainQueue(q *queue, dropped []*op) []*op {
	for q.first != nil {
		o := q.first
		q.remove(o)
		l.queued--
		o.state = opFinished
		dropped = append(dropped, o)
	}
	return dropped
}

// answerOps answers the callers of finished ops.
func answerOps(ops []*op, err error) {
	for _, o := range ops {
		switch {
		case o.waiter != nil:
			o.err = err
			o.waiter.done <- struct{}{}
		case o.onFailed != nil:
			o.onFailed(o, false)
		}
	}
}
