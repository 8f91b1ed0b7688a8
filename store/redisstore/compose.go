package redisstore

import (
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// The steps of the script: see the files in lua/.
const (
	stepAccounts = 1 + iota
	stepBook
	stepMove
	stepOnce
)

// composition is one request to Redis for several tasks. Redis makes the takes of all these tasks, or none.
type composition struct {
	remote   *remote
	replicas *replicas
	tasks    []*task
	entries  []*entry
	byKey    map[string]*entry
	now      int64 // the time of the decisions: the server's clock shows at least that
	until    int64 // after that, the takes do not happen
	mark     uint64
	op       *op  // the request
	taken    bool // the takes have happened
}

// compose composes tasks, which are of one part, by what replicas say.
func (r *remote) compose(known *replicas, tasks []*task, now int64) *composition {
	known.mu.Lock()
	defer known.mu.Unlock()
	c := &composition{
		remote: r, replicas: known, tasks: tasks, byKey: map[string]*entry{},
		now: now, until: now + int64(takesWithin), mark: r.mark.Add(1),
	}
	for _, t := range tasks {
		for i := range t.charges {
			c.entry(t, i)
		}
		if t.kind == taskSettle {
			for i := range t.takes {
				c.entry(t, i).settle(t, i, c.now, c.until)
			}
		}
		if t.kind == taskProlong {
			c.entry(t, 0).prolong(c.now, c.until)
		}
	}
	for _, t := range tasks {
		if t.kind == taskTake || t.kind == taskRefuse {
			c.take(t)
		}
	}
	c.write()
	return c
}

// composeBatch makes the requests of a batch: one for all of its tasks, and one for each page on which they are booked. If a
// task was sent before and its decision was not true any more, tasks that have no account in common become requests of
// their own, so that an account on which nodes contend does not deny the tasks about other accounts their takes again.
func (r *remote) composeBatch(b *batch) {
	b.requests, b.composed, b.reads = nil, nil, true
	var tasks []*task
	again := false
	for _, o := range b.ops {
		if o.task != nil {
			tasks = append(tasks, o.task)
			again = again || o.task.again
		} else {
			b.requests = append(b.requests, o)
		}
	}
	if len(tasks) > 0 {
		groups := [][]*task{tasks}
		if again {
			groups = independent(tasks)
		}
		for _, group := range groups {
			c := r.compose(r.replicas, group, r.floorOf(b.queue))
			c.op.late = c.read
			b.requests, b.composed = append(b.requests, c.op), append(b.composed, c)
		}
		b.requests = append(b.requests, r.books.bookings(tasks)...)
	}
	for _, o := range b.requests {
		b.reads = b.reads && o.reads
	}
}

// independent divides tasks into groups that have no account in common.
func independent(tasks []*task) (groups [][]*task) {
	leads := make([]int, len(tasks)) // for each task, one before it in its group, or itself
	lead := func(i int) int {
		for leads[i] != i {
			i = leads[i]
		}
		return i
	}
	last := map[string]int{} // the task that was the last to have an account
	byLead := map[int]int{}
	for i, t := range tasks {
		leads[i] = i
		for k := range t.accounts() {
			if other, ok := last[t.key(k)]; ok {
				a, b := lead(i), lead(other)
				leads[max(a, b)] = min(a, b)
			}
			last[t.key(k)] = i
		}
	}
	for i, t := range tasks {
		at, ok := byLead[lead(i)]
		if !ok {
			at, byLead[lead(i)], groups = len(groups), len(groups), append(groups, nil)
		}
		groups[at] = append(groups[at], t)
	}
	return groups
}

// floorOf returns a time that the clock of a queue's server has reached.
func (r *remote) floorOf(q *queue) int64 {
	switch {
	case r.link.cfg.clock != nil:
		return r.link.cfg.clock()
	case q.floor.readAt.IsZero():
		return r.link.now() - int64(time.Second) // of this machine
	default:
		return q.floor.now()
	}
}

// entry returns the entry of the account of a task's charge.
func (c *composition) entry(t *task, i int) *entry {
	key := t.key(i)
	e := c.byKey[key]
	if e == nil {
		e = &entry{replica: c.replicas.of(key, t.kind != taskRead, len(c.entries)+1), spare: barrier - 1}
		c.byKey[key] = e
		c.entries = append(c.entries, e)
	}
	return e
}

// accounts returns how many accounts the task is about.
func (t *task) accounts() int { return max(len(t.charges), len(t.takes)) }

// key returns the key of a charge of a task.
func (t *task) key(i int) string {
	if t.kind == taskSettle {
		return t.takes[i].charge.Key
	}
	return t.charges[i].Key
}

// take adds a take, if all limits allow it as far as this node knows. If they do not, the answer decides.
func (c *composition) take(t *task) {
	t.taken, t.each, t.takes = false, make([][]limit.Decision, len(t.charges)), make([]*chargeReceipt, len(t.charges))
	spare, allowed := make([]int64, len(t.charges)), true
	for i := range t.charges {
		var ok bool
		e := c.entry(t, i)
		spare[i], ok = e.weigh(&t.charges[i], c.now)
		allowed = allowed && ok && !e.foreign // which would keep the others from their takes
	}
	t.taken = allowed && t.kind == taskTake
	for i := range t.charges {
		if e := c.entry(t, i); t.taken {
			e.take(t, i, spare[i], c.now, c.until)
		} else {
			e.fit(t.charges[i].Limits, c.now, c.until)
		}
	}
}

// replacing returns a composition that replaces accounts, which c has read, by the states of their entries.
func (c *composition) replacing() *composition {
	next := &composition{remote: c.remote, replicas: c.replicas, byKey: c.byKey, now: c.op.at, until: c.op.at + int64(takesWithin), mark: c.remote.mark.Add(1)}
	for _, e := range c.entries {
		next.entries = append(next.entries, &entry{replica: e.replica, state: e.state, due: e.due})
	}
	next.write()
	return next
}

// write writes the request.
func (c *composition) write() {
	c.op = &op{part: partOf(c.entries[0].key), reads: true}
	w := make(writer, 0, 32+256*len(c.entries))
	w.byte(stepAccounts)
	w = append(w, byte(len(c.entries)), byte(len(c.entries)>>8))
	w.number(c.now)
	w.float(c.until / billion)
	for _, e := range c.entries {
		c.op.keys = append(c.op.keys, c.remote.redisKey(partOf(e.key), e.key))
		e.write(&w, c.mark, c.now)
		c.op.reads = c.op.reads && !e.writes
	}
	c.op.body = w
}

// read reads the answer to the request, at the server's time. Then the tasks have their results.
func (c *composition) read(r result) {
	c.replicas.mu.Lock()
	defer c.replicas.mu.Unlock()
	answer := reader{rest: r.answer}
	status := byte(0)
	if r.err == nil {
		status = answer.byte()
	}
	c.taken = status > 0
	for _, e := range c.entries {
		switch e.err = r.err; {
		case r.err != nil:
		case status == 2: // all is as this node knew
			e.err = e.read([]byte{'E'}, true, r.at)
		default:
			e.err = e.read(answer.bytes(), c.taken, r.at)
		}
		if e.foreign = e.err != nil; e.foreign {
			e.forget()
			if errors.Is(e.err, errCorrupt) {
				e.err = fmt.Errorf("%w: %s", e.err, c.remote.redisKey(partOf(e.key), e.key))
			}
		}
		c.replicas.resize(e.replica, len(c.entries))
	}
	for _, t := range c.tasks {
		t.ran = r.err == nil
		c.finish(t, c.taken, r.at)
	}
}

// prolonging returns tasks for the keys that expire too early.
func (c *composition) prolonging() (all []*task) {
	c.replicas.mu.Lock()
	defer c.replicas.mu.Unlock()
	for _, e := range c.entries {
		if e.writes && e.expiresEarly() {
			all = append(all, &task{kind: taskProlong, charges: []store.Charge{{Key: e.key}}})
		}
	}
	return all
}

// finish gives a task its result.
func (c *composition) finish(t *task, taken bool, at int64) {
	t.again, t.err = false, nil
	for i := range t.accounts() {
		if e := c.byKey[t.key(i)]; e.err != nil {
			t.err = e.err
			return
		}
	}
	switch t.kind {
	case taskRead:
		t.read = make([]*limit.Account, len(t.charges))
		for i := range t.charges {
			t.read[i] = c.byKey[t.key(i)].account.Fork()
		}
	case taskTake, taskRefuse, taskPeek:
		if t.taken && taken {
			return
		}
		t.taken = false
		c.decide(t, at)
	}
}

// decide decides on a task that has taken nothing, by what the server has answered. A take that is allowed now, and one
// whose accounts are not ready for its limits, goes into the next batch.
func (c *composition) decide(t *task, at int64) {
	t.each = make([][]limit.Decision, len(t.charges))
	views := make([]*limit.Account, len(t.charges))
	for i := range t.charges {
		a, limits := &c.byKey[t.charges[i].Key].account, t.charges[i].Limits
		t.again = t.again || t.kind != taskPeek && !a.Fits(limits, at)
		views[i] = a.View(at)
		t.each[i] = check(views[i], limits, at, t.charges[i].N)
	}
	t.again = t.again || t.kind == taskTake && t.allows()
	for i, v := range views {
		withoutTake(v, t.each[i], at)
	}
}
