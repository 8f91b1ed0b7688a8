package share

import "dappco.re/go/core/go-ratelimit/limit"

// parts is into how many parts a period is divided.
const parts = 60

// ring is what was used in each part of the last period. Of a fixed window, it is all that was
// used in it.
type ring struct {
	part  int64 // the length of a part; 0: the ring is of a fixed window
	first int64 // the number of the oldest part
	sum   float64
	used  *[parts]float64 // by the number of the part, modulo parts; nil: nothing was used yet
}

func newRing(l limit.Limit) ring {
	if l.Algorithm() == limit.FixedWindow {
		return ring{}
	}
	return ring{part: max(int64(l.Period())/parts, 1)}
}

// place returns where a part of a number is, which is below zero before 1970.
func place(k int64) int64 { return (k%parts + parts) % parts }

func (r *ring) clear() { *r = ring{part: r.part} }

// move drops the parts that have begun a period before now.
func (r *ring) move(now int64) {
	if r.part == 0 || r.used == nil {
		return
	}
	first := now/r.part - parts + 1
	if first-r.first >= parts {
		clear(r.used[:])
		r.first, r.sum = first, 0
	}
	for ; r.first < first; r.first++ {
		u := &r.used[place(r.first)]
		r.sum -= *u
		*u = 0
	}
}

// add adds what was used now.
func (r *ring) add(now int64, n float64) {
	if r.part == 0 {
		r.sum += n
		return
	}
	if r.used == nil {
		r.used, r.first = new([parts]float64), now/r.part-parts+1
	}
	r.move(now)
	r.used[place(now/r.part)] += n
	r.sum += n
}

// correct corrects what was used at a time, if it still counts.
func (r *ring) correct(at int64, more float64) {
	if r.part == 0 {
		r.sum += more
	} else if r.used != nil && at/r.part >= r.first {
		r.used[place(at/r.part)] += more
		r.sum += more
	}
}

// sumAt returns what counts as used at a time from now on, if nothing else is used.
func (r *ring) sumAt(at int64) float64 {
	if r.part == 0 || r.used == nil {
		return r.sum
	}
	sum := r.sum
	for k, first := r.first, at/r.part-parts+1; k < min(first, r.first+parts); k++ {
		sum -= r.used[place(k)]
	}
	return sum
}

// list returns what was used in each part of the last period, the oldest first, without the parts
// before anything was used.
func (r *ring) list(now int64) (list []float64) {
	if r.part == 0 || r.used == nil {
		return nil
	}
	for k := now/r.part - parts + 1; k <= now/r.part; k++ {
		n := 0.0
		if k >= r.first && k < r.first+parts {
			n = r.used[place(k)]
		}
		if n != 0 || list != nil {
			list = append(list, n)
		}
	}
	return list
}

// asks is how much and how fast a member has asked, in this period and in the one before.
type asks struct {
	end              int64 // of this period
	now, before      asked
	pressed, hadToBe bool // it had to wait, or asked for more than its share, in this period and in the one before
}

// asked is what a member has asked for in a period.
type asked struct {
	sum, calls int64
	free       int64 // for how long none of its calls waited, so that it might have asked for more
}

// add records that a member asks.
func (a *asks) add(now, period, n int64) {
	a.move(now, period)
	a.now.sum += n
	a.now.calls++
}

// rate returns how much the member asks for in a nanosecond in which none of its calls waits.
func (a *asks) rate() float64 {
	return float64(a.now.sum+a.before.sum) / float64(max(a.now.free+a.before.free, 1))
}

// move begins a new period, if this one is over.
func (a *asks) move(now, period int64) {
	if now < a.end {
		return
	}
	if a.before, a.hadToBe = a.now, a.pressed; now >= a.end+period {
		a.before, a.hadToBe = asked{}, false
	}
	a.now, a.pressed, a.end = asked{}, false, now+period
}

// takeBack lets it be as if the member had not asked.
func (a *asks) takeBack(n int64) {
	if n > 0 {
		a.now.sum, a.now.calls = max(0, a.now.sum-n), max(0, a.now.calls-1)
	}
}
