package share

import (
	"math"

	"dappco.re/go/core/go-ratelimit/limit"
)

// parts is into how many parts a period is divided.
const parts = 60

// curve is an amount now, and at the end of each part of the next period but for the last.
type curve [parts]float64

// ring is what was used in each part of the last period. Of a fixed window, it is all that was
// used in it.
type ring struct {
	sum   float64
	end   int64           // of the newest part; 0: nothing was used yet
	used  *[parts]float64 // by the number of the part, modulo parts; nil: nothing was used yet
	first int64           // the number of the oldest part
	part  int64           // the length of a part; 0: the ring is of a fixed window
}

func newRing(l limit.Limit) ring {
	if l.Algorithm() == limit.FixedWindow {
		return ring{end: math.MaxInt64}
	}
	return ring{part: max(int64(l.Period())/parts, 1)}
}

// place returns where a part of a number is, which is below zero before 1970.
func place(k int64) int64 { return modulo(k, parts) }

// modulo returns the remainder of a division, which is not below zero.
func modulo(n, by int64) int64 { return (n%by + by) % by }

// clear forgets what was used.
func (r *ring) clear() {
	if r.sum = 0; r.part > 0 {
		*r = ring{part: r.part}
	}
}

// move drops the parts that have begun a period before now.
func (r *ring) move(now int64) {
	newest := now / r.part
	if now < 0 && now%r.part != 0 {
		newest--
	}
	first := newest - parts + 1
	switch {
	case r.used == nil:
		r.used, r.first = new([parts]float64), first
	case first-r.first >= parts:
		clear(r.used[:])
		r.first, r.sum = first, 0
	}
	for ; r.first < first; r.first++ {
		u := &r.used[place(r.first)]
		r.sum -= *u
		*u = 0
	}
	r.end = (r.first + parts) * r.part
}

// add adds what was used now.
func (r *ring) add(now int64, n float64) {
	if now >= r.end || r.used == nil && r.part > 0 {
		r.move(now)
	}
	if r.sum += n; r.part > 0 {
		r.used[place(r.first+parts-1)] += n
	}
}

// spread adds what was used evenly within the last period, or in the fixed window.
func (r *ring) spread(now int64, n float64) {
	if r.part == 0 {
		r.sum += n
		return
	}
	r.move(now)
	for k := range r.used {
		r.used[k] += n / parts
	}
	r.sum += n
}

// correct corrects what was used at a time, if it still counts.
func (r *ring) correct(at int64, more float64) {
	switch k := r.first + parts - 1; {
	case r.part == 0:
		r.sum += more
	case r.used == nil:
	case at >= r.end-r.part:
		r.used[place(k)] += more
		r.sum += more
	case at >= r.first*r.part:
		r.used[place(k-(r.end-1-at)/r.part)] += more
		r.sum += more
	}
}

// sumAt returns what counts as used at a time from now on, if nothing else is used.
func (r *ring) sumAt(at int64) float64 {
	if at < r.end || r.used == nil {
		return r.sum
	}
	sum := r.sum
	for k := range min((at-r.end)/r.part+1, parts) {
		sum -= r.used[place(r.first+k)]
	}
	return sum
}

// ahead fills in what counts as used from now on, if nothing else is used.
func (r *ring) ahead(now int64, to *curve) {
	sum, gone := r.sumAt(now), int64(0)
	if r.used != nil && now >= r.end {
		gone = (now-r.end)/r.part + 1
	}
	for k := range to {
		if to[k] = sum; r.used != nil && gone < parts {
			sum -= r.used[place(r.first+gone)]
			gone++
		}
	}
}

// list returns what was used in each part of the last period, the oldest first, without the parts
// before anything was used.
func (r *ring) list(now int64) (list []float64) {
	if r.part == 0 || r.used == nil {
		return nil
	}
	r.move(max(now, r.end-1))
	for k := range int64(parts) {
		if n := r.used[place(r.first+k)]; n != 0 || list != nil {
			list = append(list, n)
		}
	}
	return list
}
