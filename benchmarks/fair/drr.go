package main

// drr is deficit round robin (Shreedhar and Varghese, 1995) among the clients that have a call
// waiting. A round visits them in turn; each gains its quantum, and has calls admitted while it has
// gained what they cost. A client whose last waiting call is admitted leaves the round and keeps
// nothing, so a client of few workers is out of the round whenever the window frees a lump.
type drr struct {
	queues
	quantum []int
	deficit []int
	round   []int // the clients with waiting calls; the first is being visited
	visited bool  // the first has gained its quantum
}

func newDRR(l *load) rule {
	d := &drr{queues: make(queues, len(l.clients)), deficit: make([]int, len(l.clients))}
	for _, c := range l.clients {
		d.quantum = append(d.quantum, c.weight*max(l.quota/256, 1))
	}
	return d
}

func (d *drr) join(c *call) {
	if len(d.queues[c.client]) == 0 {
		d.round = append(d.round, c.client)
	}
	d.queues.join(c)
}

func (d *drr) next(u *usage) *call {
	for len(d.round) > 0 {
		at := d.round[0]
		if !d.visited {
			d.deficit[at] += d.quantum[at]
			d.visited = true
		}
		head := d.queues[at][0]
		if d.deficit[at] < head.cost {
			d.round = append(d.round[1:], at)
			d.visited = false
			continue
		}
		if !u.fits(head) {
			return nil
		}
		d.deficit[at] -= head.cost
		d.pop(at)
		if len(d.queues[at]) == 0 {
			d.round, d.deficit[at], d.visited = d.round[1:], 0, false
		}
		return head
	}
	return nil
}
