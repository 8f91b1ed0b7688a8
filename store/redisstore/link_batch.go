package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// resendFor is for how long a batch that may have run is sent again. Its marker in Redis lives
// longer, and the script refuses to run a batch whose marker may have expired.
const resendFor = 45 * time.Second

// batch is the ops that are sent in one call.
type batch struct {
	queue      *queue
	number     uint64
	ops        []*op
	requests   []*op          // sent to Redis: the ops that have no task, and the requests that are composed of tasks
	composed   []*composition // the requests that are composed of tasks
	reads      bool           // the requests of the batch only read
	firstTry   time.Time      // when the batch was first sent
	tries      int            // how often the batch has been sent without an answer
	sent       int64          // the batch has not run before this time, in the server's Unix seconds
	mayHaveRun bool           // the batch may have run, and the answer was lost
	probes     bool           // the batch is sent while the breaker is open: to probe the server, or to put back what it has forgotten

	// The link's lock guards the following fields.
	resolved bool
	cause    error // why there is no answer yet, if that is known
}

// newBatch returns a batch without ops. The caller has locked the link.
func (l *link) newBatch(q *queue) *batch {
	l.sequence++
	return &batch{queue: q, number: l.sequence}
}

// sendBatch sends b, again and again, until it is answered or must not be sent again.
func (l *link) sendBatch(b *batch) {
	b.firstTry = time.Now()
	overdue := time.AfterFunc(l.cfg.timeout, func() { l.overdue(b) })
	defer overdue.Stop()
	for ; ; b.tries++ {
		l.compose(b)
		r, err := l.try(b)
		if err == nil {
			l.deliver(b, r)
			return
		}
		if !l.shouldRetry(b, err) {
			l.giveUp(b, err)
			return
		}
		if errors.Is(err, errForgotten) {
			l.failTakes(b)
		}
		if !l.pause(l.healed(b.queue.breaker), backoff(2*time.Millisecond, b.tries)) {
			l.fail(b, store.ErrClosed) // the link was closed
			l.giveUp(b, store.ErrClosed)
			return
		}
		l.dropUseless(b)
	}
}

// compose makes the requests of b, unless these may have run: then they are sent again as they are.
func (l *link) compose(b *batch) {
	if b.mayHaveRun {
		return
	}
	b.requests = b.ops
	if l.cfg.compose != nil {
		l.cfg.compose(b)
	}
}

// dropUseless removes ops from b whose callers have left and that would only have to be undone. It
// leaves a batch that may have run as it is, because that must be sent again unchanged.
func (l *link) dropUseless(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !b.mayHaveRun {
		b.ops = slices.DeleteFunc(b.ops, func(o *op) bool { return o.dropLate && o.state == opFinished })
	}
}

// giveUp calls late with the error of a failed batch, for its ops that no caller waits for.
func (l *link) giveUp(b *batch, err error) {
	for _, o := range b.ops {
		l.finish(o, result{err: err, notRun: !b.mayHaveRun})
	}
}

// reply is the server's answer to a batch.
type reply struct {
	at      int64
	answers [][]byte
	slow    bool // the answer took longer than a call waits
}

// attemptTimeout returns how long the next attempt to send b may take. The first attempt ends when the calls of b
// stop waiting. A later attempt, and one of a prober, may have to connect first, which can take longer than any call
// waits: if it ended as soon as a call, no new connection to a distant or busy server would ever be ready.
func (l *link) attemptTimeout(b *batch) time.Duration {
	if b.tries == 0 && !b.probes {
		return l.cfg.timeout
	}
	return max(l.cfg.timeout, patience)
}

// try sends b once.
func (l *link) try(b *batch) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.attemptTimeout(b))
	defer cancel()
	sentAt := time.Now()
	if !b.mayHaveRun {
		b.sent = l.server.now() / 1e9
	}
	result, err := l.call(ctx, b)
	if err != nil {
		if at, ok := isLate(err); ok {
			l.server.observe(at, time.Since(sentAt))
		}
		return reply{}, err
	}
	r, err := read(result, len(b.requests))
	r.slow = time.Since(sentAt) > l.cfg.timeout
	if err == nil && !b.mayHaveRun { // a remembered answer has an old time
		if !b.probes {
			b.queue.floor.observe(r.at)
		}
		if l.cfg.clock == nil {
			l.server.observe(r.at, time.Since(sentAt))
		}
	}
	return r, err
}

// command returns b as one command.
func (l *link) command(b *batch, born string) rueidis.Completed {
	keys := 2
	counts := make([]byte, 0, 2*maxBatchOps)
	for _, o := range b.requests {
		n := len(o.keys)
		keys += n
		counts = append(counts, byte(n>>8), byte(n))
	}
	// Only the marker determines the slot: the other keys are in the same part.
	c := l.client.B().Arbitrary("FCALL").Args(l.name, strconv.Itoa(keys)).Keys(l.marker(b)).Args(l.birthMark(b.queue))
	for _, o := range b.requests {
		c = c.Args(o.keys...)
	}
	number, clock := "", ""
	if !b.reads {
		number = strconv.FormatUint(b.number, 10)
	}
	if l.cfg.clock != nil {
		now := l.cfg.clock()
		clock = fmt.Sprint(now/1e9, now%1e9)
	}
	c = c.Args(number, strconv.FormatInt(b.sent, 10), clock, string(counts), born)
	for _, o := range b.requests {
		c = c.Args(rueidis.BinaryString(o.body))
	}
	return c.Build()
}

// birthMark returns the Redis key of the birth mark of a queue's part.
func (l *link) birthMark(q *queue) string {
	return l.cfg.namespace + ":{" + strconv.Itoa(q.part) + "}:born"
}

// marker returns the Redis key under which the server remembers the last batch of b's queue, or the last
// one that was sent although the breaker was open.
func (l *link) marker(b *batch) string {
	which := "}:last:"
	if b.probes {
		which = "}:probe:"
	}
	return l.cfg.namespace + ":{" + strconv.Itoa(b.queue.part) + which + l.id
}

// read decodes the server's answer to a number of ops: see lua/session.lua.
func read(result rueidis.RedisResult, ops int) (reply, error) {
	all, err := result.AsBytes()
	if err != nil {
		return reply{}, malformed{err}
	}
	line, rest, _ := bytes.Cut(all, []byte{'\n'})
	head := strings.Split(string(line), " ")
	if len(head) != 4+ops {
		return reply{}, malformed{fmt.Errorf("%d answers to %d questions", len(head)-4, ops)}
	}
	numbers := make([]int64, 0, 2+ops)
	for _, text := range head[2:] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return reply{}, malformed{err}
		}
		numbers = append(numbers, n)
	}
	r := reply{at: numbers[0]*1e9 + numbers[1], answers: make([][]byte, ops)}
	for i, n := range numbers[2:] {
		if n < 0 || n > int64(len(rest)) {
			return reply{}, malformed{errCorrupt}
		}
		r.answers[i], rest = rest[:n:n], rest[n:]
	}
	return r, nil
}

// deliver passes the answers to the ops of b.
func (l *link) deliver(b *batch, r reply) {
	l.mu.Lock()
	b.resolved = true
	if !b.reads && !r.slow {
		l.heal(b.queue.breaker)
	}
	l.mu.Unlock()
	for i, o := range b.requests {
		l.finish(o, resultOf(r, i))
	}
	var again []*op
	for _, o := range b.ops {
		switch {
		case o.task == nil:
		case o.task.again:
			again = append(again, o)
		default:
			l.finish(o, result{at: r.at, err: o.task.err})
		}
	}
	for _, c := range b.composed {
		for _, t := range c.prolonging() {
			again = append(again, &op{part: b.queue.part, task: t})
		}
	}
	l.requeue(b.queue, again)
}

// resultOf returns what has become of the i-th request.
func resultOf(r reply, i int) result {
	a := r.answers[i]
	if len(a) > 0 && a[0] == '!' {
		return result{at: r.at, err: serverFault(a[1:])}
	}
	return result{answer: a, at: r.at}
}

// shouldRetry reports whether to send b again after an error. If not, all waiting callers have been
// answered.
func (l *link) shouldRetry(b *batch, err error) bool {
	outcome := outcomeOf(err)
	if outcome == outcomeUnknown && !b.reads {
		b.mayHaveRun = true
	}
	age := time.Since(b.firstTry)
	l.mu.Lock()
	b.cause = err
	mustFinish := b.mustFinish()
	l.mu.Unlock()
	switch {
	case outcome == outcomeTooLate && b.mayHaveRun: // it is too late to find out whether it has run
		l.fail(b, l.lostError(b.queue, err))
		return false
	case outcome != outcomeRejected && (age < l.cfg.timeout || mustFinish && age < resendFor):
		return true
	}
	err = l.lostError(b.queue, err)
	l.fail(b, err)
	l.trip(b.queue, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	return age < resendFor && b.mustFinish() // also for callers that have left in the meantime
}

// mustFinish reports whether b must be sent again although no caller waits for it. The caller has
// locked the link.
func (b *batch) mustFinish() bool {
	return b.mayHaveRun || slices.ContainsFunc(b.ops, (*op).mustFinish)
}

// mustFinish reports whether the op must happen although no caller waits for it: the caller has left
// and knows that the op may happen, or never meant to wait. The caller has locked the link.
func (o *op) mustFinish() bool {
	return !o.reads && !o.dropLate && !o.waits()
}

// fail answers the waiting callers of b with an error. If b may have run, it keeps their ops, and late
// gets the results; otherwise it drops these ops.
func (l *link) fail(b *batch, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.resolved = true
	var others []*op
	for _, o := range b.ops {
		if !o.waits() {
			others = append(others, o)
			continue
		}
		o.unanswered = b.mayHaveRun
		o.resolve(result{err: err})
	}
	if !b.mayHaveRun {
		b.ops = others
	}
}

// overdue is called when b was not answered within the timeout.
func (l *link) overdue(b *batch) {
	l.mu.Lock()
	resolved, cause := b.resolved, b.cause
	l.mu.Unlock()
	if !resolved {
		l.trip(b.queue, l.lostError(b.queue, cause))
	}
}

// pause waits before the next attempt, until d has passed or the breaker closes. It returns false
// when the link is closed.
func (l *link) pause(healed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-healed:
	case <-l.closing:
		return false
	}
	return true
}

// backoff returns the wait before the next attempt: longer each time, up to a second.
func backoff(first time.Duration, tries int) time.Duration {
	d := min(first<<min(tries, 20), time.Second)
	return d/2 + rand.N(d/2)
}
