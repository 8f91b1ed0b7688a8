package redisstore

import "runtime"

// queue is where ops wait for a lane.
type queue struct {
	part        int // of all of them, in a cluster
	breaker     *breaker
	first, last *op
	taken       [lanes]bool
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

// enter takes a lane, if one is free.
func (q *queue) enter() (lane int, free bool) {
	for lane := range q.taken {
		if !q.taken[lane] {
			q.taken[lane] = true
			return lane, true
		}
	}
	return 0, false
}

// run sends what waits, until nothing does.
func (l *link) run(q *queue, lane int) {
	defer l.running.Done()
	crowded := false
	for {
		if crowded {
			runtime.Gosched() // those whom the last batch carried may come again
		}
		b := l.draw(q, lane)
		if b == nil {
			return
		}
		l.carry(b)
		crowded = len(b.ops) > 1
	}
}

// draw makes a batch of those who have waited longest. If nobody waits it
// gives the lane back.
func (l *link) draw(q *queue, lane int) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.first == nil {
		q.taken[lane] = false
		return nil
	}
	b := l.newBatch(q, lane)
	b.reads = q.first.reads // all of them do, or none: what is read would make a large marker
	b.ops = make([]*op, 0, min(l.waiting, mostOps))
	for q.first != nil && q.first.reads == b.reads && len(b.ops) < mostOps {
		o := q.first
		q.remove(o)
		l.waiting--
		o.state, o.batch = sent, b
		b.ops = append(b.ops, o)
	}
	return b
}

// empty appends all ops of a queue to dropped; they are over.
func (l *link) empty(q *queue, dropped []*op) []*op {
	for q.first != nil {
		o := q.first
		q.remove(o)
		l.waiting--
		o.state = over
		dropped = append(dropped, o)
	}
	return dropped
}

// finish tells the callers of ops that are over.
func finish(ops []*op, err error) {
	for _, o := range ops {
		switch {
		case o.seat != nil:
			o.err = err
			o.seat.turn <- struct{}{}
		case o.failed != nil:
			o.failed(o, false)
		}
	}
}
