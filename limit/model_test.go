package limit

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The naive models. Each is written from the definition of its algorithm, in
// exact rational numbers, with no regard to cost, and shares no arithmetic with
// the package.

// modelAnswer is what a limit says to one request.
type modelAnswer struct {
	allowed   bool
	used      int64
	remaining int64
	retry     time.Duration
	reset     time.Duration
	since     int64
}

func modelAnswerOf(v Verdict) modelAnswer {
	return modelAnswer{v.Allowed, v.Used, v.Remaining, v.RetryAfter, v.ResetAfter, v.Since}
}

func modelAnswerIn(d Decision) modelAnswer {
	return modelAnswer{d.Allowed, d.Used, d.Remaining, d.RetryAfter, d.ResetAfter, d.Since}
}

// modelPassed is what passed when.
type modelPassed struct{ at, n int64 }

// model answers requests one after another.
type model interface {
	take(now, n int64) modelAnswer
}

func modelNever(l Limit, n int64) bool { return n < 0 || n > l.Burst() }

func modelRat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func ratFloor(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64() // Euclidean: down, for a positive denominator
}

func ratCeil(r *big.Rat) int64 { return -ratFloor(new(big.Rat).Neg(r)) }

func ratMax(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func ratMin(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func ratAdd(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }
func ratSub(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
func ratMul(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
func ratQuo(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) }

// modelRate is how much a nanosecond.
func modelRate(l Limit) *big.Rat { return big.NewRat(l.Count(), int64(l.Period())) }

// modelTokens is the token bucket: it begins with burst tokens, gains rate
// tokens a nanosecond up to burst, and whoever passes takes theirs.
type modelTokens struct {
	limit  Limit
	tokens *big.Rat
	at     int64
}

func newModelTokens(l Limit) *modelTokens { return &modelTokens{limit: l, tokens: modelRat(l.Burst())} }

func (m *modelTokens) take(now, n int64) modelAnswer {
	m.at = min(m.at, now) // a clock that went back adds no token, and takes none
	burst, rate := modelRat(m.limit.Burst()), modelRate(m.limit)
	tokens := ratMin(burst, ratAdd(m.tokens, ratMul(modelRat(now-m.at), rate)))
	a := modelAnswer{}
	switch {
	case modelNever(m.limit, n):
		a.retry = Never
	case n == 0 && tokens.Sign() >= 0:
		a.allowed = true
	case tokens.Cmp(modelRat(n)) >= 0:
		a.allowed = true
		tokens = ratSub(tokens, modelRat(n))
		m.tokens, m.at = tokens, now
	default:
		a.retry = time.Duration(ratCeil(ratQuo(ratSub(modelRat(n), tokens), rate)))
	}
	a.used, a.remaining = ratCeil(ratSub(burst, tokens)), max(ratFloor(tokens), 0)
	a.reset = time.Duration(ratCeil(ratQuo(ratSub(burst, tokens), rate)))
	return a
}

// modelLeaky is the leaky bucket as a meter: what passes raises the level, the
// level falls at the rate, and what would raise it above burst is denied.
type modelLeaky struct {
	limit Limit
	level *big.Rat
	at    int64
}

func newModelLeaky(l Limit) *modelLeaky { return &modelLeaky{limit: l, level: modelRat(0)} }

func (m *modelLeaky) take(now, n int64) modelAnswer {
	m.at = min(m.at, now)
	burst, rate := modelRat(m.limit.Burst()), modelRate(m.limit)
	level := ratMax(modelRat(0), ratSub(m.level, ratMul(modelRat(now-m.at), rate)))
	a := modelAnswer{}
	switch {
	case modelNever(m.limit, n):
		a.retry = Never
	case n == 0 && level.Cmp(burst) <= 0:
		a.allowed = true
	case ratAdd(level, modelRat(n)).Cmp(burst) <= 0:
		a.allowed = true
		level = ratAdd(level, modelRat(n))
		m.level, m.at = level, now
	default:
		over := ratSub(ratAdd(level, modelRat(n)), burst)
		a.retry = time.Duration(ratCeil(ratQuo(over, rate)))
	}
	a.used, a.remaining = ratCeil(level), max(ratFloor(ratSub(burst, level)), 0)
	a.reset = time.Duration(ratCeil(ratQuo(level, rate)))
	return a
}

// modelArrival is GCRA: the theoretical arrival time moves on by the emission
// interval for each that passes, which it does if that is no further ahead of
// the clock than the tolerance.
type modelArrival struct {
	limit Limit
	tat   *big.Rat
	at    int64 // of the last that passed
}

func newModelArrival(l Limit) *modelArrival {
	return &modelArrival{limit: l, tat: modelRat(0)}
}

func (m *modelArrival) take(now, n int64) modelAnswer {
	if now < m.at { // the clock went back, and the arrival time with it
		m.tat, m.at = ratSub(m.tat, modelRat(m.at-now)), now
	}
	interval := big.NewRat(int64(m.limit.Period()), m.limit.Count())
	tolerance := ratMul(interval, modelRat(m.limit.Burst()))
	tat := ratMax(m.tat, modelRat(now))
	a := modelAnswer{}
	next := ratAdd(tat, ratMul(interval, modelRat(n)))
	early := ratSub(ratSub(next, tolerance), modelRat(now))
	switch {
	case modelNever(m.limit, n):
		a.retry = Never
	case n == 0 && early.Sign() <= 0:
		a.allowed = true
	case early.Sign() <= 0:
		a.allowed = true
		tat = next
		m.tat, m.at = tat, now
	default:
		a.retry = time.Duration(ratCeil(early))
	}
	ahead := ratSub(tat, modelRat(now))
	a.used = ratCeil(ratQuo(ahead, interval))
	a.remaining = max(ratFloor(ratQuo(ratSub(tolerance, ahead), interval)), 0)
	a.reset = time.Duration(ratCeil(ahead))
	return a
}

// modelWindow is the fixed window: a list of all that passed, of which those
// count that passed in the window of now.
type modelWindow struct {
	limit    Limit
	anchored bool
	bounds   func(now int64) (start, end int64)

	start, end int64 // of the window of the last that passed
	passed     []modelPassed
}

func newModelWindow(l Limit, anchored bool, bounds func(now int64) (start, end int64)) *modelWindow {
	return &modelWindow{limit: l, anchored: anchored, bounds: bounds, start: math.MinInt64, end: math.MinInt64}
}

// modelAligned returns the windows of a period, counted from 1970.
func modelAligned(period time.Duration) func(now int64) (start, end int64) {
	return func(now int64) (start, end int64) {
		p := int64(period)
		start = now - (now%p+p)%p
		return start, start + p
	}
}

// modelFrom returns windows that begin now.
func modelFrom(period time.Duration) func(now int64) (start, end int64) {
	return func(now int64) (start, end int64) { return now, now + int64(period) }
}

func (m *modelWindow) window(now int64) (start, end int64) {
	if now >= m.start && now < m.end {
		return m.start, m.end
	}
	return m.bounds(now)
}

func (m *modelWindow) used(start, end int64) int64 {
	used := int64(0)
	for _, e := range m.passed {
		if e.at >= start && e.at < end {
			used += e.n
		}
	}
	return used
}

// rewind lets what passed in the last window have passed now. It counts until
// that window's end, but no longer than to the end of the one after this; an
// anchored window is never longer than a period.
func (m *modelWindow) rewind(now int64) {
	if now >= m.start {
		return
	}
	m.passed = slices.DeleteFunc(m.passed, func(e modelPassed) bool { return e.at < m.start })
	for i := range m.passed {
		m.passed[i].at = now
	}
	_, end := m.bounds(now)
	if !m.anchored {
		_, end = m.bounds(end)
	}
	m.start, m.end = now, min(m.end, end)
}

func (m *modelWindow) take(now, n int64) modelAnswer {
	m.rewind(now)
	start, end := m.window(now)
	used := int64(0)
	if now < m.end || m.end == math.MinInt64 {
		used = m.used(start, end)
	}
	a := modelAnswer{}
	switch {
	case modelNever(m.limit, n):
		a.retry = Never
	case n == 0 && used <= m.limit.Count():
		a.allowed = true
	case n <= m.limit.Count()-used:
		a.allowed = true
		used += n
		if now >= m.end && m.end != math.MinInt64 {
			m.passed = nil
		}
		m.start, m.end = start, end
		m.passed = append(m.passed, modelPassed{now, n})
	default:
		a.retry = time.Duration(end - now)
	}
	a.used, a.remaining = used, max(m.limit.Count()-used, 0)
	if used > 0 {
		a.reset, a.since = time.Duration(end-now), start
	}
	return a
}

// modelLog is the sliding log: a list of all that passed, of which those count
// that passed less than a period ago.
type modelLog struct {
	limit  Limit
	passed []modelPassed
}

func newModelLog(l Limit) *modelLog { return &modelLog{limit: l} }

// inWindow returns what counts at now.
func (m *modelLog) inWindow(now int64) []modelPassed {
	var in []modelPassed
	for _, e := range m.passed {
		if e.at > now-int64(m.limit.Period()) {
			in = append(in, e)
		}
	}
	return in
}

func modelSum(entries []modelPassed) int64 {
	sum := int64(0)
	for _, e := range entries {
		sum += e.n
	}
	return sum
}

// look answers and enters nothing.
func (m *modelLog) look(now, n int64) modelAnswer {
	for i := range m.passed { // what is in the future of a clock that went back, passed now
		m.passed[i].at = min(m.passed[i].at, now)
	}
	in := m.inWindow(now)
	m.passed = in // what has left does not come back
	used := modelSum(in)
	a := modelAnswer{used: used, remaining: max(m.limit.Count()-used, 0)}
	for _, e := range in {
		if e.n > 0 {
			a.reset = max(a.reset, time.Duration(e.at-now)+m.limit.Period())
		}
	}
	switch {
	case modelNever(m.limit, n):
		a.retry = Never
	case n == 0 && used <= m.limit.Count():
		a.allowed = true
	case n <= m.limit.Count()-used:
		a.allowed = true
		a.used += n
		a.remaining -= n
		a.reset = m.limit.Period()
	default:
		a.retry = m.retry(in, now, n)
	}
	return a
}

// retry tries every instant at which something leaves.
func (m *modelLog) retry(in []modelPassed, now, n int64) time.Duration {
	for i, e := range in {
		leaves := e.at + int64(m.limit.Period())
		if n <= m.limit.Count()-modelSum(in[i+1:]) && (i+1 == len(in) || in[i+1].at > e.at) {
			return time.Duration(leaves - now)
		}
	}
	panic("it passes an empty log")
}

func (m *modelLog) take(now, n int64) modelAnswer {
	a := m.look(now, n)
	if a.allowed && n > 0 {
		m.passed = append(m.passed, modelPassed{now, n})
	}
	return a
}

// modelCounter is the sliding counter: what passed in this window, and what
// passed in the one before, weighted by how much of it the period before now
// still covers.
type modelCounter struct {
	limit  Limit
	last   int64 // start of the window of the last that passed
	passed []modelPassed
}

func newModelCounter(l Limit) *modelCounter { return &modelCounter{limit: l, last: math.MinInt64} }

func (m *modelCounter) start(t int64) int64 {
	start, _ := modelAligned(m.limit.Period())(t)
	return start
}

// estimate is what is used at t if nothing else passes.
func (m *modelCounter) estimate(t int64) *big.Rat {
	start, period := m.start(t), int64(m.limit.Period())
	previous, current := int64(0), int64(0)
	for _, e := range m.passed {
		switch {
		case e.at >= start && e.at-start < period:
			current += e.n
		case e.at < start && e.at >= start-period:
			previous += e.n
		}
	}
	weight := big.NewRat(period-(t-start), period)
	return ratAdd(modelRat(current), ratMul(modelRat(previous), weight))
}

// fits reports whether n pass at t: whether the estimate is below the limit for each of
// them, one after the other.
func (m *modelCounter) fits(t, n int64) bool {
	return ratAdd(m.estimate(t), modelRat(n-1)).Cmp(modelRat(m.limit.Count())) < 0
}

// first returns how long after now something holds that holds ever after, while
// nothing passes.
func (m *modelCounter) first(now int64, holds func(t int64) bool) time.Duration {
	i, _ := sort.Find(2*int(m.limit.Period()), func(i int) int {
		if holds(now + int64(i)) {
			return 0
		}
		return 1
	})
	return time.Duration(i)
}

func (m *modelCounter) take(now, n int64) modelAnswer {
	if now < m.last { // the clock went back: all of the two windows passed now, up to the largest number
		m.passed = slices.DeleteFunc(m.passed, func(e modelPassed) bool { return e.at < m.last-int64(m.limit.Period()) })
		m.passed = []modelPassed{{now, min(modelSum(m.passed), maxCount)}}
		m.last = m.start(now)
	}
	a := modelAnswer{}
	switch {
	case modelNever(m.limit, n):
		a.retry = Never
	case m.fits(now, n):
		a.allowed = true
		if n > 0 {
			m.passed = append(m.passed, modelPassed{now, n})
			m.last = m.start(now)
		}
	default:
		a.retry = m.first(now, func(t int64) bool { return m.fits(t, n) })
	}
	a.used = min(ratFloor(m.estimate(now)), maxCount)
	a.remaining = max(m.limit.Count()-a.used, 0)
	a.reset = m.first(now, func(t int64) bool { return m.estimate(t).Sign() == 0 })
	return a
}

// Random histories, from rapid or from the bytes of a fuzzer.

// historyT is what *testing.T and *rapid.T have in common.
type historyT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// historySource is where choices come from.
type historySource interface {
	pick(n int) int // from 0 to n-1; the simplest is 0
}

type rapidSource struct{ t *rapid.T }

func (s rapidSource) pick(n int) int { return rapid.IntRange(0, n-1).Draw(s.t, "pick") }

type byteSource struct{ bytes []byte }

func (s *byteSource) pick(n int) int {
	if len(s.bytes) == 0 {
		return 0
	}
	b := int(s.bytes[0])
	s.bytes = s.bytes[1:]
	return b % n
}

// historyNumber returns any number from 0 to most.
func historyNumber(src historySource, most int64) int64 {
	n := uint64(0)
	for range 8 {
		n = n<<8 | uint64(src.pick(256))
	}
	return int64(n % (uint64(most) + 1))
}

func historyOneOf[V any](src historySource, values ...V) V { return values[src.pick(len(values))] }

const modelYear = 365 * 24 * time.Hour

var (
	historyCounts = []int64{3, 1, 2, 7, 10, 60, 97, 1000, 65_537, 1_000_000, 1_000_000_007,
		1 << 31, 1<<40 + 15, 1<<61 - 1, 1<<62 - 57, 1 << 62}
	historyPeriods = []time.Duration{time.Second, 1, 2, 3, 7, 1000, 999_999_937, time.Minute, time.Hour, 24 * time.Hour,
		modelYear, 1<<61 - 1, 1 << 61}
)

func historyCount(src historySource) int64 {
	if i := src.pick(len(historyCounts) + 3); i < len(historyCounts) {
		return historyCounts[i]
	}
	return 1 + historyNumber(src, maxCount-1)>>src.pick(62)
}

func historyPeriod(src historySource) time.Duration {
	if i := src.pick(len(historyPeriods) + 3); i < len(historyPeriods) {
		return historyPeriods[i]
	}
	return time.Duration(1 + historyNumber(src, maxPeriod-1)>>src.pick(61))
}

// historyLimit returns a valid limit by an algorithm.
func historyLimit(src historySource, a Algorithm) Limit {
	l := New(historyCount(src), historyPeriod(src)).Using(a)
	if !a.bursts() {
		return l
	}
	half := l.Count()/2 + 1
	burst := historyOneOf(src, l.Count(), 1, half, min(l.Count(), 1<<61)*2, 0)
	if burst == 0 {
		burst = historyCount(src)
	}
	if bursting := l.WithBurst(burst); bursting.Validate() == nil {
		return bursting
	}
	return l
}

// historyWalk is a clock and what is asked as it goes.
type historyWalk struct {
	src      historySource
	limit    Limit
	forward  bool // it never goes back
	now      int64
	from, to int64 // it stays between
}

const (
	historyFirst = -(1 << 60)
	historyLast  = 1<<62 - 1
)

func newHistoryWalk(src historySource, l Limit, forward bool) *historyWalk {
	now := historyOneOf(src, int64(1_700_000_000_123_456_789), 1, 0, 1<<61, -5e17, int64(l.Period()))
	return &historyWalk{src: src, limit: l, forward: forward, now: now, from: historyFirst, to: historyLast}
}

// step moves the clock, by something that is likely to matter after the last
// answer, and returns it and how much is asked for.
func (w *historyWalk) step(last modelAnswer) (now, n int64) {
	period := int64(w.limit.Period())
	times := int64(1)
	if period < 1<<58 {
		times = 1 + int64(w.src.pick(5))
	}
	retry := int64(last.retry)
	if last.retry == Never {
		retry = 0
	}
	ways := 14
	if w.forward {
		ways = 11
	}
	by := int64(0)
	switch w.src.pick(ways) {
	case 0:
	case 1:
		by = 1
	case 2:
		by = period/w.limit.Count() + int64(w.src.pick(2))
	case 3:
		by = period / int64(1+w.src.pick(16))
	case 4:
		by = retry
	case 5:
		by = max(retry-1, 0)
	case 6:
		by = int64(last.reset)
	case 7:
		by = max(int64(last.reset)-1, 0)
	case 8:
		by = period * times
	case 9:
		by = historyNumber(w.src, period)
	case 10:
		by = int64(w.src.pick(1000))
	case 11:
		by = -1
	case 12:
		by = -period / int64(1+w.src.pick(8))
	case 13:
		by = -period * times
	}
	w.now = min(max(w.now+by, w.from), w.to)
	return w.now, w.amount(last)
}

func (w *historyWalk) amount(last modelAnswer) int64 {
	burst := w.limit.Burst()
	switch w.src.pick(12) {
	case 0:
		return 1
	case 1:
		return 0
	case 2:
		return -1
	case 3:
		return int64(1 + w.src.pick(4))
	case 4:
		return burst
	case 5:
		return burst + 1
	case 6:
		return burst / int64(1+w.src.pick(5))
	case 7:
		return last.remaining
	case 8:
		return last.remaining + 1
	case 9:
		return historyNumber(w.src, burst)
	case 10:
		return math.MaxInt64
	default:
		return math.MinInt64
	}
}

// historySteps is how many steps a history has.
func historySteps(src historySource) int { return 1 + src.pick(50) }

// historyAgree runs a history through the step and through models, which must
// say the same; what the step says about the future must come true.
func historyAgree(t historyT, src historySource, w *historyWalk, models ...model) {
	t.Helper()
	var s state
	last := modelAnswer{}
	for range historySteps(src) {
		now, n := w.step(last)
		next, v := w.limit.take(s, now, n)
		last = modelAnswerOf(v)
		for _, m := range models {
			if want := m.take(now, n); last != want {
				t.Fatalf("%v: take %d at %d of %+v: %+v, but %T says %+v", w.limit, n, now, s, last, m, want)
			}
		}
		historyForetold(t, w.limit, s, next, now, n, last)
		if w.limit.Algorithm().bursts() && (next.b < 0 || next.b >= w.limit.Count()) {
			t.Fatalf("%v: take %d at %d leaves %d parts of a nanosecond, each 1/%d", w.limit, n, now, next.b, w.limit.Count())
		}
		s = next
	}
}

// historyForetold checks an answer against what the step says at the times that
// it names: a denied request passes then and not a nanosecond earlier, and the
// limit is full then and not a nanosecond earlier.
func historyForetold(t historyT, l Limit, before, after state, now, n int64, a modelAnswer) {
	t.Helper()
	allowed := func(later int64) bool { _, v := l.take(after, later, n); return v.Allowed }
	if !a.allowed && a.retry != Never {
		if a.retry <= 0 || !allowed(now+int64(a.retry)) || allowed(now+int64(a.retry)-1) {
			t.Fatalf("%v: take %d at %d of %+v: RetryAfter is %d, and that is not the first time it passes", l, n, now, before, a.retry)
		}
	}
	if a.allowed && a.retry != 0 {
		t.Fatalf("%v: take %d at %d of %+v: allowed, and RetryAfter is %d", l, n, now, before, a.retry)
	}
	full := func(later int64) bool {
		_, v := l.take(after, later, 0)
		return v.ResetAfter == 0 && v.Remaining == l.Burst()
	}
	if !full(now+int64(a.reset)) || a.reset > 0 && full(now+int64(a.reset)-1) {
		t.Fatalf("%v: take %d at %d of %+v: ResetAfter is %d, and that is not when it is full again", l, n, now, before, a.reset)
	}
}

// historyAdmissions runs a history whose clock never goes back and returns what
// passed.
func historyAdmissions(src historySource, w *historyWalk, take func(now, n int64) modelAnswer) []modelPassed {
	var passed []modelPassed
	last := modelAnswer{}
	for range historySteps(src) {
		now, n := w.step(last)
		last = take(now, n)
		if last.allowed && n > 0 {
			passed = append(passed, modelPassed{now, n})
		}
	}
	return passed
}

// historyRapid returns a property as a test runs it.
func historyRapid(t *testing.T, property func(t historyT, src historySource)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) { property(t, rapidSource{t}) })
}

// historyFuzz runs the same property on the bytes of a fuzzer.
func historyFuzz(f *testing.F, property func(t historyT, src historySource)) {
	f.Helper()
	for _, seed := range historySeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { property(t, &byteSource{bytes}) })
}

var historySeeds = []string{
	"",
	"\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x05\x00",
	"the quick brown fox jumps over the lazy dog, and back again over the dog",
	"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1\xf0\xef\xee\xed\xec\xeb\xea",
	"\x0f\x0b\x0c\x02\x31\x08\x04\x01\x08\x04\x04\x07\x04\x05\x03\x04\x09\x01\x02\x03\x04\x05\x06\x07\x08\x0c\x03\x00\x0d\x04",
}
