package limit

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"
)

// An account is compared with lists of what was taken, corrected to what was
// used, and for buckets with a backlog in rational numbers.

// accountBucket is a bucket that settles as Account documents it: of a take, at most the
// backlog after it counts, less the time since and less every refund since.
type accountBucket struct {
	limit    Limit
	at       int64
	backlog  *big.Rat // in nanoseconds
	refunded *big.Rat
	left     []*big.Rat // behind by each take
	before   []*big.Rat // refunded before each take
}

func ratLess(a, b *big.Rat) *big.Rat { return ratMax(ratSub(a, b), modelRat(0)) }

func (b *accountBucket) cost(n int64) *big.Rat { return ratQuo(modelRat(n), modelRate(b.limit)) }

func (b *accountBucket) backlogAt(now int64) *big.Rat { return ratLess(b.backlog, modelRat(now-b.at)) }

func (b *accountBucket) take(now, n int64) {
	if n > 0 {
		b.at, b.backlog = now, ratAdd(b.backlogAt(now), b.cost(n))
	}
	b.left, b.before = append(b.left, b.backlogAt(now)), append(b.before, b.refunded)
}

func (b *accountBucket) settle(i int, now int64, taken modelPassed, actual int64) {
	if actual > taken.n {
		b.backlog = ratAdd(b.backlog, b.cost(actual-taken.n))
		return
	}
	held := ratLess(ratLess(b.left[i], modelRat(now-taken.at)), ratSub(b.refunded, b.before[i]))
	freed := ratMin(ratMin(b.cost(taken.n-actual), held), b.backlogAt(now))
	b.backlog, b.refunded = ratLess(b.backlog, freed), ratAdd(b.refunded, freed)
}

func (b *accountBucket) look(now, n int64) modelAnswer {
	parts := ratMul(b.backlogAt(now), modelRat(b.limit.Count()))
	return modelReplayAnswer(b.limit, parts.Num(), n) // parts are whole
}

// accountHistory is an account whose clock does not go back.
type accountHistory struct {
	t        historyT
	account  Account
	limits   []Limit
	takes    []modelPassed // with what was used in the end
	receipts []Receipt
	open     []int
	buckets  []*accountBucket // one for each limit, or nil
	windows  []*modelWindow   // one for each limit, or nil: where the last window began

	// After the account was full, all later takes are forgotten, and a debt is added to
	// the backlog after its own take. That is no more than otherwise, unless there were
	// refunds, which are forgotten too.
	forgot bool
	most   []modelPassed // takes with the most that they were taken for
}

func newAccountHistory(t historyT, limits []Limit) *accountHistory {
	h := &accountHistory{t: t, limits: limits}
	for _, l := range limits {
		var b *accountBucket
		var w *modelWindow
		switch {
		case l.Algorithm().bursts():
			b = &accountBucket{limit: l, backlog: modelRat(0), refunded: modelRat(0)}
		case l.windowing == anchored:
			w = newModelWindow(l, true, modelFrom(l.Period()))
		case l.Algorithm() == FixedWindow:
			w = newModelWindow(l, false, modelAligned(l.Period()))
		}
		h.buckets, h.windows = append(h.buckets, b), append(h.windows, w)
	}
	return h
}

// leastBurst returns an amount that can be a debt of every limit and still be counted.
func (h *accountHistory) leastBurst() int64 {
	return slices.MinFunc(h.limits, func(a, b Limit) int { return cmp.Compare(a.Burst(), b.Burst()) }).Burst()
}

// look returns the answer of one limit to a request for n, by the limit's definition.
func (h *accountHistory) look(i int, now, n int64) modelAnswer {
	l := h.limits[i]
	switch {
	case modelNever(l, n):
		a := h.look(i, now, 0)
		a.allowed, a.retry = false, Never
		return a
	case h.buckets[i] != nil:
		return h.buckets[i].look(now, n)
	case l.Algorithm() == SlidingLog:
		return (&modelLog{limit: l, passed: slices.Clone(h.takes)}).look(now, n)
	case l.Algorithm() == SlidingCounter:
		m := newModelCounter(l)
		m.passed = slices.Clone(h.takes)
		return m.take(now, n)
	}
	m := *h.windows[i]
	m.passed = slices.Clone(h.takes)
	return m.take(now, n)
}

// take asks every limit, and takes n if all allow it.
func (h *accountHistory) take(now, n int64) bool {
	h.t.Helper()
	h.account.Fit(h.limits, now)
	allowed := true
	for i, l := range h.limits {
		h.compare(i, now, n)
		allowed = allowed && h.account.Check(l, now, n).Allowed
	}
	if !allowed {
		return false
	}
	h.receipts = append(h.receipts, h.account.Take(h.limits, now, n))
	h.open = append(h.open, len(h.takes))
	h.takes = append(h.takes, modelPassed{now, n})
	h.most = append(h.most, modelPassed{now, n})
	for i := range h.limits {
		if b := h.buckets[i]; b != nil {
			b.take(now, n)
		}
		if w := h.windows[i]; w != nil {
			w.start, w.end = w.window(now)
		}
	}
	return true
}

// settle settles the i-th of the open takes.
func (h *accountHistory) settle(i int, now, actual int64) {
	at := h.open[i]
	h.open = slices.Delete(h.open, i, i+1)
	if actual > h.takes[at].n && h.full(now) {
		h.forgot = true
	}
	h.account.Settle(h.limits, h.receipts[at], now, actual)
	taken := h.takes[at]
	h.takes[at].n = actual
	h.most[at].n = max(h.most[at].n, actual)
	for i := range h.limits {
		if b := h.buckets[i]; b != nil {
			b.settle(at, now, taken, actual)
		}
		// A take that was given back as a whole has begun no window.
		if w := h.windows[i]; w != nil && w.anchored && h.usedIn(w.start, w.end) == 0 {
			h.windows[i] = newModelWindow(w.limit, true, w.bounds)
		}
	}
}

// usedIn returns how much was used from one time to another.
func (h *accountHistory) usedIn(start, end int64) int64 {
	return (&modelWindow{passed: h.takes}).used(start, end)
}

func (h *accountHistory) full(now int64) bool {
	for i := range h.limits {
		if h.look(i, now, 0).reset > 0 {
			return false
		}
	}
	return true
}

func (h *accountHistory) compare(i int, now, n int64) modelAnswer {
	h.t.Helper()
	l := h.limits[i]
	d := h.account.Check(l, now, n)
	got, want := modelAnswerIn(d), h.look(i, now, n)
	fine := got == want
	if h.forgot && h.buckets[i] != nil {
		most := modelReplayAnswer(l, modelReplay(l, h.most, now), n)
		fine = got.retry <= max(want.retry, most.retry) && (n != 0 || got.reset <= max(want.reset, most.reset))
	}
	if d.Limit != l || !fine {
		h.t.Fatalf("%v of %v: check %d at %d: %+v; by its definition, after %v, %+v", l, h.limits, n, now, d, h.takes, want)
	}
	if h.buckets[i] != nil && n > 0 && !modelNever(l, n) && !h.forgot {
		if want := modelReplayAnswer(l, modelReplay(l, h.takes, now), n); got.retry < want.retry {
			h.t.Fatalf("%v of %v: check %d at %d: %+v; the replay of %v says %+v", l, h.limits, n, now, d, h.takes, want)
		}
	}
	return got
}

// compareAll compares all answers of an account with the definitions of its limits.
func (h *accountHistory) compareAll(now int64) {
	h.t.Helper()
	for i, l := range h.limits {
		for _, n := range []int64{l.Burst(), 1, 0, -1} {
			h.compare(i, now, n)
		}
		if a := h.account.Check(l, now, 0); a.ResetAfter > 0 && h.account.FullAt() < now+int64(a.ResetAfter) {
			h.t.Fatalf("%v of %v is in use until %d, and FullAt is %d", l, h.limits, now+int64(a.ResetAfter), h.account.FullAt())
		}
	}
	h.compareEntries(now)
}

// compareEntries compares the entries of a log with the takes in the longest window.
func (h *accountHistory) compareEntries(now int64) {
	h.t.Helper()
	longest := int64(-1)
	for _, l := range h.limits {
		if l.Algorithm() == SlidingLog {
			longest = max(longest, int64(l.Period()))
		}
	}
	var got, want []modelPassed
	for at, n := range h.account.Entries() {
		if at > now-longest {
			got = append(got, modelPassed{at, n})
		}
	}
	for _, p := range h.takes {
		switch last := len(want) - 1; {
		case p.at <= now-longest || p.n == 0 || longest < 0:
		case last >= 0 && want[last].at == p.at:
			want[last].n += p.n
		default:
			want = append(want, p)
		}
	}
	if !slices.Equal(got, want) {
		h.t.Fatalf("%v at %d: entries %v; want %v of %v", h.limits, now, got, want, h.takes)
	}
}

// lookAside checks a fork, under other limits and at a time that may be in the past.
func (h *accountHistory) lookAside(now int64) {
	fork := h.account.Fork()
	others := slices.Clone(h.limits)
	for i := range others {
		others[i].count, others[i].burst = others[i].count+1, others[i].burst+1
	}
	fork.Fit(others, now)
	for _, l := range others {
		fork.Check(l, now, 1)
	}
}

// roundTrip writes the account and reads it again.
func (h *accountHistory) roundTrip() {
	h.t.Helper()
	h.account = accountRead(h.t, accountBytes(h.t, &h.account))
}

func accountBytes(t historyT, a *Account) []byte {
	t.Helper()
	b, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatalf("%+v cannot be written: %v", a, err)
	}
	return b
}

func accountRead(t historyT, b []byte) Account {
	t.Helper()
	var a Account
	if err := a.UnmarshalBinary(b); err != nil {
		t.Fatalf("%x was written and cannot be read: %v", b, err)
	}
	return a
}

// accountLimits returns the limits of an account, of any algorithm.
func accountLimits(src historySource) []Limit {
	var limits []Limit
	for range 1 + src.pick(4) {
		a := src.pick(int(algorithms) + 1)
		if a == int(algorithms) {
			limits = append(limits, historySettleLimit(src, FixedWindow).Anchored())
			continue
		}
		limits = append(limits, historySettleLimit(src, Algorithm(a)))
	}
	return limits
}

// propertyAccount: an account answers by the definitions of its limits, whatever was taken
// and settled, and whether it is written and read in between or not.
func propertyAccount(t historyT, src historySource) {
	h := newAccountHistory(t, accountLimits(src))
	w := newHistoryWalk(src, h.limits[0], true)
	w.now = 1_700_000_000_123_456_789
	last := modelAnswer{}
	for range 2 + src.pick(30) {
		w.limit = historyOneOf(src, h.limits...)
		now, n := w.step(last)
		switch src.pick(5) {
		case 0, 1:
			h.take(now, max(historyOneOf(src, n, 1, last.remaining), 1))
		case 3:
			h.lookAside(now - historyOneOf(src, 0, 1, int64(time.Second), int64(w.limit.Period())))
		case 2:
			if len(h.open) > 0 {
				i := src.pick(len(h.open))
				h.settle(i, now, historyActual(src, h.takes[h.open[i]].n, h.leastBurst()))
			}
		default:
			h.roundTrip()
		}
		h.compareAll(now)
		last = h.compare(src.pick(len(h.limits)), now, 1)
	}
}

func TestAccountAgreesWithDefinitions(t *testing.T) { historyRapid(t, propertyAccount) }

// propertyAccountClock: a clock that goes back and forth moves an account as it
// does the definition of its limit, written and read in between or not.
func propertyAccountClock(t historyT, src historySource) {
	a := Algorithm(src.pick(int(algorithms)))
	l := historyLimit(src, a)
	var m model
	switch a {
	case FixedWindow:
		m = newModelWindow(l, false, modelAligned(l.Period()))
		if src.pick(2) == 1 {
			l = l.Anchored()
			m = newModelWindow(l, true, modelFrom(l.Period()))
		}
	case SlidingLog:
		m = newModelLog(l)
	case SlidingCounter:
		m = newModelCounter(l)
	default:
		m = newModelTokens(l)
	}
	w := newHistoryWalk(src, l, false)
	var account Account
	last := modelAnswer{}
	full := int64(math.MaxInt64) // from which time on the account may have forgotten
	for range historySteps(src) {
		now, n := w.step(last)
		if now >= full {
			return
		}
		d := account.Check(l, now, n)
		last = modelAnswerIn(d)
		if want := m.take(now, n); last != want {
			t.Fatalf("%v: take %d at %d: %+v; by its definition %+v", l, n, now, last, want)
		}
		if d.Allowed {
			account.Take([]Limit{l}, now, n)
			full = account.FullAt()
		}
		if src.pick(3) == 1 {
			account = accountRead(t, accountBytes(t, &account))
		}
	}
}

func TestAccountFollowsTheClock(t *testing.T) { historyRapid(t, propertyAccountClock) }

// propertyAccountForgotten: from FullAt on an account is the same as the zero Account, also
// for refunds.
func propertyAccountForgotten(t historyT, src historySource) {
	h := newAccountHistory(t, accountLimits(src))
	w := newHistoryWalk(src, h.limits[0], true)
	w.now = 1_700_000_000_123_456_789
	for range 1 + src.pick(10) {
		now, _ := w.step(modelAnswer{})
		h.take(now, 1+historyNumber(src, h.limits[0].Burst()-1))
		if len(h.open) > 0 && src.pick(3) == 1 {
			i := src.pick(len(h.open))
			h.settle(i, now, historyActual(src, h.takes[h.open[i]].n, h.leastBurst()))
		}
	}
	now := max(h.account.FullAt(), w.now)
	var zero Account
	compare := func(when string) {
		for _, l := range h.limits {
			for _, n := range []int64{0, 1, l.Burst()} {
				if got, want := h.account.Check(l, now, n), zero.Check(l, now, n); got != want {
					t.Fatalf("%v, full at %d, says %+v at %d %s; the zero Account says %+v", l, h.account.FullAt(), got, now, when, want)
				}
			}
		}
	}
	compare("at first")
	for _, i := range h.open {
		for _, a := range []*Account{&h.account, &zero} {
			a.Settle(h.limits, h.receipts[i], now, historyNumber(src, h.takes[i].n))
		}
	}
	compare("after what was taken was given back")
	now += int64(src.pick(1000))
	for _, a := range []*Account{&h.account, &zero} {
		a.Take(h.limits, now, 1)
	}
	compare("after another take")
}

func TestAccountIsForgottenWhenFull(t *testing.T) { historyRapid(t, propertyAccountForgotten) }

const accountStart = int64(1_700_000_000_123_456_789)

// accountKinds is one limit of each kind, of count a minute.
func accountKinds(count int64) []Limit {
	limits := []Limit{PerMinute(count).Anchored()}
	for a := range algorithms {
		limits = append(limits, PerMinute(count).Using(a))
	}
	return limits
}

// A debt without a take counts from its own time.
func TestAccountReceiptOfNothing(t *testing.T) {
	for _, l := range accountKinds(10) {
		var a Account
		a.Settle([]Limit{l}, Receipt{At: accountStart}, accountStart, 4)
		if d := a.Check(l, accountStart, 7); d.Allowed || d.Remaining != 6 || d.RetryAfter <= 0 {
			t.Errorf("%v owes 4 of 10: %+v", l, d)
		}
	}
}

// A take from logs and windows can be settled with nothing but its time and amount.
func TestAccountReceiptOfNoMoreThanItsAmount(t *testing.T) {
	for _, l := range accountKinds(10) {
		if l.Algorithm().bursts() {
			continue
		}
		var a Account
		a.Take([]Limit{l}, accountStart, 4)
		a.Settle([]Limit{l}, Receipt{N: 4, At: accountStart}, accountStart+1, 1)
		if d := a.Check(l, accountStart+1, 0); d.Remaining != 9 {
			t.Errorf("%v after 1 of 4 was used: %+v", l, d)
		}
	}
}

// An account refunds nothing for a take that it does not know.
func TestAccountSettlesWhatItNeverSaw(t *testing.T) {
	for _, l := range accountKinds(10) {
		var a, other Account
		r := other.Take([]Limit{l}, accountStart, 10)
		a.Take([]Limit{l}, accountStart, 10)
		a.Settle([]Limit{l}, r, accountStart, 0)
		if d := a.Check(l, accountStart, 1); d.Allowed {
			t.Errorf("%v: %+v after another account's take was given back", l, d)
		}
	}
}

// A refund is given, however many and however large refunds came before it.
func TestAccountRefundsNeverStop(t *testing.T) {
	l := New(1, 24*time.Hour).WithBurst(20_000)
	var a Account
	for i := range int64(50) {
		now := accountStart + i
		if d := a.Check(l, now, 20_000); !d.Allowed {
			t.Fatalf("after %d cancels: %+v", i, d)
		}
		a.Settle([]Limit{l}, a.Take([]Limit{l}, now, 20_000), now, 0)
	}
}

// Any number of debts count as long as they are in the window.
func TestAccountDebtsWithoutEnd(t *testing.T) {
	for _, l := range accountKinds(10) {
		var a Account
		second := int64(time.Second)
		for i := range int64(3) {
			a.Settle([]Limit{l}, Receipt{At: accountStart + i*second}, accountStart+i*second, math.MaxInt64)
		}
		for _, later := range []int64{3 * second, 30 * second} {
			if d := a.Check(l, accountStart+later, 1); d.Allowed || d.RetryAfter <= 0 {
				t.Errorf("%v after %v: %+v", l, time.Duration(later), d)
			}
		}
		if l.Algorithm() != SlidingLog {
			continue
		}
		now := accountStart + 60*second // the first has left
		if d := a.Check(l, now, 1); d.Allowed {
			t.Errorf("%v after one of three has left: %+v", l, d)
		}
		now += 2 * second
		a.Take([]Limit{l}, now, 10)
		if d := a.Check(l, now+second, 1); d.Allowed {
			t.Errorf("%v after all that was owed has left, and 10 were taken: %+v", l, d)
		}
	}
}

// A limit takes over from one that it differs from in nothing but count and
// burst, and from none that is still there.
func TestAccountFit(t *testing.T) {
	day, hour := 24*time.Hour, time.Hour
	type step struct {
		limits []Limit
		take   int64
		left   []int64 // of each limit after it
	}
	window := func(n int64, period time.Duration) Limit { return New(n, period).Using(FixedWindow) }
	for name, steps := range map[string][]step{
		"raised": {
			{[]Limit{window(10, day)}, 4, []int64{6}},
			{[]Limit{window(20, day)}, 0, []int64{16}},
		},
		"lowered below what was used": {
			{[]Limit{New(10, day)}, 4, []int64{6}},
			{[]Limit{New(3, day)}, 0, []int64{0}},
			{[]Limit{New(5, day)}, 0, []int64{1}},
		},
		"another burst": {
			{[]Limit{New(10, day)}, 4, []int64{6}},
			{[]Limit{New(10, day).WithBurst(5)}, 0, []int64{1}},
			{[]Limit{New(10, day).WithBurst(50)}, 10, []int64{36}},
		},
		"one of two": {
			{[]Limit{window(10, day), window(8, hour)}, 4, []int64{6, 4}},
			{[]Limit{window(10, day), window(9, hour)}, 1, []int64{5, 4}},
			{[]Limit{window(11, day), window(9, hour)}, 1, []int64{5, 3}},
		},
		"two of one shape, of which one changes": {
			{[]Limit{New(10, day), New(20, day)}, 4, []int64{6, 16}},
			{[]Limit{New(10, day), New(30, day)}, 1, []int64{5, 25}},
		},
		"a second one of the same shape": {
			{[]Limit{New(10, day)}, 4, []int64{6}},
			{[]Limit{New(10, day), New(20, day)}, 0, []int64{6, 20}},
		},
		"another period": {
			{[]Limit{New(10, day)}, 4, []int64{6}},
			{[]Limit{New(10, hour)}, 0, []int64{10}},
		},
		"another algorithm": {
			{[]Limit{New(10, day)}, 4, []int64{6}},
			{[]Limit{New(10, day).Using(TokenBucket)}, 0, []int64{10}},
		},
		"windows that begin otherwise": {
			{[]Limit{window(10, day)}, 4, []int64{6}},
			{[]Limit{window(10, day).Anchored()}, 0, []int64{10}},
		},
		"days that begin otherwise": {
			{[]Limit{PerDay(10).ResetAt(0, losAngeles)}, 4, []int64{6}},
			{[]Limit{PerDay(10).ResetAt(90*time.Minute, losAngeles)}, 1, []int64{5}},
			{[]Limit{PerDay(20).ResetAt(0, time.UTC)}, 0, []int64{15}},
			{[]Limit{PerDay(6).Anchored()}, 0, []int64{1}},
			{[]Limit{PerDay(10).ResetAt(0, losAngeles)}, 5, []int64{0}},
		},
		"months that begin otherwise": {
			{[]Limit{PerMonth(10).ResetMonthly(1, 0, losAngeles)}, 4, []int64{6}},
			{[]Limit{PerMonth(20).ResetMonthly(31, 0, nil)}, 1, []int64{15}},
			{[]Limit{PerWeek(10).ResetWeekly(time.Monday, 0, nil)}, 1, []int64{9}},
			{[]Limit{PerMonth(10).Anchored(), PerWeek(5).ResetWeekly(time.Friday, 0, nil)}, 0, []int64{5, 4}},
		},
		"a log": {
			{[]Limit{New(10, day).Using(SlidingLog)}, 4, []int64{6}},
			{[]Limit{New(3, day).Using(SlidingLog)}, 0, []int64{0}},
			{[]Limit{New(30, day).Using(SlidingLog)}, 0, []int64{26}},
		},
	} {
		var a Account
		for i, s := range steps {
			a.Fit(s.limits, accountStart)
			a.Take(s.limits, accountStart, s.take)
			for j, l := range s.limits {
				if d := a.Check(l, accountStart, 0); d.Remaining != s.left[j] {
					t.Errorf("%s, step %d: %d of %v are left; want %d", name, i+1, d.Remaining, l, s.left[j])
				}
			}
		}
	}
}

// If the clock goes back over midnight, the day that it has left goes on, also if the count
// changes then. A regression: the day was cut to the day of the clock, and each change began
// the next day anew.
func TestAccountFitBackOverMidnight(t *testing.T) {
	midnight := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC).UnixNano()
	before, after := midnight-int64(time.Minute), midnight+int64(time.Minute)
	ten, twenty := PerDay(10).ResetAt(0, time.UTC), PerDay(20).ResetAt(0, time.UTC)
	var a Account
	for i, step := range []struct {
		limit Limit
		now   int64
		left  int64
	}{
		{ten, before, 10},
		{twenty, after, 20},
		{ten, before, 0},
		{twenty, after, 0},
		{ten, before, 0},
		{ten, after, 0},
		{twenty, midnight + int64(24*time.Hour), 20},
	} {
		a.Fit([]Limit{step.limit}, step.now)
		d := a.Check(step.limit, step.now, 0)
		if d.Remaining != step.left {
			t.Errorf("step %d: %d of %v are left; want %d", i+1, d.Remaining, step.limit, step.left)
		}
		a.Take([]Limit{step.limit}, step.now, d.Remaining)
	}
}

// What is used of a bucket stays the same when its count changes, to a part of a nanosecond.
func TestAccountFitIsExact(t *testing.T) {
	a := Account{}
	third, half := New(3, 3*time.Second), New(2, 3*time.Second)
	a.Take([]Limit{third}, accountStart, 3)
	now := accountStart + 1 // 1 ns of 3 s has drained
	a.Fit([]Limit{half}, now)
	if d := a.Check(half, now, 0); d.ResetAfter != 4500*time.Millisecond-1 { // 1.5 ns less, rounded up
		t.Errorf("3 but for a nanosecond's part, of 2 every 3 s: %+v", d)
	}
}

// A bucket whose limit changes again and again drains as it would under one limit.
func TestAccountFitInTurns(t *testing.T) {
	a, turns := Account{}, [][]Limit{{PerMinute(120).WithBurst(2)}, {PerMinute(121).WithBurst(2)}}
	passed := 0
	for i := range 200 {
		now := accountStart + int64(i)*int64(20*time.Millisecond)
		a.Fit(turns[i%2], now)
		if a.Check(turns[i%2][0], now, 1).Allowed {
			a.Take(turns[i%2], now, 1)
			passed++
		}
	}
	if passed != 9 && passed != 10 { // 2 at once, and 2 a second for four
		t.Errorf("%d have passed", passed)
	}
}

// A bucket refunds nothing for a take from before its count changed. It refunds a take from
// after the change.
func TestAccountFitRefunds(t *testing.T) {
	for _, count := range []int64{7, 20, 1000} {
		var a Account
		before, after := []Limit{PerMinute(10)}, []Limit{PerMinute(count)}
		old := a.Take(before, accountStart, 2)
		a.Fit(after, accountStart)
		young := a.Take(after, accountStart, 3)
		a.Settle(before, old, accountStart+1, 0)
		if d := a.Check(after[0], accountStart+1, 0); d.Remaining != count-5 {
			t.Errorf("%v after what was taken of %v was given back: %+v", after[0], before[0], d)
		}
		a.Settle(after, young, accountStart+1, 0)
		if d := a.Check(after[0], accountStart+1, 0); d.Remaining != count-2 {
			t.Errorf("%v after all was given back: %+v", after[0], d)
		}
	}
}

// An account that was written and read knows its takes, and those from before
// its clock went back.
func TestAccountReadKnowsItsTakes(t *testing.T) {
	for _, l := range accountKinds(10) {
		for _, back := range []int64{0, 5} {
			var a Account
			r := a.Take([]Limit{l}, accountStart, 4)
			a.Check(l, accountStart-back, 0)
			a = accountRead(t, accountBytes(t, &a))
			a.Settle([]Limit{l}, r, accountStart-back, 1)
			want := int64(9)
			if back > 0 {
				want = 6
			}
			if d := a.Check(l, accountStart-back, 0); d.Remaining != want {
				t.Errorf("%v after 1 of 4 was used, and the clock went back by %d: %+v", l, back, d)
			}
		}
	}
}

// Entries stops when its loop is left, and an account without a log has no entries.
func TestAccountEntries(t *testing.T) {
	var a Account
	a.Take([]Limit{PerMinute(10)}, accountStart, 1)
	for at, n := range a.Entries() {
		t.Errorf("%d at %d", n, at)
	}
	log := []Limit{PerMinute(10).Using(SlidingLog)}
	for i := range int64(3) {
		a.Take(log, accountStart+i, 1+i)
	}
	var got []string
	for at, n := range a.Entries() {
		got = append(got, fmt.Sprintf("%d at %d", n, at-accountStart))
		if len(got) == 2 {
			break
		}
	}
	if want := []string{"1 at 0", "2 at 1"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// A debt counts, even if it is the first thing that reaches an account after its clock went
// back. A regression: windows that had not begun yet did not count it.
func TestAccountOwesAfterRewind(t *testing.T) {
	for _, l := range accountKinds(10) {
		for _, back := range []time.Duration{time.Second, time.Hour, 30 * time.Hour} {
			var a Account
			now := accountStart - int64(back)
			r := a.Take([]Limit{l}, accountStart, 4)
			a.Settle([]Limit{l}, r, now, 9)
			if d := a.Check(l, now, 0); d.Remaining != 1 {
				t.Errorf("%v after 9 were used, and the clock went back by %v: %+v", l, back, d)
			}
		}
	}
}

// If the clock went back, entries may have moved to the time of a take. They are not the
// entry of that take.
func TestAccountSettleAfterRewind(t *testing.T) {
	limits := []Limit{New(100, time.Hour).Using(SlidingLog)}
	var a Account
	for i, n := range []int64{1, 3, 1} {
		a.Take(limits, accountStart+int64(i)*int64(time.Second), n)
	}
	back := accountStart - int64(time.Second)
	a.Check(limits[0], back, 6)
	r := a.Take(limits, back, 6)
	a.Settle(limits, r, back+1, 2)
	if used := a.Check(limits[0], back+2, 0).Used; used != 1+3+1+2 {
		t.Errorf("%d are used after 6 were settled as 2; want 7", used)
	}
}

// Fit makes room in the log, and does not change the answers of the limits.
func TestFitTidiesTheLog(t *testing.T) {
	limits := []Limit{PerMinute(1 << 40).Using(SlidingLog), PerHour(1000).Using(SlidingLog)}
	var a Account
	now := accountStart
	for range 3 * mostEntries {
		a.Fit(limits, now)
		if h := a.counters.log; h != nil && h.full() && len(h.ring) >= mostEntries {
			t.Fatal("the log is full")
		}
		a.Take(limits[:1], now, 1)
		now += int64(time.Millisecond)
	}
	before := []Decision{a.Fork().Check(limits[0], now, 1), a.Fork().Check(limits[1], now, 1)}
	a.Fit(limits, now)
	for i, l := range limits {
		if got := a.Check(l, now, 1); got != before[i] {
			t.Errorf("%v says %+v; before it was %+v", l, got, before[i])
		}
	}
}
