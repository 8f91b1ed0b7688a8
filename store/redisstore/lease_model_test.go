package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// keyModel is the expected state of a key: an account of what was charged, the leases, and for each
// limit a list of what was used.
type keyModel struct {
	key     string
	limits  []limit.Limit
	account limit.Account
	leases  []*modelLease
	spent   []*spent
}

// modelLease is a lease, and the parts of it that were used.
type modelLease struct {
	of      *keyModel
	name    string
	n, ends int64
	left    int64
	parts   []modelPart
	paid    *chargeReceipt // by the store; nil: it is open, or was charged at once
	receipt limit.Receipt  // by the model
}

// modelPart is what was used at one time: an index in the lists.
type modelPart struct{ at, n int64 }

// leased returns how much is leased.
func (e *keyModel) leased() (n int64) {
	for _, l := range e.leases {
		n += l.n
	}
	return n
}

// look charges the leases whose term is over.
func (e *keyModel) look(now int64) {
	e.leases = slices.DeleteFunc(e.leases, func(l *modelLease) bool {
		if l.ends <= now {
			e.owe(now, l.n)
		}
		return l.ends <= now
	})
}

// forgettable reports whether nothing would be in use at now if everything leased had been used at
// the last moment.
func (e *keyModel) forgettable(now int64) bool {
	bytes, _ := e.account.AppendBinary(nil)
	last := new(keyModel)
	last.account.UnmarshalBinary(bytes)
	last.limits = e.limits
	for _, l := range e.leases {
		if l.ends > now {
			return false
		}
		last.owe(max(l.ends-1, snapshotOf(&e.account).seen), l.n)
	}
	return !slices.ContainsFunc(e.limits, func(l limit.Limit) bool { return last.account.Check(l, now, 0).ResetAfter > 0 })
}

func (e *keyModel) owe(now, n int64) { e.account.Settle(e.limits, limit.Receipt{At: now}, now, n) }

// allows reports whether each limit has room for n beside what is leased.
func (e *keyModel) allows(now, n int64) (each []bool) {
	for _, l := range e.limits {
		leased := e.leased()
		each = append(each, n <= l.Burst()-leased && e.account.Check(l, now, n+leased).Allowed)
	}
	return each
}

func (e *keyModel) spend(now, n int64) (index int) {
	for _, s := range e.spent {
		s.add(now, n)
	}
	return len(e.spent[0].all) - 1
}

// correct lowers what was taken to what was used.
func (e *keyModel) correct(index int, actual int64) {
	for _, s := range e.spent {
		s.all[index].n = min(s.all[index].n, actual)
	}
}

// says fails the test if decisions differ from the expected ones.
func (e *keyModel) says(now, n int64, charged bool, said []limit.Decision) error {
	leased := e.leased()
	for i, allows := range e.allows(now, n) {
		l, got := e.limits[i], said[i]
		want := e.account.Check(l, now, n)
		if !charged && (allows || want.Allowed) {
			want = e.account.Check(l, now, 0)
		}
		want.Used += leased
		want.Remaining = max(want.Remaining-leased, 0)
		if want.Allowed = allows; leased > 0 {
			want.ResetAfter, want.Since = got.ResetAfter, got.Since
			if !allows && n <= l.Burst() && got.RetryAfter > 0 && got.RetryAfter < limit.Never {
				want.RetryAfter = got.RetryAfter
			}
		}
		if got != want {
			return fmt.Errorf("%d of %q with %d leased at %d:\n got %+v\nwant %+v", n, e.key, leased, now, got, want)
		}
	}
	return nil
}

// leaseModel is a store and its expected state.
type leaseModel struct {
	*rapid.T
	lender *lender
	all    []*keyModel
	ended  []*modelLease
	takes  []modelTake
	record []string
}

// modelTake is a take that may be settled.
type modelTake struct {
	receipt  store.Receipt
	of       []*keyModel
	receipts []limit.Receipt
	places   []int
}

func (s *leaseModel) logf(format string, args ...any) {
	s.record = append(s.record, fmt.Sprintf("%d: ", s.lender.at.Load()-noon.UnixNano())+fmt.Sprintf(format, args...))
}

func (s *leaseModel) failf(format string, args ...any) {
	s.Helper()
	for _, line := range s.record {
		s.Log(line)
	}
	s.Fatalf(format, args...)
}

func oneOf[E any](t *rapid.T, name string, of ...E) E {
	return of[rapid.IntRange(0, len(of)-1).Draw(t, name)]
}

// For any history of leasing, using, ending, settling and forgetting, each answer is the expected
// one, and no more is used than limits allow.
func TestLeasesOfRandomHistories(t *testing.T) {
	d := newLender(t, dialed(t, redistest.New(t).URL()))
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		s := &leaseModel{T: t, lender: d}
		d.at.Store(noon.Add(oneOf(t, "start", 0, 59*time.Minute, 11*time.Hour+59*time.Minute)).UnixNano())
		for range rapid.IntRange(1, 2).Draw(t, "keys") {
			number++
			e := &keyModel{key: fmt.Sprint("key ", number)}
			for range rapid.IntRange(1, 3).Draw(t, "limits") {
				l := anyLimit(t)
				if slices.Contains(e.limits, l) {
					continue
				}
				e.limits = append(e.limits, l)
				e.spent = append(e.spent, &spent{limit: l})
			}
			s.all = append(s.all, e)
		}
		steps := []func(){s.pass, s.pass, s.lease, s.lease, s.spend, s.spend, s.end, s.take, s.take, s.peek, s.settle, s.settlePart}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			oneOf(t, "step", steps...)()
		}
		for _, e := range s.all {
			for _, each := range e.spent {
				if err := each.bound(); err != nil {
					s.failf("%q: %v", e.key, err)
				}
			}
		}
	})
}

func anyLimit(t *rapid.T) limit.Limit {
	l := limit.New(oneOf[int64](t, "count", 10, 1, 3, 100, 97), oneOf(t, "period", time.Hour, time.Minute, 999_999_937))
	switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); kind {
	case 0, 1, 2:
		l = l.Using([]limit.Algorithm{limit.GCRA, limit.TokenBucket, limit.LeakyBucket}[kind])
		return l.WithBurst(oneOf(t, "burst", l.Count(), 1, 2*l.Count()))
	case 3:
		return l.Anchored()
	case 4:
		n := l.Count()
		return oneOf(t, "calendar", limit.PerDay(n).ResetAt(0, nil), limit.PerHour(n).ResetHourly(0, nil), limit.PerMonth(n).ResetMonthly(15, 0, nil))
	case 5:
		return l.Using(limit.FixedWindow)
	case 6:
		return l.Using(limit.SlidingCounter)
	default:
		return l.Using(limit.SlidingLog)
	}
}

func (s *leaseModel) now() int64 { return s.lender.at.Load() }

// look lets a key charge the leases whose term is over.
func (s *leaseModel) look(e *keyModel) {
	s.forget(e)
	e.look(s.now())
}

// forget forgets the leases of a key if the store has forgotten them, which it may do once nothing of
// the key is in use.
func (s *leaseModel) forget(e *keyModel) {
	if len(e.leases) == 0 || s.knows(e) {
		return
	}
	if !e.forgettable(s.now()) {
		s.failf("%q was forgotten while it was in use", e.key)
	}
	e.leases = nil
}

// knows reports whether the store knows any leases of a key.
func (s *leaseModel) knows(e *keyModel) bool {
	accounts, _, err := s.lender.read(s.Context(), []store.Charge{{Key: e.key}})
	if err != nil {
		s.failf("read %q: %v", e.key, err)
	}
	return len(accounts[0].leases) > 0
}

func (s *leaseModel) pass() {
	period := oneOf(s.T, "of", s.all...).limits[0].Period()
	by := oneOf(s.T, "by", 0, 1, period/20, period/3, period/2, period, 2*period+1)
	s.lender.pass(by)
}

// amount draws an amount that may be just enough, or not.
func (s *leaseModel) amount(e *keyModel) int64 {
	l := oneOf(s.T, "amount of", e.limits...)
	left := max(e.account.Check(l, s.now(), 0).Remaining-e.leased(), 0)
	return oneOf(s.T, "n", 1, left, left+1, left/2, l.Burst(), l.Burst()+1, 0)
}

func (s *leaseModel) lease() {
	e := oneOf(s.T, "key", s.all...)
	n := max(s.amount(e), 1)
	term := oneOf(s.T, "term", e.limits[0].Period()/2, e.limits[0].Period()/20, time.Second)
	s.look(e)
	want := !slices.Contains(e.allows(s.now(), n), false)
	name, _, err := s.lender.lease(s.Context(), store.Charge{Key: e.key, Limits: e.limits, N: n}, term)
	s.logf("lease %d of %q %v for %v: %v", n, e.key, e.limits, term, name != "")
	if err != nil || (name != "") != want {
		s.failf("a lease of %d: %q, %v; want %v", n, name, err, want)
	}
	if name != "" {
		e.leases = append(e.leases, &modelLease{of: e, name: name, n: n, ends: s.now() + int64(term), left: n})
	}
}

// spend uses some of a lease that has not ended, without asking the store.
func (s *leaseModel) spend() {
	e := oneOf(s.T, "key", s.all...)
	if len(e.leases) == 0 {
		return
	}
	l := oneOf(s.T, "lease", e.leases...)
	if l.ends <= s.now() || l.left == 0 {
		return
	}
	n := oneOf(s.T, "n", l.left, 1)
	l.left -= n
	l.parts = append(l.parts, modelPart{int64(e.spend(s.now(), n)), n})
	s.logf("spend %d of %q", n, e.key)
}

func (s *leaseModel) end() {
	e := oneOf(s.T, "key", s.all...)
	if len(e.leases) == 0 {
		return
	}
	l := oneOf(s.T, "lease", e.leases...)
	s.look(e)
	charge := store.Charge{Key: e.key, Limits: e.limits, N: l.n - l.left}
	for range 2 { // the second does nothing
		want := slices.Contains(e.leases, l)
		paid, err := s.lender.end(s.Context(), charge, l.name)
		s.logf("end %d of %d of %q: %v", charge.N, l.n, e.key, paid != nil)
		if err != nil || (paid != nil) != want {
			s.failf("the end of a lease: %v, %v; want %v", paid, err, want)
		}
		if want {
			e.leases = slices.DeleteFunc(e.leases, func(other *modelLease) bool { return other == l })
			s.charge(l, charge.N, paid)
		}
	}
}

// charge charges what was used of a lease. Amounts for which the limits have no room, because there
// were debts, cannot be settled.
func (s *leaseModel) charge(l *modelLease, n int64, paid *chargeReceipt) {
	e, now := l.of, s.now()
	for _, each := range e.limits {
		if !e.account.Check(each, now, n).Allowed {
			e.owe(now, n)
			return
		}
	}
	l.receipt, l.paid = e.account.Take(e.limits, now, n), paid
	s.ended = append(s.ended, l)
}

// settlePart settles a part of a lease that has ended for less.
func (s *leaseModel) settlePart() {
	if len(s.ended) == 0 {
		return
	}
	l := oneOf(s.T, "ended", s.ended...)
	if len(l.parts) == 0 {
		return
	}
	part := l.parts[0]
	l.parts = l.parts[1:]
	actual := rapid.Int64Range(0, part.n).Draw(s.T, "actual")
	of, receipt := *l.paid, l.receipt
	of.N, receipt.N = part.n, part.n
	s.forget(l.of)
	s.logf("settle %d of %d that were leased of %q", actual, part.n, l.of.key)
	if done, err := s.lender.correct(s.Context(), settlement{takes: []*chargeReceipt{&of}, actual: []int64{actual}}); !done || err != nil {
		s.failf("settle a part: %v, %v", done, err)
	}
	l.of.account.Settle(l.of.limits, receipt, s.now(), actual)
	l.of.correct(int(part.at), actual)
}

// charges draws charges of some keys.
func (s *leaseModel) charges() (of []*keyModel, charges []store.Charge) {
	for _, e := range s.all {
		if len(of) > 0 && rapid.Bool().Draw(s.T, "not too") {
			break
		}
		of = append(of, e)
		charges = append(charges, store.Charge{Key: e.key, Limits: e.limits, N: s.amount(e)})
	}
	return of, charges
}

func (s *leaseModel) take() {
	of, charges := s.charges()
	want := true
	for i, e := range of {
		s.look(e)
		want = want && !slices.Contains(e.allows(s.now(), charges[i].N), false)
	}
	r, decisions, err := s.lender.Take(s.Context(), charges)
	s.logf("take %+v: %v", charges, r != nil)
	if err != nil || (r != nil) != want || store.Allowed(decisions) != want {
		s.failf("take %+v: %v, %+v, %v; want %v", charges, r, decisions, err, want)
	}
	s.compare(of, charges, want, decisions)
	if !want {
		return
	}
	t := modelTake{receipt: r, of: of}
	for i, e := range of {
		t.receipts = append(t.receipts, e.account.Take(e.limits, s.now(), charges[i].N))
		t.places = append(t.places, e.spend(s.now(), charges[i].N))
	}
	s.takes = append(s.takes, t)
}

func (s *leaseModel) peek() {
	of, charges := s.charges()
	for _, e := range of {
		s.forget(e)
	}
	decisions, err := s.lender.Peek(s.Context(), charges)
	s.logf("peek %+v", charges)
	if err != nil {
		s.failf("peek %+v: %v", charges, err)
	}
	s.compare(of, charges, false, decisions)
}

func (s *leaseModel) compare(of []*keyModel, charges []store.Charge, charged bool, decisions []limit.Decision) {
	for i, e := range of {
		if err := e.says(s.now(), charges[i].N, charged, decisions[:len(e.limits)]); err != nil {
			s.failf("%v", err)
		}
		decisions = decisions[len(e.limits):]
	}
}

// settle settles a take, for less or more.
func (s *leaseModel) settle() {
	if len(s.takes) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.takes)-1).Draw(s.T, "take")
	t := s.takes[i]
	s.takes = slices.Delete(s.takes, i, i+1)
	var actual []int64
	for k, e := range t.of {
		s.forget(e)
		n := t.receipts[k].N
		actual = append(actual, oneOf(s.T, "actual", 0, n/2, n, n+1, n+rapid.Int64Range(0, 10).Draw(s.T, "more")))
	}
	s.logf("settle %v of %v", actual, t.receipts)
	if err := s.lender.Settle(s.Context(), t.receipt, actual); err != nil {
		s.failf("settle %v: %v", actual, err)
	}
	for k, e := range t.of {
		e.account.Settle(e.limits, t.receipts[k], s.now(), actual[k])
		e.correct(t.places[k], actual[k])
	}
}
