package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// The model: what a store must answer, from the definitions of the algorithms,
// in lists and rational numbers, with no regard to cost.

// answer is what one limit says.
type answer struct {
	allowed         bool
	used, remaining int64
	retry, reset    time.Duration
	since           int64
}

func answerOf(d limit.Decision) answer {
	return answer{d.Allowed, d.Used, d.Remaining, d.RetryAfter, d.ResetAfter, d.Since}
}

// counter is what one key has used of one limit. Looking at it changes nothing.
type counter interface {
	// rewind notes that the clock shows now. What passed later than that counts
	// as it did or more, and lasts about as long from now on as it would have.
	rewind(now int64)
	// leave drops what counts no more at now, so that it does not come back.
	leave(now int64)
	// become changes how much the limit allows.
	become(l limit.Limit, now int64)

	look(now, n int64) answer
	take(now int64, id int, n int64) note
	settle(now int64, r note, actual int64)

	clone() counter
	String() string // equal for counters that are equal
}

// note is what settling must know of a take.
type note struct {
	id    int
	at, n int64

	left     *big.Rat // of a bucket: the backlog that it left behind
	refunded *big.Rat // and all that was refunded by then
}

func newCounter(l limit.Limit, w windowing) counter {
	switch l.Algorithm() {
	case limit.FixedWindow:
		return newWindowCounter(l, w)
	case limit.SlidingLog:
		return &logCounter{limit: l}
	case limit.SlidingCounter:
		return &slidingCounter{limit: l}
	default:
		return newBucketCounter(l)
	}
}

// never says that n can never pass.
func never(l limit.Limit, n int64) bool { return n < 0 || n > l.Burst() }

// passed is one take: when, and how much as far as is known.
type passed struct {
	id    int
	at, n int64
}

func total(list []passed) (sum int64) {
	for _, p := range list {
		sum += p.n
	}
	return sum
}

// correct sets how much the take of an id was, if it is in the list.
func correct(list []passed, id int, n int64) {
	for i := range list {
		if list[i].id == id {
			list[i].n = n
		}
	}
}

// rule is a limit, and where its windows begin if it has any.
type rule struct {
	limit.Limit
	windows windowing
}

// world is one state that a key can be in. There can be several: a store may
// forget a key that is full, and need not remember that it was peeked at. That
// makes a difference once the clock has gone back, and none before.
type world struct {
	counters []counter
	notes    map[int][]note // of each take that may be settled: one for each limit
}

func newWorld(rules []rule) world {
	w := world{notes: map[int][]note{}}
	for _, r := range rules {
		w.counters = append(w.counters, newCounter(r.Limit, r.windows))
	}
	return w
}

func (w world) clone() world {
	c := world{notes: maps.Clone(w.notes)}
	for _, each := range w.counters {
		c.counters = append(c.counters, each.clone())
	}
	return c
}

func (w world) String() string { return fmt.Sprint(w.counters) }

func (w world) full(now int64) bool {
	return !slices.ContainsFunc(w.counters, func(c counter) bool { return c.look(now, 0).reset > 0 })
}

// anyFull reports whether one of its limits is full.
func (w world) anyFull(now int64) bool {
	return slices.ContainsFunc(w.counters, func(c counter) bool { return c.look(now, 0).reset <= 0 })
}

func (w world) rewind(now int64) {
	for _, c := range w.counters {
		c.rewind(now)
	}
}

func (w world) leave(now int64) {
	for _, c := range w.counters {
		c.leave(now)
	}
}

// says returns what a take of n is told, where others are denied or not. A peek
// is told what a take is that others are denied.
func (w world) says(now, n int64, charged bool) []answer {
	var answers []answer
	for _, c := range w.counters {
		a := c.look(now, n)
		if a.allowed && !charged {
			a = c.look(now, 0)
		}
		answers = append(answers, a)
	}
	return answers
}

// key is a key of the store, and all worlds that it can be in.
type key struct {
	name   string
	rules  []rule
	worlds []world
	last   []answer // that it was given
}

func newKey(name string, rules []rule) *key {
	return &key{name: name, rules: rules, worlds: []world{newWorld(rules)}, last: make([]answer, len(rules))}
}

func (k *key) limits() (limits []limit.Limit) {
	for _, r := range k.rules {
		limits = append(limits, r.Limit)
	}
	return limits
}

func (k *key) leastBurst() int64 {
	return slices.MinFunc(k.rules, func(a, b rule) int { return cmp.Compare(a.Burst(), b.Burst()) }).Burst()
}

// anyFull reports whether one of its limits may be full.
func (k *key) anyFull(now int64) bool {
	return slices.ContainsFunc(k.worlds, func(w world) bool { return w.anyFull(now) })
}

// split replaces each world by those that it can become.
func (k *key) split(into func(w world) []world) {
	known := map[string]bool{}
	var worlds []world
	for _, w := range k.worlds {
		for _, next := range into(w) {
			if s := next.String(); !known[s] {
				known[s] = true
				worlds = append(worlds, next)
			}
		}
	}
	k.worlds = worlds
}

// mayBeForgotten is told the time whenever the store may have read its clock.
func (k *key) mayBeForgotten(now int64) {
	k.split(func(w world) []world {
		seen := w.clone()
		seen.rewind(now)
		if !seen.full(now) {
			return []world{w}
		}
		forgotten := newWorld(k.rules)
		forgotten.notes = maps.Clone(w.notes)
		return []world{w, forgotten}
	})
}

// keep drops the worlds that would have answered otherwise. It returns what
// they would have said if none is left.
func (k *key) keep(now, n int64, charged bool, got []answer) (wanted [][]answer) {
	var kept []world
	for _, w := range k.worlds {
		seen := w.clone()
		seen.rewind(now)
		want := seen.says(now, n, charged)
		if slices.Equal(got, want) {
			kept = append(kept, w)
		}
		wanted = append(wanted, want)
	}
	if len(kept) == 0 {
		return wanted
	}
	k.worlds, k.last = kept, got
	return nil
}

// took is what a take that was allowed does.
func (k *key) took(now int64, id int, n int64) {
	k.split(func(w world) []world {
		w.rewind(now)
		w.leave(now)
		var notes []note
		for _, c := range w.counters {
			notes = append(notes, c.take(now, id, n))
		}
		w.notes[id] = notes
		return []world{w}
	})
}

// denied is what a take that was denied does: no more than note the time. It
// must note that the clock went back, or what is in use would last for ever as
// long as everything is denied.
func (k *key) denied(now int64) {
	k.split(func(w world) []world {
		w.rewind(now)
		left := w.clone()
		left.leave(now)
		return []world{w, left}
	})
}

// peeked is what a peek may do.
func (k *key) peeked(now int64) {
	k.split(func(w world) []world {
		noted := w.clone()
		noted.rewind(now)
		left := noted.clone()
		left.leave(now)
		return []world{w, noted, left}
	})
}

// settled corrects a take, in the worlds that know of it.
func (k *key) settled(now int64, id int, actual int64) {
	k.split(func(w world) []world {
		for i, n := range w.notes[id] {
			w.counters[i].settle(now, n, actual)
		}
		left := w.clone()
		left.leave(now)
		return []world{w, left}
	})
}

// reset is what Reset does: there is nothing that earlier takes could be
// corrected in.
func (k *key) reset() { k.worlds = []world{newWorld(k.rules)} }

// become changes the counts of a key's limits.
func (k *key) become(rules []rule, now int64) {
	k.rules = rules
	k.split(func(w world) []world {
		for i, c := range w.counters {
			c.become(rules[i].Limit, now)
		}
		return []world{w}
	})
}
