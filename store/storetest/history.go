package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// histories compares every answer of a store with the model's, in random histories. They share a
// store, and have keys of their own.
func histories(counts []int64) func(t *testing.T, newStore opener) {
	return func(t *testing.T, newStore opener) {
		c := newClock()
		s := newStore(t, c.now)
		number := 0
		rapid.Check(t, func(t *rapid.T) {
			number++
			h := &history{T: t, store: s, clock: c, counts: counts, name: fmt.Sprintf("history %d/", number)}
			c.set(oneOf(t, "start", starts...))
			for range rapid.IntRange(1, 3).Draw(t, "keys") {
				h.keys = append(h.keys, h.freshKey())
			}
			for range rapid.IntRange(1, 30).Draw(t, "steps") {
				h.move()
				oneOf(t, "op", ops...)(h)
			}
		})
	}
}

// starts are the first times of histories: at no boundary, at some, and near those at which the
// clocks of a zone change.
var starts = []time.Time{
	time.Date(2026, time.March, 14, 15, 9, 26, 535_897_932, time.UTC),
	time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2026, time.March, 8, 7, 59, 59, 999_999_999, time.UTC),    // Los Angeles skips an hour on this day
	time.Date(2026, time.November, 1, 6, 30, 0, 1, time.UTC),            // and repeats one on this
	time.Date(2026, time.March, 29, 0, 30, 0, 0, time.UTC),              // Berlin skips 02:30
	time.Date(2026, time.October, 25, 0, 29, 59, 999_999_999, time.UTC), // and repeats it
	time.Date(2026, time.April, 4, 14, 59, 0, 0, time.UTC),              // Lord Howe repeats half an hour
	time.Date(2028, time.March, 1, 3, 59, 59, 999_999_999, time.UTC),    // in New York, 29 February ends in an hour
}

// history is one random history.
type history struct {
	*rapid.T
	store store.Store
	clock *clock

	name     string // the prefix of all of its keys
	counts   []int64
	keys     []*key
	keyCount int
	taken    []*taken
	steps    []string // so far
}

// taken is a take that was allowed.
type taken struct {
	id      int
	receipt store.Receipt
	keys    []*key
	amounts []int64
	settled bool
	reset   bool // some of its keys were reset since
}

func (h *history) failf(format string, args ...any) {
	h.Helper()
	h.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(h.steps, "\n"))
}

func (h *history) logf(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf("%d: ", h.clock.now())+fmt.Sprintf(format, args...))
}

func (h *history) freshKey() *key {
	h.keyCount++
	ending := oneOf(h.T, "ending", "", "a", "%", "a/b", "_", "\x00")
	return newKey(fmt.Sprintf("%skey %d%s", h.name, h.keyCount, ending), anyRules(h.T, h.counts))
}

// move moves the clock by a duration that matters to one of the limits.
func (h *history) move() {
	k := oneOf(h.T, "key", h.keys...)
	i := rapid.IntRange(0, len(k.rules)-1).Draw(h.T, "limit")
	l, last := k.rules[i], k.last[i]
	period := l.Period()
	if last.retry == limit.Never {
		last.retry = 0
	}
	by := oneOf(h.T, "by",
		0, 0, 0, 1, period/time.Duration(l.Count())+1, period/3, last.retry, max(last.retry-1, 0), last.reset, max(last.reset-1, 0),
		period, period+1, 2*period-1, 3*period, time.Hour)
	if rapid.IntRange(0, 9).Draw(h.T, "back") == 9 {
		by = oneOf(h.T, "by", -1, -max(period/2, 1), -time.Hour, -26*time.Hour)
	}
	if by < 0 {
		h.leavePast()
	}
	h.clock.add(by)
}

// leavePast is called before the clock goes back. After that it is undefined which window earlier
// takes belong to, and whether a key that is full now was forgotten: so the history uses neither.
func (h *history) leavePast() {
	h.taken = nil
	for i, k := range h.keys {
		if k.anyFull(h.clock.now()) {
			h.keys[i] = h.freshKey()
		}
	}
}

// ops are the possible operations of a history.
var ops = []func(h *history){
	(*history).take, (*history).take, (*history).peek, (*history).settle, (*history).settle, (*history).comeBack, (*history).reset, (*history).replaceKey,
}

// charge draws charges of some of the keys, in any order.
func (h *history) charge() ([]*key, []store.Charge) {
	keys := rapid.Permutation(h.keys).Draw(h.T, "order")
	keys = keys[:rapid.IntRange(1, len(keys)).Draw(h.T, "how many")]
	var charges []store.Charge
	for _, k := range keys {
		i := rapid.IntRange(0, len(k.rules)-1).Draw(h.T, "of limit")
		burst, left := k.rules[i].Burst(), k.last[i].remaining
		n := oneOf(h.T, "amount", 1, 1, left, left/2, left+1, burst, burst+1, 0, rapid.Int64Range(0, burst).Draw(h.T, "n"))
		charges = append(charges, store.Charge{Key: k.name, Limits: k.limits(), N: n})
	}
	return keys, charges
}

func (h *history) take() { h.takeThese(h.charge()) }

// takeThese takes, and compares the store's decisions with the model.
func (h *history) takeThese(keys []*key, charges []store.Charge) []limit.Decision {
	r, decisions, err := h.store.Take(h.Context(), charges)
	allowed := store.Allowed(decisions)
	h.logf("take %s: %v", described(charges), allowed)
	if err != nil || (r != nil) != allowed {
		h.failf("take %s: receipt %v, %+v, %v", described(charges), r, decisions, err)
	}
	h.compare(keys, charges, decisions, allowed)
	now := h.clock.now()
	if !allowed {
		for _, k := range keys {
			k.denied(now)
		}
		return decisions
	}
	t := &taken{id: len(h.steps), receipt: r, keys: keys}
	for i, k := range keys {
		k.took(now, t.id, charges[i].N)
		t.amounts = append(t.amounts, charges[i].N)
	}
	h.taken = append(h.taken, t)
	return decisions
}

func (h *history) peek() {
	keys, charges := h.charge()
	decisions, err := h.store.Peek(h.Context(), charges)
	h.logf("peek %s", described(charges))
	if err != nil {
		h.failf("peek %s: %v", described(charges), err)
	}
	h.compare(keys, charges, decisions, false)
	for _, k := range keys {
		k.peeked(h.clock.now())
	}
}

// compare compares decisions with the model.
func (h *history) compare(keys []*key, charges []store.Charge, decisions []limit.Decision, charged bool) {
	h.Helper()
	h.tick()
	rest := decisions
	for i, k := range keys {
		if len(rest) < len(k.rules) {
			h.failf("%s: %d decisions", described(charges), len(decisions))
		}
		var got []answer
		for j, d := range rest[:len(k.rules)] {
			if d.Limit != k.rules[j].Limit {
				h.failf("%s: %v is named in place of %v", described(charges), d.Limit, k.rules[j].Limit)
			}
			got = append(got, answerOf(d))
		}
		rest = rest[len(k.rules):]
		if wanted := k.matchAnswers(h.clock.now(), charges[i].N, charged, got); wanted != nil {
			h.failf("%d of %q (%v) at %d:\n got %+v\nwant %+v\nknown: %v", charges[i].N, k.name, k.limits(), h.clock.now(), got, wanted, k.worlds)
		}
	}
	if len(rest) > 0 {
		h.failf("%s: %d decisions", described(charges), len(decisions))
	}
}

// tick is called whenever the store may have read its clock.
func (h *history) tick() {
	for _, k := range h.keys {
		k.mayBeForgotten(h.clock.now())
	}
}

// settle settles any of the takes, for the first time or again.
func (h *history) settle() {
	if len(h.taken) == 0 {
		return
	}
	t := oneOf(h.T, "which", h.taken...)
	var actual []int64
	for i, n := range t.amounts {
		amounts := []int64{0, n / 2, n, -1, max(n-1, 0)}
		burst := t.keys[i].leastBurst()
		if n > 0 && !t.reset && burst <= 1<<50 { // for others it is undefined since when the debt counts; and sums must fit
			amounts = append(amounts, n+1, n+burst/2, n+rapid.Int64Range(0, burst).Draw(h.T, "more"))
		}
		actual = append(actual, oneOf(h.T, "actual", amounts...))
	}
	h.logf("settle %d of %s at %d (again: %v)", actual, names(t.keys), t.id, t.settled)
	if err := h.store.Settle(h.Context(), t.receipt, actual); err != nil {
		h.failf("settle %d: %v", actual, err)
	}
	h.tick()
	for i, k := range t.keys {
		if !t.settled && actual[i] >= 0 {
			k.settled(h.clock.now(), t.id, actual[i])
		}
	}
	t.settled = true
}

// comeBack takes. If that is denied, it takes again a nanosecond before RetryAfter, and then at
// RetryAfter.
func (h *history) comeBack() {
	keys, charges := h.charge()
	retry := store.Deciding(h.takeThese(keys, charges)).RetryAfter
	if retry == 0 || retry == limit.Never {
		return
	}
	h.clock.add(retry - 1)
	if d := h.takeThese(keys, charges); store.Allowed(d) {
		h.failf("%s passes a nanosecond before it was told to come back", described(charges))
	}
	h.clock.add(1)
	if d := h.takeThese(keys, charges); !store.Allowed(d) {
		h.failf("%s is denied when it was told to come back: %+v", described(charges), d)
	}
}

func (h *history) reset() {
	whole := oneOf(h.T, "key", h.keys...).name
	prefix := oneOf(h.T, "prefix", whole, h.name, whole[:len(whole)-1], whole+"x", strings.ToUpper(whole), "%", "*")
	h.logf("reset %q", prefix)
	if err := h.store.Reset(h.Context(), prefix); err != nil {
		h.failf("reset %q: %v", prefix, err)
	}
	h.tick()
	for _, k := range h.keys {
		if strings.HasPrefix(k.name, prefix) {
			k.reset()
			for _, t := range h.taken {
				t.reset = t.reset || slices.Contains(t.keys, k)
			}
		}
	}
}

func (h *history) replaceKey() {
	i := rapid.IntRange(0, len(h.keys)-1).Draw(h.T, "which")
	h.taken = slices.DeleteFunc(h.taken, func(t *taken) bool { return slices.Contains(t.keys, h.keys[i]) })
	h.keys[i] = h.freshKey()
}

func described(charges []store.Charge) string {
	var parts []string
	for _, c := range charges {
		parts = append(parts, fmt.Sprintf("%d of %q %v", c.N, c.Key, c.Limits))
	}
	return strings.Join(parts, ", ")
}

func names(keys []*key) string {
	var list []string
	for _, k := range keys {
		list = append(list, fmt.Sprintf("%q", k.name))
	}
	return strings.Join(list, ", ")
}
