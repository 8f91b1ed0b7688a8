package redisstore

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// The steps of the script. See lua/take.lua and the files beside it, which read them.
const (
	stepTake = 1 + iota
	stepPeek
	stepSettle
	stepRead
	stepReplace
	stepBook
	stepMove
	stepOnce
	stepBooked
	stepReplaceEach
)

// Kinds of limits, by their arithmetic.
const (
	kindBucket = 1 + iota
	kindAligned
	kindAnchored
	kindCalendar
	kindCounter
	kindLog
)

func kindOf(l limit.Limit) byte {
	switch l.Algorithm() {
	case limit.FixedWindow:
		switch l {
		case l.Using(limit.FixedWindow):
			return kindAligned
		case l.Anchored():
			return kindAnchored
		default:
			return kindCalendar
		}
	case limit.SlidingCounter:
		return kindCounter
	case limit.SlidingLog:
		return kindLog
	default:
		return kindBucket
	}
}

// shapeOf returns the shape of a limit: everything but its count and burst. A new limit that has the
// shape of an old one takes over what was used of it. All limits by the day have the same shape,
// whenever their days begin, and also if these are up to a minute longer; so have all by the hour, the
// week and the month. A shape is not a valid limit.
func shapeOf(l limit.Limit) limit.Limit {
	const day = 24 * time.Hour
	kind := kindOf(l)
	switch {
	case kind == kindCalendar:
		l = l.Anchored()
	case kind == kindAnchored && l.Period().Truncate(time.Minute) == day:
		l = limit.New(0, day).Anchored()
	}
	return l.WithCount(0).WithBurst(0)
}

// costOf returns the backlog that n adds to a bucket, at most maxAmount nanoseconds.
func costOf(l limit.Limit, n int64) backlog {
	hi, lo := bits.Mul64(uint64(n), uint64(l.Period()))
	if hi >= uint64(l.Count()) {
		return backlog{ns: maxAmount}
	}
	ns, parts := bits.Div64(hi, lo, uint64(l.Count()))
	return backlog{int64(min(ns, maxAmount)), int64(parts)}
}

// windowAt returns the start and the end of the window of a limit that a time falls into.
func windowAt(l limit.Limit, at int64) (start, end int64) {
	d := new(limit.Account).Check(l, at, 1)
	return d.Since, at + int64(d.ResetAfter)
}

// prefixCache holds the bytes with which limits begin in every request, for up to maxPrefixes limits:
// their kind, their name and the name of their shape.
type prefixCache struct {
	byLimit sync.Map // from limit.Limit to writer
	count   atomic.Int64
}

const maxPrefixes = 1 << 14

func (h *prefixCache) prefix(l limit.Limit) writer {
	if known, ok := h.byLimit.Load(l); ok {
		return known.(writer)
	}
	var w writer
	w.byte(kindOf(l))
	w.name(nameOf(l))
	w.name(nameOf(shapeOf(l)))
	if h.count.Add(1) <= maxPrefixes {
		h.byLimit.Store(l, w)
	}
	return w
}

// nameOf returns the name of a limit or a shape in requests and accounts: its binary form.
func nameOf(l limit.Limit) string {
	b, _ := l.AppendBinary(nil)
	return string(b)
}

// request is an op that is being written.
type request struct {
	r *remote
	o *op
	w writer
}

// newRequest begins a request about some charges.
func (r *remote) newRequest(step byte, charges []store.Charge) *request {
	q := &request{r: r, o: &op{part: partOf(charges[0].Key), keys: make([]string, 0, len(charges))}}
	q.w = make(writer, 0, 192*len(charges))
	q.w.byte(step)
	q.w.byte(byte(len(charges)))
	return q
}

// op returns the request as an op.
func (q *request) op() *op {
	q.o.body = q.w
	return q.o
}

// key adds a key to the op, and writes the index of its name.
func (q *request) key(key string) {
	q.o.keys = append(q.o.keys, q.r.redisKey(partOf(key), key))
	q.w.byte(byte(len(q.o.keys)))
}

// distinct returns the limits without repetitions.
func distinct(limits []limit.Limit) []limit.Limit {
	for i, l := range limits {
		if slices.Contains(limits[:i], l) {
			return distinct(slices.Delete(slices.Clone(limits), i, i+1))
		}
	}
	return limits
}

// take returns the op that takes charges, or peeks. now is the server's time, by the link's estimate.
func (r *remote) take(step byte, charges []store.Charge, now int64) *op {
	q := r.newRequest(step, charges)
	for _, c := range charges {
		limits := distinct(c.Limits)
		q.key(c.Key)
		q.w.number(c.N)
		q.limits(limits, func(l limit.Limit) { q.limit(l, c.N, now) })
	}
	q.o.reads = step == stepPeek
	return q.op()
}

// limits writes limits with the number of their bytes, by which the script keeps them.
func (q *request) limits(limits []limit.Limit, write func(limit.Limit)) {
	q.w.uint32(0)
	begin := len(q.w)
	for _, l := range limits {
		write(l)
	}
	binary.LittleEndian.PutUint32(q.w[begin-4:], uint32(len(q.w)-begin))
}

// limit writes a limit that is asked for n.
func (q *request) limit(l limit.Limit, n, now int64) {
	w := &q.w
	*w = append(*w, q.r.prefixes.prefix(l)...)
	w.bool(n > l.Burst())
	w.number(l.Count())
	switch kindOf(l) {
	case kindBucket:
		w.backlog(costOf(l, n))
		w.backlog(costOf(l, l.Burst()))
	case kindAligned, kindCounter:
		w.number(floor(now, l.Period()))
		w.number(int64(l.Period()))
	case kindAnchored, kindLog:
		w.number(int64(l.Period()))
	case kindCalendar: // with the windows before and after, because the server's time may differ from now
		start, end := windowAt(l, now)
		before, _ := windowAt(l, start-1)
		_, after := windowAt(l, end)
		w.number(before)
		w.number(start)
		w.number(end)
		w.number(after)
	}
}

func floor(t int64, period time.Duration) int64 {
	start, _ := windowAt(limit.New(1, period).Using(limit.FixedWindow), t)
	return start
}

// settle returns the op that corrects takes to their actual amounts. If undo is set, and nothing has
// changed since, the accounts become what they were before the takes.
func (r *remote) settle(takes []*chargeReceipt, actual []int64, undo bool) *op {
	charges := make([]store.Charge, len(takes))
	for i, t := range takes {
		charges[i] = t.charge
	}
	q := r.newRequest(stepSettle, charges)
	w := &q.w
	for i, t := range takes {
		limits := distinct(t.charge.Limits)
		q.key(t.charge.Key)
		w.epoch(t.Epoch)
		w.number(t.N)
		w.number(t.At)
		w.number(actual[i])
		if undo {
			w.float(t.revision)
		} else {
			w.float(-1)
		}
		q.limits(limits, func(l limit.Limit) { q.settlement(l, t, actual[i]) })
		for _, l := range limits {
			if undo {
				before := &t.before[slices.Index(t.charge.Limits, l)]
				w.number(before.at)
				w.number(before.a)
				w.number(before.b)
			}
		}
	}
	return q.op()
}

// settlement writes a limit under which a take is corrected.
func (q *request) settlement(l limit.Limit, t *chargeReceipt, actual int64) {
	w := &q.w
	*w = append(*w, q.r.prefixes.prefix(l)...)
	switch kindOf(l) {
	case kindBucket:
		var before limitState
		var left backlog
		i := slices.Index(t.charge.Limits, l)
		if ns, parts, ok := t.Backlog(i); ok {
			before, left = t.before[i], backlog{ns, parts}
		}
		w.number(l.Count())
		w.backlog(costOf(l, max(actual-t.N, t.N-actual)))
		w.backlog(left)
		w.unsigned(uint64(before.refunded.ns))
		w.number(before.refunded.parts)
		w.float(before.changes)
	case kindCounter:
		w.number(floor(t.At, l.Period()))
		w.number(int64(l.Period()))
	case kindAnchored, kindLog:
		w.number(int64(l.Period()))
	default:
		start, end := windowAt(l, t.At)
		w.number(start)
		w.number(end)
	}
}
