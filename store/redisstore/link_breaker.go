package redisstore

import (
	"errors"
	"time"
)

// breaker is a circuit breaker: it keeps callers from waiting for a lost server. It opens when a batch
// was not answered within the timeout, or the server has rejected it. While it is open, ops of its
// group fail at once, and a prober asks whether the server is back.
type breaker struct {
	group  int
	err    error         // why the group is lost; nil while the breaker is closed
	forgot []int         // the parts of which the server has forgotten everything, and that are not put back yet
	healed chan struct{} // closed when the breaker next closes
}

// change says that a group of the keyspace is lost, or is back.
type change struct {
	lost  bool
	group int
	err   error // why the group is lost
}

// healed returns a channel that is closed when the breaker next closes.
func (l *link) healed(b *breaker) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.healed
}

// trip opens the breaker of a queue, and fails all ops that wait in the queues of that breaker.
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

// heal closes a breaker. The caller has locked the link.
func (l *link) heal(b *breaker) {
	if b.err == nil || len(b.forgot) > 0 {
		return
	}
	b.err = nil
	close(b.healed)
	b.healed = make(chan struct{})
	l.report(change{group: b.group})
}

// probe sends empty batches until one is answered, which closes the breaker. An empty batch writes its
// marker, because a server that cannot write is as good as lost. So is one that takes longer to answer than calls wait:
// if a probe had to connect first and was slow, the next one finds out.
func (l *link) probe(q *queue, healed <-chan struct{}) {
	for tries := 0; l.pause(healed, backoff(50*time.Millisecond, tries)); tries++ {
		l.mu.Lock()
		b := l.newBatch(q)
		b.probes = true
		back := q.breaker.healed != healed
		l.mu.Unlock()
		if back {
			return
		}
		r, err := l.try(b)
		if errors.Is(err, errForgotten) { // it has, and knows that now
			r, err = l.try(b)
		}
		if err == nil && !r.slow && l.restore(q.breaker) {
			l.deliver(b, r)
			return
		}
	}
}

// report passes a change to the link's user. The caller has locked the link.
func (l *link) report(c change) {
	if l.cfg.changed != nil {
		l.cfg.changed(c)
	}
}
