package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// parts is the number of parts of the keyspace.
const parts = 1024

const (
	maxBatchOps = 64    // how many ops a batch may have
	maxQueued   = 65536 // how many ops of a link may wait to be sent
	maxKeys     = 65535 // how many keys an op may have
)

// link sends ops to the server in batches. Ops that wait at the same time share a batch, each op
// happens exactly once, and no caller waits longer than the timeout.
//
// A queue sends one batch after another, and the server remembers the answers to its last batch. A
// batch whose answer is lost is sent again, and gets the same answers. A queue has a goroutine while
// there is something to send.
type link struct {
	client rueidis.Client
	cfg    linkConfig
	name   string // the name of the library, and of its function
	text   string // the library
	id     string // the name of this link, which no other link has
	server serverClock

	closing chan struct{}
	running sync.WaitGroup // queues and probers
	later   laters

	mu       sync.Mutex
	closed   bool
	queued   int       // the number of ops in all queues whose callers have not left
	sequence uint64    // the number of the last batch
	queues   []queue   // one for each part in a cluster, otherwise one
	breakers []breaker // one for each group in a cluster, otherwise one
}

// linkConfig configures a link.
type linkConfig struct {
	namespace string
	timeout   time.Duration        // the longest time that a call waits for its answer
	clock     func() int64         // a test's clock, in Unix nanoseconds; nil for the server's
	script    string               // the text before lua/session.lua, which says what the library must define
	compose   func(*batch)         // makes the requests of a batch of what its ops are tasks of; may be nil
	cluster   bool                 // the server is a cluster, where ops of different parts cannot share a call
	restore   func(part int) error // puts back what a server has forgotten of a part; may be nil
	changed   func(change)         // called under the link's lock, so it must neither wait nor call the link; may be nil
}

// op is one operation. It belongs to the link once the link has it: after that, neither the op nor
// its keys and body may be changed or reused.
type op struct {
	part     int      // the part of all of its keys
	keys     []string // the names of its keys in Redis
	body     []byte   // the input of the script
	task     *task    // in place of keys and body: the task shares a request with others
	apart    bool     // the op shares no batch
	reads    bool     // the op changes nothing
	dropLate bool     // the op is useless once its caller has left

	// late is called with the result of an op that no caller waits for, on a goroutine of the link.
	// It may call send, but not do. It may be nil.
	late func(result)

	result

	// unanswered is set after an error if the op has happened or may still happen: the link goes on
	// to find out. If it is not set, the op does not happen.
	unanswered bool

	// The following fields belong to the link.
	state state
	since time.Time     // when it came into its queue
	done  chan struct{} // closed when the waiting caller has the result; nil if no caller waits
	batch *batch
}

// result is what became of an op.
type result struct {
	answer []byte
	at     int64 // the server's time, in Unix nanoseconds
	err    error
	notRun bool // after an error: the op has not happened, and may be sent again
}

// state is the progress of an op. It changes under the link's lock.
type state uint8

const (
	opQueued state = iota
	opSent
	opFinished // its caller has the result, or has left
)

// waits reports whether a caller waits for the op. The caller has locked the link.
func (o *op) waits() bool { return o.done != nil && o.state != opFinished }

// resolve finishes the op. It passes the result to the caller that waits for it, and reports whether
// one does. The caller has locked the link.
func (o *op) resolve(r result) (heard bool) {
	if heard = o.waits(); heard {
		o.result = r
		close(o.done)
	}
	o.state = opFinished
	return heard
}

// finish passes the result of an op to the waiting caller, or to late.
func (l *link) finish(o *op, r result) {
	l.mu.Lock()
	heard := o.resolve(r)
	l.mu.Unlock()
	if !heard && o.late != nil {
		o.late(r)
	}
}

func newLink(client rueidis.Client, cfg linkConfig) *link {
	l := &link{
		client:   client,
		cfg:      cfg,
		id:       rand.Text(),
		closing:  make(chan struct{}),
		queues:   make([]queue, 1),
		breakers: make([]breaker, 1),
		later:    laters{hold: maxLater},
	}
	if cfg.cluster {
		l.queues = make([]queue, parts)
		l.breakers = make([]breaker, groups)
	}
	for part := range l.queues {
		l.queues[part].part = part
		l.queues[part].breaker = &l.breakers[0]
		if cfg.cluster {
			l.queues[part].breaker = &l.breakers[groupOf(part)]
		}
	}
	for group := range l.breakers {
		l.breakers[group] = breaker{group: group, healed: make(chan struct{})}
	}
	l.name, l.text = library(cfg.script)
	return l
}

// queue returns the queue for ops of a part.
func (l *link) queue(part int) *queue {
	if l.cfg.cluster {
		return &l.queues[part]
	}
	return &l.queues[0]
}

// groupOf returns the group of the keyspace that a key is in.
func (l *link) groupOf(key string) int { return l.queue(partOf(key)).breaker.group }

// do sends o and waits for its answer, until ctx ends or the timeout has passed. If o was not sent by
// then, it never is. If it was sent, o.late is called with the result.
func (l *link) do(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	o.done = make(chan struct{})
	later := laterOf(ctx)
	err := l.enqueue(o, later != nil)
	later.isQueued()
	if err != nil {
		return err
	}
	timer := time.NewTimer(l.cfg.timeout)
	defer timer.Stop()
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
	case <-timer.C:
	}
	was, cause := l.abandon(o)
	if was == opFinished {
		<-o.done
		return o.err
	}
	o.unanswered = was == opSent
	return l.abandonError(ctx, o, was, cause)
}

// send puts o into its queue, which sends it once the batch before is answered, and does not wait.
func (l *link) send(o *op) error { return l.enqueue(o, false) }

// enqueue puts o into its queue. If hold is set and nothing else is to be sent, o waits for a moment for another op to
// share its batch with.
func (l *link) enqueue(o *op, hold bool) error {
	if len(o.keys) > maxKeys {
		return fmt.Errorf("ratelimit: %d keys at a time: there may be %d", len(o.keys), maxKeys)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	q := l.queue(o.part)
	if q.breaker.err != nil {
		return q.breaker.err
	}
	if l.queued == maxQueued {
		return errOverloaded
	}
	o.since = time.Now()
	q.ops = append(q.ops, o)
	l.queued++
	switch {
	case q.sending || hold && q.held:
	case hold:
		l.holdFor(q, l.later.hold)
	default:
		l.startSending(q)
	}
	return nil
}

// startSending starts the goroutine of a queue. The caller has locked the link.
func (l *link) startSending(q *queue) {
	q.sending = true
	l.running.Go(func() { l.run(q) })
}

// holdFor releases a queue after rest, unless something else sends what is held in it. The caller has locked the link.
func (l *link) holdFor(q *queue, rest time.Duration) {
	q.held = true
	time.AfterFunc(rest, func() { l.release(q, l.later.hold) })
}

// release sends what is held in a queue, if its first op came so long ago. Otherwise it waits for that op's time.
func (l *link) release(q *queue, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.held = false
	if l.closed || q.sending || len(q.ops) == 0 {
		return
	}
	if rest := after - time.Since(q.ops[0].since); rest > 0 {
		l.holdFor(q, rest)
		return
	}
	l.startSending(q)
}

// abandon finishes o for a caller that leaves: if o is still in its queue, it is not sent. It returns
// the state that o was in, and why there is no answer yet, if that is known.
func (l *link) abandon(o *op) (was state, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = o.state
	switch was {
	case opQueued:
		l.queued--
	case opSent:
		cause = o.batch.cause
	}
	o.state = opFinished
	return was, cause
}

// lost returns why ops of a part cannot be sent at present, or nil.
func (l *link) lost(part int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	return l.queue(part).breaker.err
}

// alive returns nil, or [store.ErrClosed] once the link is closed.
func (l *link) alive() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	return nil
}

// now returns the server's time, as far as its answers show it. Before the first answer it is the time
// of this machine.
func (l *link) now() int64 {
	if l.cfg.clock != nil {
		return l.cfg.clock()
	}
	return l.server.now()
}

// close lets batches that are under way finish their present attempt, and fails all others. No
// goroutine of the link is left when it returns.
func (l *link) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	late := l.drain(nil, store.ErrClosed)
	l.mu.Unlock()
	late()
	l.running.Wait()
}
