package limit

import (
	"cmp"
	"slices"
)

// Combined is several limiters that decide as one.
type Combined[In any] struct{ doors[In] }

// Combinable is what Combine takes: every *Limiter[In, K], whatever its K, and
// every *Combined[In].
type Combinable[In any] interface {
	combinable(In) []part[In]
}

func (c *doors[In]) combinable(In) []part[In] { return c.parts }

// Combine returns several limiters as one, over their own counters: a request passes all
// of them and is charged to each, or it is charged to none. Their order does not
// matter. A limiter that is named twice is charged once, for the larger cost.
func Combine[In any](limiters ...Combinable[In]) *Combined[In] {
	c := &Combined[In]{}
	var none In
	for i, l := range limiters {
		for _, p := range l.combinable(none) {
			p.index = i
			c.parts = append(c.parts, p)
		}
	}
	slices.SortStableFunc(c.parts, func(a, b part[In]) int { return cmp.Compare(a.book.id, b.book.id) })
	return c
}
