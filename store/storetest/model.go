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

// The model computes what a store must answer from the definitions of the algorithms, with
// lists and rational numbers, and with no regard to cost.

// answer is the decision of one limit.
type answer struct {
	allowed         bool
	used, remaining int64
	retry, reset    time.Duration
	since           int64
}

func answerOf(d limit.Decision) answer {
	return answer{d.Allowed, d.Used, d.Remaining, d.RetryAfter, d.ResetAfter, d.Since}
}

// counter is what one key has used of one limit. check changes nothing.
type counter interface {
	// rewind sets the clock to now. Takes from later times count as before or more, and last about
	// as long from now on as they would have.
	rewind(now int64)
	// expire drops takes that count no more at now, so that they do not come back.
	expire(now int64)
	// setLimit changes how much the limit allows.
	setLimit(l limit.Limit, now int64)

	check(now, n int64) answer
	take(now int64, id int, n int64) takeRecord
	settle(now int64, r takeRecord, actual int64)

	clone() counter
	String() string // equal for equal counters
}

// takeRecord is what a settlement needs to know about a take.
type takeRecord struct {
	id    int
	at, n int64

	left     *big.Rat // for a bucket: the backlog after the take
	refunded *big.Rat // for a bucket: all refunds up to the take
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

// never reports whether n can never pass.
func never(l limit.Limit, n int64) bool { return n < 0 || n > l.Burst() }

// passed is one take: its time, and its amount as far as it is known.
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

// correct sets the amount of the take with an id, if it is in the list.
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

// world is one state that a key can be in. There can be several: a store may forget a full key, and
// need not remember a peek. That makes a difference only once the clock has gone back.
type world struct {
	counters []counter
	records  map[int][]takeRecord // for each take that may be settled: one for each limit
}

func newWorld(rules []rule) world {
	w := world{records: map[int][]takeRecord{}}
	for _, r := range rules {
		w.counters = append(w.counters, newCounter(r.Limit, r.windows))
	}
	return w
}

func (w world) clone() world {
	c := world{records: maps.Clone(w.records)}
	for _, each := range w.counters {
		c.counters = append(c.counters, each.clone())
	}
	return c
}

func (w world) String() string { return fmt.Sprint(w.counters) }

func (w world) full(now int64) bool {
	return !slices.ContainsFunc(w.counters, func(c counter) bool { return c.check(now, 0).reset > 0 })
}

// anyFull reports whether one of the limits is full.
func (w world) anyFull(now int64) bool {
	return slices.ContainsFunc(w.counters, func(c counter) bool { return c.check(now, 0).reset <= 0 })
}

func (w world) rewind(now int64) {
	for _, c := range w.counters {
		c.rewind(now)
	}
}

func (w world) expire(now int64) {
	for _, c := range w.counters {
		c.expire(now)
	}
}

// answers returns the decisions on n. charged says whether all limits of the call allow it: if not,
// or for a peek, a limit that allows reports what remains now.
func (w world) answers(now, n int64, charged bool) []answer {
	var answers []answer
	for _, c := range w.counters {
		a := c.check(now, n)
		if a.allowed && !charged {
			a = c.check(now, 0)
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
	last   []answer // the last answers about it
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

// anyFull reports whether one of the limits may be full.
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

// mayBeForgotten is called whenever the store may have read its clock.
func (k *key) mayBeForgotten(now int64) {
	k.split(func(w world) []world {
		seen := w.clone()
		seen.rewind(now)
		if !seen.full(now) {
			return []world{w}
		}
		forgotten := newWorld(k.rules)
		forgotten.records = maps.Clone(w.records)
		return []world{w, forgotten}
	})
}

// matchAnswers drops the worlds with other answers. If none is left, it returns their answers.
func (k *key) matchAnswers(now, n int64, charged bool, got []answer) (wanted [][]answer) {
	var kept []world
	for _, w := range k.worlds {
		seen := w.clone()
		seen.rewind(now)
		want := seen.answers(now, n, charged)
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

// took applies a take that was allowed.
func (k *key) took(now int64, id int, n int64) {
	k.split(func(w world) []world {
		w.rewind(now)
		w.expire(now)
		var records []takeRecord
		for _, c := range w.counters {
			records = append(records, c.take(now, id, n))
		}
		w.records[id] = records
		return []world{w}
	})
}

// denied applies a take that was denied: it only records the time. It must record that the clock
// went back: otherwise what is in use would last for ever as long as everything is denied.
func (k *key) denied(now int64) {
	k.split(func(w world) []world {
		w.rewind(now)
		expired := w.clone()
		expired.expire(now)
		return []world{w, expired}
	})
}

// peeked applies a peek, which may record the time or not.
func (k *key) peeked(now int64) {
	k.split(func(w world) []world {
		rewound := w.clone()
		rewound.rewind(now)
		expired := rewound.clone()
		expired.expire(now)
		return []world{w, rewound, expired}
	})
}

// settled corrects a take, in the worlds that know of it.
func (k *key) settled(now int64, id int, actual int64) {
	k.split(func(w world) []world {
		for i, n := range w.records[id] {
			w.counters[i].settle(now, n, actual)
		}
		expired := w.clone()
		expired.expire(now)
		return []world{w, expired}
	})
}

// reset applies Reset: earlier takes cannot be corrected any more.
func (k *key) reset() { k.worlds = []world{newWorld(k.rules)} }

// setRules changes the counts of a key's limits.
func (k *key) setRules(rules []rule, now int64) {
	k.rules = rules
	k.split(func(w world) []world {
		for i, c := range w.counters {
			c.setLimit(rules[i].Limit, now)
		}
		return []world{w}
	})
}
