package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

//go:embed session.lua
var session string

// parts is how many parts the keyspace has.
const parts = 1024

const (
	lanes       = 2     // batches of a queue that are under way at a time
	maxBatchOps = 64    // of a batch
	maxQueued   = 65536 // ops of a link that have not been sent
	maxKeys     = 65535 // of an op
)

// link carries ops to the server: those that wait together go together, each
// exactly once, and none is waited for longer than the timeout.
//
// A queue has a few lanes. A lane sends one batch after another, and the server
// remembers the answers of a lane's last batch. One whose answer got lost is sent
// again, and gets the same answers. A goroutine runs in a lane for as long as
// there is something to send.
type link struct {
	client  rueidis.Client
	cfg     linkConfig
	text    string // of the script
	sha     string
	id      string // no other link has it
	server  serverClock
	waiters sync.Pool

	closing chan struct{}
	running sync.WaitGroup // lanes, probers and those who tell

	mu        sync.Mutex
	closed    bool
	queued    int // ops in all queues
	sequence  uint64
	queues    []queue   // one a part in a cluster, otherwise one
	breakers  []breaker // one a group in a cluster, otherwise one
	changes   []change  // that changed has not heard
	notifying bool
}

// linkConfig is what a link must know.
type linkConfig struct {
	namespace string
	timeout   time.Duration // for which a call waits for its answer at most
	clock     func() int64  // Unix ns; nil: the server's. For tests.
	script    string        // the arithmetic: see session.lua
	cluster   bool          // ops of different parts cannot share a call
	changed   func(change)  // may be nil. Called in order, on goroutines of the link
}

// op is one operation. It belongs to the link from when it is passed to it: neither
// it nor its keys and body may be changed or used for another.
type op struct {
	part     int      // 0…1023; keys of the op are all of this part
	keys     []string // full Redis keys
	body     []byte   // what the script's run reads
	reads    bool     // it changes nothing
	dropLate bool     // it is of no use once its caller has left

	// onLate is called with the answer if the caller has left before it came, on a
	// goroutine of the link. It may send, not do. May be nil.
	onLate func(answer []byte, at int64)

	// onFailed is called if nobody waits for it and the link has given it up. It has
	// not happened, unless it may have. May be nil.
	onFailed func(o *op, maybe bool)

	answer []byte
	at     int64 // server's Unix ns

	// unanswered says, after an error, that it may have happened, or will: the
	// link goes on to find out. Otherwise it has not.
	unanswered bool

	// The link's.
	state      state
	waiter     *waiter // of who waits for it; nil: nobody does
	batch      *batch
	err        error // of its own
	prev, next *op   // in its queue
}

// state is how far an op is. It changes under the link's lock.
type state uint8

const (
	opQueued state = iota
	opSent
	opFinished // its caller knows what came of it, or has left
)

// waiter is where a caller waits.
type waiter struct {
	done  chan struct{} // its op is done
	timer *time.Timer
}

func newWaiter() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &waiter{done: make(chan struct{}, 1), timer: timer}
}

func newLink(client rueidis.Client, cfg linkConfig) *link {
	l := &link{
		client:   client,
		cfg:      cfg,
		text:     cfg.script + "\n" + session,
		id:       rand.Text(),
		closing:  make(chan struct{}),
		queues:   make([]queue, 1),
		breakers: make([]breaker, 1),
	}
	l.waiters.New = newWaiter
	if cfg.cluster {
		l.queues = make([]queue, parts)
		l.breakers = make([]breaker, groups)
	}
	for part := range l.queues {
		l.queues[part].part = part
		for lane := 1; lane < lanes && cfg.clock != nil; lane++ {
			l.queues[part].busy[lane] = true // so that its times arrive in their order
		}
		l.queues[part].breaker = &l.breakers[0]
		if cfg.cluster {
			l.queues[part].breaker = &l.breakers[groupOf(part)]
		}
	}
	for group := range l.breakers {
		l.breakers[group] = breaker{group: group, healed: make(chan struct{})}
	}
	sum := sha1.Sum([]byte(l.text))
	l.sha = hex.EncodeToString(sum[:])
	return l
}

// queue returns where ops of a part wait.
func (l *link) queue(part int) *queue {
	if l.cfg.cluster {
		return &l.queues[part]
	}
	return &l.queues[0]
}

// do sends o and waits for its answer, until ctx ends or the timeout has passed.
// Unless it was sent by then, nothing has happened; otherwise o.late hears of it.
func (l *link) do(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	s := l.waiters.Get().(*waiter)
	defer l.waiters.Put(s)
	o.waiter = s
	if err := l.enqueue(o); err != nil {
		return err
	}
	s.timer.Reset(l.cfg.timeout)
	defer s.timer.Stop()
	select {
	case <-s.done:
		return o.err
	case <-ctx.Done():
	case <-s.timer.C:
	}
	was, cause := l.abandon(o)
	if was == opFinished {
		<-s.done
		return o.err
	}
	o.unanswered = was == opSent
	return l.abandonError(ctx, o, was, cause)
}

// send does o, and nobody waits for it: o.late is called with the answer.
func (l *link) send(o *op) error { return l.enqueue(o) }

// enqueue lets o wait for a lane.
func (l *link) enqueue(o *op) error {
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
	q.push(o)
	l.queued++
	if lane, free := q.takeLane(); free {
		l.running.Add(1)
		go l.run(q, lane)
	}
	return nil
}

// abandon takes o out of its queue if it waits there. It returns how far o was, and
// why it was not answered, if that is known. From now on it is over.
func (l *link) abandon(o *op) (was state, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = o.state
	switch was {
	case opQueued:
		l.queue(o.part).remove(o)
		l.queued--
	case opSent:
		cause = o.batch.cause
	}
	o.state = opFinished
	return was, cause
}

// lost returns why ops of a part cannot be sent for now, or nil.
func (l *link) lost(part int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	return l.queue(part).breaker.err
}

// alive returns [store.ErrClosed] once the link is closed.
func (l *link) alive() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return store.ErrClosed
	}
	return nil
}

// now returns what the server's clock shows, as far as its answers have told:
// before the first one, what this machine's does.
func (l *link) now() int64 {
	if l.cfg.clock != nil {
		return l.cfg.clock()
	}
	return l.server.now()
}

// close lets batches that are under way finish what they are trying, and fails
// all others. No goroutine of the link is left when it returns.
func (l *link) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	var dropped []*op
	for i := range l.queues {
		dropped = l.drainQueue(&l.queues[i], dropped)
	}
	l.mu.Unlock()
	answerOps(dropped, store.ErrClosed)
	l.running.Wait()
}
