package main

import (
	"cmp"
	"container/heap"
	"time"
)

// call is one call of a client, and what became of it.
type call struct {
	client   int // its index in the load
	cost     int
	arrived  time.Duration
	admitted time.Duration // never: it still waits at the end
}

const never = time.Duration(-1)

// rule decides which of the waiting calls is admitted next.
type rule interface {
	join(c *call)
	// next removes a call from the waiting ones that may be admitted now, and returns it. It is nil
	// if none may.
	next(u *usage) *call
}

// usage is what was admitted within the last window.
type usage struct {
	quota int
	used  int   // of all clients
	of    []int // of each client
	log   []*call
}

// fits reports whether the window has room for a call.
func (u *usage) fits(c *call) bool { return u.used+c.cost <= u.quota }

func (u *usage) add(c *call) {
	u.log = append(u.log, c)
	u.used += c.cost
	u.of[c.client] += c.cost
}

// expire forgets what was admitted a window ago or earlier.
func (u *usage) expire(now time.Duration) {
	for len(u.log) > 0 && u.log[0].admitted+window <= now {
		u.used -= u.log[0].cost
		u.of[u.log[0].client] -= u.log[0].cost
		u.log = u.log[1:]
	}
}

// simulate returns the calls of a load that a rule admits, and those that wait at the end.
func simulate(l *load, r rule) []*call {
	var (
		u     = &usage{quota: l.quota, of: make([]int, len(l.clients))}
		steps agenda
		all   []*call
	)
	begin := func(client, cost int, at time.Duration) {
		steps.add(at, &call{client: client, cost: cost, arrived: at, admitted: never})
	}
	workers := time.Duration(0)
	for i, c := range l.clients {
		for range c.workers {
			begin(i, c.cost, c.from+workers*stagger)
			workers++
		}
		for _, a := range c.arrivals {
			begin(i, a.cost, a.at)
		}
	}
	for steps.Len() > 0 && steps.next() < l.length() {
		now := steps.next()
		for steps.Len() > 0 && steps.next() == now {
			if c := heap.Pop(&steps).(step).arrives; c != nil {
				all = append(all, c)
				r.join(c)
			}
		}
		u.expire(now)
		for c := r.next(u); c != nil; c = r.next(u) {
			c.admitted = now
			u.add(c)
			steps.add(now+window, nil)
			if who := l.clients[c.client]; who.workers > 0 {
				begin(c.client, who.cost, now+l.answer+who.pause)
			}
		}
	}
	return all
}

// step is a time at which something happens: a call arrives, or an admitted one leaves the window.
type step struct {
	at      time.Duration
	arrives *call // nil: none
	order   int   // in which it was added
}

// agenda are the steps to come.
type agenda struct {
	steps []step // a heap: by time, then by order
	added int
}

func (a *agenda) add(at time.Duration, arrives *call) {
	a.added++
	heap.Push(a, step{at, arrives, a.added})
}

func (a *agenda) next() time.Duration { return a.steps[0].at }

func (a *agenda) Len() int      { return len(a.steps) }
func (a *agenda) Swap(i, j int) { a.steps[i], a.steps[j] = a.steps[j], a.steps[i] }
func (a *agenda) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a.steps[i].at, a.steps[j].at), cmp.Compare(a.steps[i].order, a.steps[j].order)) < 0
}
func (a *agenda) Push(s any) { a.steps = append(a.steps, s.(step)) }
func (a *agenda) Pop() any {
	last := a.steps[len(a.steps)-1]
	a.steps = a.steps[:len(a.steps)-1]
	return last
}

// queues are the waiting calls of each client, oldest first.
type queues [][]*call

func (q queues) join(c *call) { q[c.client] = append(q[c.client], c) }

// pop removes the oldest call of a client.
func (q queues) pop(client int) *call {
	c := q[client][0]
	q[client] = q[client][1:]
	return c
}
