package redisstore

import "time"

// breaker keeps callers from waiting for a lost server. Once a batch was not answered within the
// timeout, or the server refused it, ops of its group fail at once. Meanwhile a prober asks whether
// the server is back.
type breaker struct {
	group  int
	err    error         // why the group is lost; nil: it is not
	healed chan struct{} // closed when it is back
}

// change says that a group of the keyspace is lost, or is back.
type change struct {
	lost  bool
	group int
	err   error // why it was lost
}

// healed returns a channel that is closed when the breaker next closes.
func (l *link) healed(b *breaker) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.healed
}

// trip opens the breaker of a queue, and fails all ops that wait behind it.
func (l *link) trip(q *queue, err error) {
	l.mu.Lock()
	if l.closed || q.breaker.err != nil {
		l.mu.Unlock()
		return
	}
	q.breaker.err = err
	late := l.drain(q.breaker, err)
	healed := q.breaker.healed
	l.running.Go(func() { l.probe(q, healed) })
	l.report(change{lost: true, group: q.breaker.group, err: err})
	l.mu.Unlock()
	late()
}

// heal closes a breaker. The link's lock is held.
func (l *link) heal(b *breaker) {
	if b.err == nil {
		return
	}
	b.err = nil
	close(b.healed)
	b.healed = make(chan struct{})
	l.report(change{group: b.group})
}

// probe sends an empty batch until the breaker closes. The batch writes its marker: a server that
// cannot write is as good as lost.
func (l *link) probe(q *queue, healed <-chan struct{}) {
	for tries := 0; l.pause(healed, backoff(50*time.Millisecond, tries)); tries++ {
		l.mu.Lock()
		b := l.newBatch(q, lanes)
		back := q.breaker.healed != healed
		l.mu.Unlock()
		if back {
			return
		}
		r, err := l.try(b)
		if err == nil {
			l.deliver(b, r)
			return
		}
	}
}

// report passes a change on. The link's lock is held.
func (l *link) report(c change) {
	if l.cfg.changed != nil {
		l.cfg.changed(c)
	}
}
