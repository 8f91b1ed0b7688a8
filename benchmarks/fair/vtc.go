package main

// vtc is the virtual token counter (Sheng et al., OSDI '24): of the clients that have a call waiting,
// the one that was served least, over its weight, is next. A client that begins to wait is lifted to
// the least served of those that wait, or to the client that was last to stop waiting if nobody does:
// it gets nothing for the time in which it did not wait.
type vtc struct {
	queues
	weight []int
	served []float64 // over the weight
	last   int       // the client that was last to stop waiting
}

func newVTC(l *load) rule {
	v := &vtc{queues: make(queues, len(l.clients)), served: make([]float64, len(l.clients))}
	for _, c := range l.clients {
		v.weight = append(v.weight, c.weight)
	}
	return v
}

func (v *vtc) join(c *call) {
	if len(v.queues[c.client]) == 0 {
		floor := v.served[v.last]
		if least := v.least(); least >= 0 {
			floor = v.served[least]
		}
		v.served[c.client] = max(v.served[c.client], floor)
	}
	v.queues.join(c)
}

// least is the waiting client that was served least, or -1.
func (v *vtc) least() int {
	least := -1
	for client, waiting := range v.queues {
		if len(waiting) > 0 && (least < 0 || v.served[client] < v.served[least]) {
			least = client
		}
	}
	return least
}

func (v *vtc) next(u *usage) *call {
	client := v.least()
	if client < 0 || !u.fits(v.queues[client][0]) {
		return nil
	}
	c := v.pop(client)
	v.served[client] += float64(c.cost) / float64(v.weight[client])
	if len(v.queues[client]) == 0 {
		v.last = client
	}
	return c
}
