package fair

import "dappco.re/go/core/go-ratelimit/limit"

const (
	// parts is into how many parts a period is divided.
	parts = 60

	// slots is how many parts a ring has: the last one is partly older than a period.
	slots = parts + 1
)

// curve is an amount now, and at the end of each part of the next period but for the last.
type curve [parts]int64

// ring is what was used in each part of the last period. Of a fixed window, it is all that was
// used in it, and of what calls hold, it is what they hold now.
type ring struct {
	sum   int64      // of all slots
	end   int64      // of the newest slot; 0: nothing was used yet
	used  *[64]int64 // by the number of the part, modulo 64, which is quick to compute and enough; nil: nothing was used yet
	first int64      // the number of the oldest slot
	part  int64      // the length of a part; 0: the ring is of a fixed window
}

func newRing(l limit.Limit, held bool) ring {
	if held || l.Algorithm() == limit.FixedWindow {
		return ring{}
	}
	return ring{part: max(int64(l.Period())/parts, 1)}
}

// slot returns where a part of a number is.
func (r *ring) slot(k int64) *int64 { return &r.used[k&63] }

// number returns the number of the part of a time, which is below zero before 1970.
func (r *ring) number(at int64) int64 {
	k := at / r.part
	if at < k*r.part {
		k--
	}
	return k
}

// clear forgets what was used.
func (r *ring) clear() { *r = ring{part: r.part} }

// move drops the parts that have ended a period before now.
func (r *ring) move(now int64) {
	first := r.number(now) - parts
	switch {
	case r.used == nil:
		r.used, r.first = new([64]int64), first
	case first-r.first >= slots:
		clear(r.used[:])
		r.first, r.sum = first, 0
	}
	for ; r.first < first; r.first++ {
		u := r.slot(r.first)
		r.sum -= *u
		*u = 0
	}
	r.end = (r.first + slots) * r.part
}

// add adds what was used now.
func (r *ring) add(now, n int64) {
	if r.part > 0 && (now >= r.end || r.used == nil) {
		r.move(now)
	}
	r.sum += n
	if r.part > 0 {
		*r.slot(r.first + parts) += n
	}
}

// addRing adds all that another ring has, or takes it away.
func (r *ring) addRing(other *ring, sign int64) {
	if r.part == 0 {
		r.sum += sign * other.sum
		return
	}
	if other.used == nil {
		return
	}
	if r.used == nil || r.end < other.end {
		r.move(other.end - 1)
	}
	for k := max(r.first, other.first); k < other.first+slots; k++ {
		n := sign * *other.slot(k)
		*r.slot(k) += n
		r.sum += n
	}
}

// spread adds what was used evenly within the last period, or in the fixed window.
func (r *ring) spread(now, n int64) {
	if r.part == 0 {
		r.sum += n
		return
	}
	r.move(now)
	r.sum += n
	for k := range int64(parts) {
		*r.slot(r.first + 1 + k) += mulDiv(n, k+1, parts) - mulDiv(n, k, parts)
	}
}

// has reports whether the ring has the part of a time.
func (r *ring) has(at int64) bool { return r.part == 0 || r.used != nil && at >= r.first*r.part }

// correct corrects what was used at a time, if the ring has its part.
func (r *ring) correct(at, more int64) {
	if !r.has(at) {
		return
	}
	if r.part > 0 && at >= r.end {
		r.move(at)
	}
	r.sum += more
	if r.part > 0 {
		*r.slot(r.number(at)) += more
	}
}

// sumAt returns what counts as used now: all but what was used in the part that has begun a period before.
func (r *ring) sumAt(now int64) int64 {
	sum := r.longAt(now)
	if r.used != nil {
		sum -= *r.slot(r.first)
	}
	return sum
}

// longAt is sumAt with the part that has begun a period before and not ended, so that it is never less than what was
// used in the last period.
func (r *ring) longAt(now int64) int64 {
	if now >= r.end && r.used != nil {
		r.move(now)
	}
	return r.sum
}

// ahead fills in what counts as used from now on, if nothing else is used.
func (r *ring) ahead(now int64, to *curve) {
	sum := r.sumAt(now)
	for k := range to {
		to[k] = sum
		if r.used != nil {
			sum -= *r.slot(r.first + 1 + int64(k))
		}
	}
}
