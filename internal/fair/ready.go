package fair

import (
	"cmp"
	"container/list"
	"math"
	"slices"
)

// ready is the flows that may have turns, in one circle for each rank, the highest first.
type ready []*circle

// circle is the flows of one rank, which have turns in rounds.
type circle struct {
	rank  int
	flows list.List // of *flow; the round is at the first
}

// add puts a flow at the end of the round of its rank.
func (r *ready) add(f *flow) {
	i, found := slices.BinarySearchFunc(*r, f.rank, func(c *circle, rank int) int { return cmp.Compare(rank, c.rank) })
	if !found {
		*r = slices.Insert(*r, i, &circle{rank: f.rank})
	}
	f.circle = (*r)[i]
	f.element = f.circle.flows.PushBack(f)
}

// remove removes a flow from the round of its rank, if it is in it.
func (r *ready) remove(f *flow) {
	c := f.circle
	if c == nil {
		return
	}
	c.flows.Remove(f.element)
	f.circle, f.element, f.visited = nil, nil, false
	if c.flows.Len() == 0 {
		i := slices.Index(*r, c)
		*r = slices.Delete(*r, i, i+1)
	}
}

// rank returns the highest rank of any ready flow.
func (r ready) rank() int {
	if len(r) == 0 {
		return math.MinInt
	}
	return r[0].rank
}

// next returns the flow that has the next turn, or nil if none is ready.
func (r ready) next() *flow {
	if len(r) == 0 {
		return nil
	}
	for {
		if f := r[0].round(); f != nil {
			return f
		}
		r[0].skip()
	}
}

// round returns the next flow that has a turn in this round, or nil if no flow has gained enough.
func (c *circle) round() *flow {
	for range c.flows.Len() {
		f := c.flows.Front().Value.(*flow)
		if !f.visited {
			f.visited = true
			f.deficit += quantum * f.weight
		}
		if f.deficit >= f.first().Cost {
			return f
		}
		f.visited = false
		c.flows.MoveToBack(f.element)
	}
	return nil
}

// skip adds the gains of all rounds in which no flow would have a turn.
func (c *circle) skip() {
	rounds := int64(WholeTurn)
	for e := c.flows.Front(); e != nil; e = e.Next() {
		f := e.Value.(*flow)
		missing := f.first().Cost - f.deficit
		rounds = min(rounds, (missing-1)/(quantum*f.weight))
	}
	for e := c.flows.Front(); e != nil; e = e.Next() {
		f := e.Value.(*flow)
		f.deficit += rounds * quantum * f.weight
	}
}
