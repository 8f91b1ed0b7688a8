package limit

import (
	"fmt"
	"math/bits"
	"time"
)

// Snapshot is an [Account] in plain numbers, for a store whose arithmetic is
// done elsewhere. Times are Unix nanoseconds.
type Snapshot struct {
	FullAt, Seen int64
	Epoch        uint64
	Counters     []Counter

	Windows []Window // of its sliding log
	Dropped int64    // up to when its entries are not known any more
	Entries []Entry  // oldest first
}

// Counter is what a key has used of one limit.
//
//	                At                A                        B
//	buckets         of the last take  its backlog, in ns       and 1/count parts of one more
//	FixedWindow     window's start    window's end             used in it
//	SlidingCounter  window's start    used in the one before   used in it
type Counter struct {
	Limit    Limit
	At, A, B int64

	// Of a bucket: what was refunded in all, modulo 2^64 ns, how often the
	// limit's count has changed, and how much more was used at the last change
	// than A could hold.
	Refunded        Backlog
	Changes, Beyond int64
}

// Backlog is how long what a bucket holds takes to drain: NS nanoseconds and
// Parts/count of one.
type Backlog struct{ NS, Parts int64 }

// Window is how much of a sliding log is in its last Period: Sum, of the
// entries from First on.
type Window struct {
	Period time.Duration
	First  int
	Sum    int64
}

// Entry is that N was taken at a time.
type Entry struct{ At, N int64 }

// Snapshot returns the account in numbers.
func (a *Account) Snapshot() Snapshot {
	s := Snapshot{FullAt: a.counters.fullAt, Seen: a.seen, Epoch: a.epoch}
	for _, c := range a.counters.each {
		s.Counters = append(s.Counters, Counter{
			c.limit, c.state.at, c.state.a, c.state.b,
			Backlog(c.refunds.total), c.refunds.changes, c.refunds.beyond,
		})
	}
	h := a.counters.log
	if h == nil {
		return s
	}
	s.Dropped = h.dropped
	for _, w := range h.windows {
		s.Windows = append(s.Windows, Window{w.period, int(w.first - h.oldest), w.sum})
	}
	for i := h.oldest; i < h.next; i++ {
		s.Entries = append(s.Entries, Entry{h.entry(i).at, h.entry(i).n})
	}
	return s
}

// Account returns the account of a snapshot, or [ErrCorrupt] if no account can
// have had it.
func (s Snapshot) Account() (*Account, error) {
	a := &Account{seen: s.Seen, epoch: s.Epoch}
	a.counters.fullAt = s.FullAt
	for _, c := range s.Counters {
		each := c.counter()
		if !each.sane() {
			return nil, fmt.Errorf("%w: a counter that cannot be", ErrCorrupt)
		}
		a.counters.each = append(a.counters.each, each)
	}
	if len(s.Windows) == 0 {
		return a, nil
	}
	h := newHistory(s.Dropped)
	h.next = int64(len(s.Entries))
	if len(s.Entries) > 0 {
		h.ring = make([]entry, max(1<<bits.Len(uint(len(s.Entries)-1)), firstEntries))
	}
	for i, e := range s.Entries {
		if e.N < 0 || i > 0 && e.At < s.Entries[i-1].At {
			return nil, fmt.Errorf("%w: entries that are not in the order of time", ErrCorrupt)
		}
		h.ring[i] = entry{e.At, e.N}
	}
	for _, w := range s.Windows {
		if w.Period < 1 || w.First < 0 || w.First > len(s.Entries) {
			return nil, fmt.Errorf("%w: a window that cannot be", ErrCorrupt)
		}
		h.windows = append(h.windows, slidingWindow{w.Period, int64(w.First), w.Sum})
	}
	a.counters.log = h
	return a, nil
}

func (c Counter) counter() counter {
	return counter{c.Limit, state{c.At, c.A, c.B}, refunds{backlog(c.Refunded), c.Changes, c.Beyond}}
}

// Check says what [Account.Check] would.
func (c Counter) Check(now, n int64) Decision {
	_, v := c.Limit.take(state{c.At, c.A, c.B}, now, n)
	return v.by(c.Limit)
}

// Take returns the counter once n was taken, if that may pass, and otherwise as it
// is.
func (c Counter) Take(now, n int64) Counter {
	s, _ := c.Limit.take(state{c.At, c.A, c.B}, now, n)
	c.At, c.A, c.B = s.at, s.a, s.b
	return c
}

// Cost returns the backlog that n adds to a bucket.
func (l Limit) Cost(n int64) Backlog { return Backlog(l.backlogOf(n)) }

// Shape returns what must stay of a limit for what was used of it to stay. That
// of two limits which differ in counts alone is the same. It is not valid.
func (l Limit) Shape() Limit { return l.shape() }

// Prepare makes an account ready for a take that adds to what it has: its clock
// and limits are those that are given, the counters that are full again are
// gone, and its log has room for one more entry.
func (a *Account) Prepare(limits []Limit, now int64) {
	a.Fit(limits, now)
	for _, l := range limits {
		a.counters.check(l, now, 0)
	}
	a.plan = nil
	a.counters.dropFull(now)
	if h := a.counters.log; h != nil {
		h.makeRoom(now)
	}
}
