package fair

import "time"

const (
	// batch bounds the cost of a decision: to compute what depends on all members costs as much as there
	// are members, so it is done once for a batch-th of so many decisions at most.
	batch = 8

	// stale is for how long a result may be out of date because of that: for each of so many members.
	stale      = int64(time.Millisecond)
	staleBatch = 64

	// steadyParts is into how many parts a period is divided in which time alone does not change demands
	// much.
	steadyParts = 600
)

// outdated is whether a result that depends on all members may be out of date.
type outdated struct {
	dirty bool  // something has changed
	uses  int   // of the result, since it was computed
	at    int64 // when it was computed
}

// due reports whether the result is to be computed again, for so many members, before it is used.
func (o *outdated) due(now int64, members int, steady int64) bool {
	age := now - o.at
	return o.dirty && (o.uses >= members/batch || age >= stale*int64(1+members/staleBatch)) || age >= steady
}
