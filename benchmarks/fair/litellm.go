package main

// litellm is the rule of LiteLLM's dynamic rate limiter, version 3, with a priority of its own for
// each client, whose reservation is the client's share by weight. Every admitted call counts for the
// model and for its priority. While the model has used less than half of its quota
// (saturation_threshold, whose default is 0.5), every call passes; from there on a call passes only
// while its priority has used less than its reservation. What a priority has beyond its reservation
// by then stays with it, and what another does not use stays idle.
//
// We are kinder to it than it is to its users in three ways. A denied call is not sent back to be
// made again after some time: it passes as soon as it may, the oldest first. Tokens are counted at
// the admission, where LiteLLM counts them after the answer. And the window slides, so that no
// minute ever holds more than the quota.
type litellm struct {
	waiting  []*call
	reserved []int
}

const saturated = 0.5

func newLiteLLM(l *load) rule {
	r := &litellm{}
	for _, c := range l.clients {
		r.reserved = append(r.reserved, l.quota*c.weight/l.weights())
	}
	return r
}

func (r *litellm) join(c *call) { r.waiting = append(r.waiting, c) }

func (r *litellm) next(u *usage) *call {
	for i, c := range r.waiting {
		strict := float64(u.used) >= saturated*float64(u.quota)
		if !u.fits(c) || strict && u.of[c.client] >= r.reserved[c.client] {
			continue
		}
		r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
		return c
	}
	return nil
}
