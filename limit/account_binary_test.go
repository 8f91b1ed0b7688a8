package limit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

func FuzzAccountHistory(f *testing.F)   { historyFuzz(f, propertyAccount) }
func FuzzAccountClock(f *testing.F)     { historyFuzz(f, propertyAccountClock) }
func FuzzAccountForgotten(f *testing.F) { historyFuzz(f, propertyAccountForgotten) }

// accountUsed returns an account that has used something of limits of every
// kind, and was refunded some of it.
func accountUsed() *Account {
	limits := append(accountKinds(10),
		PerHour(50).Using(SlidingLog),
		PerDay(20).ResetAt(90*time.Minute, losAngeles),
		PerDay(20).ResetAt(0, time.UTC),
		PerHour(20).ResetHourly(59*time.Minute, losAngeles),
		PerWeek(20).ResetWeekly(time.Saturday, 0, losAngeles),
		PerMonth(20).ResetMonthly(31, 23*time.Hour, losAngeles),
		Total(20),
		New(1<<62, 1<<61).WithBurst(1<<61),
	)
	a := new(Account)
	for i := range int64(3) {
		now := accountStart + i*int64(time.Second)
		r := a.Take(limits, now, 2)
		if i == 1 {
			a.Settle(limits, r, now+1, 1)
		}
	}
	return a
}

var losAngeles = func() *time.Location {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic(err)
	}
	return zone
}()

// The binary form of an account is read as the same account, and is appended to the bytes
// that are given.
func TestAccountBinary(t *testing.T) {
	for name, a := range map[string]*Account{"the zero Account": {}, "one in use": accountUsed()} {
		written := accountBytes(t, a)
		again := accountRead(t, written)
		if rewritten := accountBytes(t, &again); !bytes.Equal(written, rewritten) {
			t.Errorf("%s is written %x, and after it was read %x", name, written, rewritten)
		}
		appended, err := a.AppendBinary([]byte("before"))
		if err != nil || !bytes.Equal(appended, append([]byte("before"), written...)) {
			t.Errorf("%s is appended as %x, %v", name, appended, err)
		}
	}
}

// Reading replaces the whole account.
func TestAccountReadReplaces(t *testing.T) {
	a := accountUsed()
	if err := a.UnmarshalBinary(accountBytes(t, new(Account))); err != nil {
		t.Fatal(err)
	}
	for _, l := range accountKinds(10) {
		if d := a.Check(l, accountStart+3*int64(time.Second), 10); !d.Allowed {
			t.Errorf("%v after the zero Account was read: %+v", l, d)
		}
	}
}

// accountRefuses checks that bytes are not the binary form of an account, and that reading
// them leaves an account as it was.
func accountRefuses(t *testing.T, name string, b []byte) {
	t.Helper()
	a := accountUsed()
	before := accountBytes(t, a)
	if err := a.UnmarshalBinary(b); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%s: %v; want %v", name, err, ErrCorrupt)
	}
	if after := accountBytes(t, a); !bytes.Equal(before, after) {
		t.Errorf("%s: an account of %x became %x", name, before, after)
	}
}

// Bytes that were cut short, have more at their end, or are of another version, are corrupt.
func TestAccountBinaryRefusesParts(t *testing.T) {
	written := accountBytes(t, accountUsed())
	for n := range written {
		accountRefuses(t, "a part", written[:n])
	}
	accountRefuses(t, "more", append(slices.Clone(written), 0))
	accountRefuses(t, "the version before", append([]byte{accountVersion - 1}, written[1:]...))
	accountRefuses(t, "the version after", append([]byte{accountVersion + 1}, written[1:]...))
	accountRefuses(t, "numbers that do not end", append([]byte{accountVersion}, bytes.Repeat([]byte{0xff}, 100)...))
}

// accountTampered are accounts that no program has written. Those that can be read do no
// harm.
var accountTampered = []struct {
	name   string
	fine   bool
	tamper func(a *Account)
}{
	{"a window that has used less than nothing", false, func(a *Account) { accountCounter(a, FixedWindow).state.b = -5 }},
	{"a window that has used too much", false, func(a *Account) { accountCounter(a, FixedWindow).state.b = maxCount + 1 }},
	{"a window that lasts for ever", false, func(a *Account) { accountCounter(a, FixedWindow).state.a = math.MaxInt64 }},
	{"a window that ends before it begins", false, func(a *Account) { accountCounter(a, FixedWindow).state.a = 0 }},
	{"a window before all time", false, func(a *Account) { accountCounter(a, FixedWindow).state.at = math.MinInt64 }},
	{"a counter that has used less than nothing", false, func(a *Account) { accountCounter(a, SlidingCounter).state.b = -1 }},
	{"a counter that had used less than nothing", false, func(a *Account) { accountCounter(a, SlidingCounter).state.a = math.MinInt64 }},
	{"a counter whose window is none", false, func(a *Account) { accountCounter(a, SlidingCounter).state.at++ }},
	{"a bucket with less than no backlog", false, func(a *Account) { accountCounter(a, GCRA).state.a = -int64(time.Hour) }},
	{"a bucket with more parts than there are", false, func(a *Account) { accountCounter(a, GCRA).state.b = 10 }},
	{"a bucket with less than no parts", false, func(a *Account) { accountCounter(a, GCRA).state.b = -1 }},
	{"a bucket with too much backlog", false, func(a *Account) { accountCounter(a, GCRA).state.a = math.MaxInt64 }},
	{"a bucket in a far future", false, func(a *Account) { accountCounter(a, GCRA).state.at = math.MaxInt64 }},
	{"a limit of nothing", false, func(a *Account) { accountCounter(a, GCRA).limit.count = 0 }},
	{"a limit of less than nothing", false, func(a *Account) { accountCounter(a, GCRA).limit.count = -1 }},
	{"a limit in no time", false, func(a *Account) { accountCounter(a, GCRA).limit.period = 0 }},
	{"a limit without a burst", false, func(a *Account) { accountCounter(a, GCRA).limit.burst = 0 }},
	{"a burst of a window", false, func(a *Account) { accountCounter(a, FixedWindow).limit.burst++ }},
	{"an unknown algorithm", false, func(a *Account) { accountCounter(a, GCRA).limit.algorithm = algorithms }},
	{"a log among the counters", false, func(a *Account) { accountCounter(a, GCRA).limit.algorithm = SlidingLog }},
	{"windows of an unknown kind", false, func(a *Account) { accountCounter(a, FixedWindow).limit.windowing = calendar + 1 }},
	{"windows of a bucket", false, func(a *Account) { accountCounter(a, GCRA).limit.windowing = anchored }},
	{"entries out of order", false, func(a *Account) { a.counters.log.entry(a.counters.log.oldest).at += int64(time.Hour) }},
	{"an entry of less than nothing", false, func(a *Account) { a.counters.log.entry(a.counters.log.oldest).n = -9 }},
	{"an entry before all time", false, func(a *Account) { a.counters.log.entry(a.counters.log.oldest).at = math.MinInt64 }},
	{"a window that begins after all entries", false, func(a *Account) { a.counters.log.windows[0].first = a.counters.log.next + 1 }},
	{"a window of no length", false, func(a *Account) { a.counters.log.windows[0].period = 0 }},
	{"a window of less than no length", false, func(a *Account) { a.counters.log.windows[0].period = -1 }},

	{"a window in the future", true, func(a *Account) {
		s := &accountCounter(a, FixedWindow).state
		s.at, s.a = s.at+int64(100*24*time.Hour), s.a+int64(100*24*time.Hour)
	}},
	{"a window that is overdrawn", true, func(a *Account) { accountCounter(a, FixedWindow).state.b = maxCount }},
	{"a counter in the future", true, func(a *Account) { accountCounter(a, SlidingCounter).state.at += int64(100 * 24 * time.Hour) }},
	{"a counter that is overdrawn", true, func(a *Account) {
		s := &accountCounter(a, SlidingCounter).state
		s.a, s.b = maxCount, maxCount
	}},
	{"a bucket in the future", true, func(a *Account) { accountCounter(a, GCRA).state.at += int64(100 * 24 * time.Hour) }},
	{"a bucket that is overdrawn", true, func(a *Account) { accountCounter(a, GCRA).state.a = maxCount }},
	{"a log in the future", true, func(a *Account) {
		h := a.counters.log
		for i := h.oldest; i < h.next; i++ {
			h.entry(i).at += int64(100 * 24 * time.Hour)
		}
	}},
	{"entries that are too large to add", true, func(a *Account) {
		h := a.counters.log
		for i := h.oldest; i < h.next; i++ {
			h.entry(i).n = maxCount
		}
	}},
	{"refunds out of all proportion", true, func(a *Account) { accountCounter(a, GCRA).refunds.total.NS = maxCount }},
	{"counters twice", true, func(a *Account) { a.counters.each = append(a.counters.each, a.counters.each...) }},
	{"a log that has all left", true, func(a *Account) {
		for i := range a.counters.log.windows {
			a.counters.log.windows[i].first = a.counters.log.next
		}
	}},
}

// accountCounter returns the counter of an algorithm.
func accountCounter(a *Account, algorithm Algorithm) *counter {
	for i := range a.counters.each {
		if c := &a.counters.each[i]; c.limit.algorithm == algorithm && c.limit.windowing == aligned {
			return c
		}
	}
	panic("no counter by " + algorithm.String())
}

func TestAccountBinaryTampered(t *testing.T) {
	for _, test := range accountTampered {
		a := accountUsed()
		test.tamper(a)
		written := accountBytes(t, a)
		if !test.fine {
			accountRefuses(t, test.name, written)
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			historyRapid(t, func(t historyT, src historySource) { accountWithstands(t, accountRead(t, written), src) })
		})
	}
}

// propertyAccountTampered: an account with any numbers in it is corrupt, or does no harm.
func propertyAccountTampered(t historyT, src historySource) {
	number := func() int64 {
		return historyOneOf(src, 0, 1, accountStart, -1, accountStart+int64(src.pick(256)), accountStart-historyNumber(src, 1<<40),
			accountStart+historyNumber(src, 1<<56), maxCount, -maxCount, maxCount-1, math.MaxInt64, math.MinInt64, historyNumber(src, 1<<20))
	}
	a := Account{seen: number(), epoch: uint64(number()), counters: counters{fullAt: number()}}
	for range src.pick(4) {
		l := historyLimit(src, Algorithm(src.pick(int(algorithms))))
		if l.algorithm == FixedWindow && src.pick(2) == 1 {
			l = historyOneOf(src, l.Anchored(), PerDay(l.Count()).ResetAt(0, losAngeles), PerHour(l.Count()).ResetHourly(0, losAngeles),
				PerWeek(l.Count()).ResetWeekly(time.Monday, 0, losAngeles), PerMonth(l.Count()).ResetMonthly(31, 0, losAngeles))
		}
		s := state{number(), number(), number()}
		if src.pick(2) == 1 { // one that may be
			s = state{floor(s.at, int64(l.period)), floor(s.at, int64(l.period)) + int64(l.period), max(s.b, 0)}
		}
		if l.algorithm != FixedWindow && src.pick(2) == 1 {
			s.a, s.b = historyNumber(src, maxCount), historyNumber(src, l.count-1)
		}
		total := backlog{number(), historyNumber(src, l.count-1)}
		a.counters.each = append(a.counters.each, counter{limit: l, state: s, refunds: refunds{total: total, changes: number()}})
	}
	if src.pick(2) == 1 {
		h := &history{dropped: number()}
		a.counters.log = h
		at := number()
		for range src.pick(30) {
			if h.full() {
				h.grow()
			}
			*h.entry(h.next) = entry{at, max(number(), 0)}
			h.next++
			at += historyOneOf(src, 1, 0, int64(time.Second), historyNumber(src, 1<<40), -1)
		}
		for range 1 + src.pick(3) {
			h.windows = append(h.windows, slidingWindow{period: historyPeriod(src), first: int64(src.pick(int(h.next) + 1))})
		}
	}
	var read Account
	if err := read.UnmarshalBinary(accountBytes(t, &a)); err == nil {
		accountWithstands(t, read, src)
	} else if !errors.Is(err, ErrCorrupt) {
		t.Fatalf("%+v: %v", a, err)
	}
}

func TestAccountTampered(t *testing.T) { historyRapid(t, propertyAccountTampered) }
func FuzzAccountTampered(f *testing.F) { historyFuzz(f, propertyAccountTampered) }

// An account that was written before there were weeks and months of the calendar is read as it was.
func TestAccountBinaryOfDays(t *testing.T) {
	written, err := hex.DecodeString("018080c8f7d8e4f5972f8080d0e2c6bfce972f80808080808080808001" + // the head
		"02148080bc8ac9d2131403025a13416d65726963612f4c6f735f416e67656c657380c0f796d2d5b9972f80c0efabe4fae0972f0600000000" +
		"078080bc8ac9d2130703018080d0e2c6bfce972f8080c8f7d8e4f5972f060000000000")
	if err != nil {
		t.Fatal(err)
	}
	var a Account
	if err := a.UnmarshalBinary(written); err != nil {
		t.Fatal(err)
	}
	const now = 1_700_000_000_000_000_000
	for _, c := range []struct {
		limit Limit
		left  int64
	}{{PerDay(20).ResetAt(90*time.Minute, losAngeles), 17}, {PerDay(7).Anchored(), 4}} {
		if d := a.Check(c.limit, now+1, 0); d.Remaining != c.left {
			t.Errorf("%v: %d are left; want %d", c.limit, d.Remaining, c.left)
		}
	}
}

// A zone that is not in the time zone database, or whose name is a path, is not valid.
func TestAccountBinaryRefusesZones(t *testing.T) {
	var a Account
	a.Take([]Limit{PerDay(20).ResetAt(0, losAngeles)}, accountStart, 2)
	written := accountBytes(t, &a)
	for _, name := range []string{"America/Los_Angelos", "../../../etc/localti", "America/Los_Angel\x00s"} {
		b := bytes.Replace(written, []byte("America/Los_Angeles"), []byte(name)[:len("America/Los_Angeles")], 1)
		accountRefuses(t, name, b)
	}
}

// accountWithstands uses an account with any content while the clock moves on: the account
// does not panic, can be written and read, and from now on lets no more pass than its limits
// allow.
func accountWithstands(t historyT, a Account, src historySource) {
	limits := accountLimitsOf(&a, src)
	w := newHistoryWalk(src, limits[0], true)
	w.now = accountStart
	var passed []modelPassed
	var receipts []Receipt
	last := modelAnswer{}
	for range historySteps(src) {
		w.limit = historyOneOf(src, limits...)
		now, n := w.step(last)
		a.Fit(limits, now)
		allowed := n > 0
		for _, l := range limits {
			d := a.Check(l, now, n)
			last = modelAnswerIn(d)
			if d.Remaining < 0 || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Allowed != (d.RetryAfter == 0) {
				t.Fatalf("%v: check %d at %d: %+v", l, n, now, d)
			}
			allowed = allowed && d.Allowed
		}
		if allowed {
			receipts = append(receipts, a.Take(limits, now, n))
			passed = append(passed, modelPassed{now, n})
		}
		if i := src.pick(8); i < len(passed) && passed[i].n > 0 && receipts[i].N > 0 {
			actual := historyNumber(src, passed[i].n)
			a.Settle(limits, receipts[i], now, actual)
			passed[i].n, receipts[i] = actual, Receipt{}
		}
		if src.pick(3) == 1 {
			a = accountRead(t, accountBytes(t, &a))
		}
	}
	for _, l := range limits {
		accountBound(t, l, passed)
	}
}

// accountLimitsOf returns some of the limits that an account knows, and some
// that it does not.
func accountLimitsOf(a *Account, src historySource) []Limit {
	limits := []Limit{historySettleLimit(src, Algorithm(src.pick(int(algorithms))))}
	for range min(4, len(a.counters.each)) {
		limits = append(limits, a.counters.each[src.pick(len(a.counters.each))].limit)
	}
	if h := a.counters.log; h != nil {
		period := h.windows[src.pick(len(h.windows))].period
		limits = append(limits, New(1+historyNumber(src, 99), period).Using(SlidingLog))
	}
	return limits[src.pick(2)*(len(limits)-1):]
}

// accountBound checks what has passed under a limit.
func accountBound(t historyT, l Limit, passed []modelPassed) {
	t.Helper()
	switch l.Algorithm() {
	case SlidingLog:
		historyLogBound(t, l, passed)
	case FixedWindow, SlidingCounter: // three windows, one of which was cut short by hand
		first, sum := 0, uint64(0)
		for _, last := range passed {
			for passed[first].at <= last.at-int64(l.Period()) {
				sum -= uint64(passed[first].n)
				first++
			}
			if sum += uint64(last.n); sum > 3*uint64(l.Count()) {
				t.Fatalf("%v: %d passed within a period before %d", l, sum, last.at)
			}
		}
	default:
		historyBucketBound(t, l, passed)
	}
}

// FuzzAccountBinary: any bytes are corrupt, or an account that does no harm.
func FuzzAccountBinary(f *testing.F) {
	for _, seed := range historySeeds {
		f.Add(accountBytes(f, accountUsed()), []byte(seed))
		f.Add(accountBytes(f, new(Account)), []byte(seed))
	}
	for _, test := range accountTampered {
		a := accountUsed()
		test.tamper(a)
		f.Add(accountBytes(f, a), []byte(historySeeds[len(historySeeds)-1]))
	}
	f.Fuzz(func(t *testing.T, written, ops []byte) {
		var a Account
		if err := a.UnmarshalBinary(written); err != nil {
			accountRefuses(t, "bytes", written)
			return
		}
		again := accountRead(t, accountBytes(t, &a))
		if one, other := accountBytes(t, &a), accountBytes(t, &again); !bytes.Equal(one, other) {
			t.Fatalf("%x is written %x, and then %x", written, one, other)
		}
		accountWithstands(t, a, &byteSource{ops})
	})
}
