package redisstore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// snapshot is the content of a [limit.Account] in numbers, with which the script computes. An account
// is converted to its snapshot, and back, by way of its binary form.
type snapshot struct {
	fullAt, seen int64
	epoch        uint64
	counters     []counterState
	windows      []logWindow // of the sliding log
	dropped      int64       // entries up to this time may be missing
	entries      []logEntry  // of the sliding log, oldest first
}

// counterState is what an account has used of one limit that is no sliding log.
//
//	                at                     a                           b
//	buckets         time of the last take  ns of the backlog then      parts of the backlog then
//	FixedWindow     start of the window    end of the window           used in the window
//	SlidingCounter  start of the window    used in the window before   used in the window
type counterState struct {
	limit    limit.Limit
	at, a, b int64

	// Only for a bucket: the sum of all refunds, modulo 2^64 ns; the number of changes of the
	// limit's count; and what was used beyond the largest backlog at the last change.
	refunded        backlog
	changes, beyond int64
}

// backlog is the time in which a bucket drains: ns + parts/count nanoseconds.
type backlog struct{ ns, parts int64 }

// logWindow is a window over the entries of a sliding log.
type logWindow struct {
	period time.Duration
	first  int // the index of its oldest entry
}

// logEntry is an amount n that was taken at a time.
type logEntry struct{ at, n int64 }

// snapshotVersion is the version of the binary form of accounts.
const snapshotVersion = 1

// snapshotOf returns the snapshot of an account.
func snapshotOf(a *limit.Account) (s snapshot) {
	b, _ := a.AppendBinary(make([]byte, 0, 128))
	r := varints{b[1:]}
	s.fullAt, s.seen, s.epoch = r.signed(), r.signed(), r.unsigned()
	counters := int(r.unsigned())
	s.counters = make([]counterState, 0, counters)
	for range counters {
		c := counterState{limit: r.limit(), at: r.signed(), a: r.signed(), b: r.signed()}
		c.refunded, c.changes, c.beyond = backlog{r.signed(), r.signed()}, r.signed(), r.signed()
		s.counters = append(s.counters, c)
	}
	for range r.unsigned() {
		s.windows = append(s.windows, logWindow{period: time.Duration(r.unsigned()), first: int(r.unsigned())})
	}
	if len(s.windows) == 0 {
		return s
	}
	s.dropped = r.signed()
	at := int64(0)
	for range r.unsigned() {
		at += r.signed()
		s.entries = append(s.entries, logEntry{at, int64(r.unsigned())})
	}
	return s
}

// restore makes a the account of a snapshot.
func (s *snapshot) restore(a *limit.Account) error {
	b := append(make([]byte, 0, 32+64*len(s.counters)+12*len(s.entries)), snapshotVersion)
	b = binary.AppendVarint(b, s.fullAt)
	b = binary.AppendVarint(b, s.seen)
	b = binary.AppendUvarint(b, s.epoch)
	b = binary.AppendUvarint(b, uint64(len(s.counters)))
	for i := range s.counters {
		c := &s.counters[i]
		b, _ = c.limit.AppendBinary(b)
		for _, v := range [...]int64{c.at, c.a, c.b, c.refunded.ns, c.refunded.parts, c.changes, c.beyond} {
			b = binary.AppendVarint(b, v)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.windows)))
	for _, w := range s.windows {
		b = binary.AppendUvarint(b, uint64(w.period))
		b = binary.AppendUvarint(b, uint64(w.first))
	}
	if len(s.windows) > 0 {
		b = binary.AppendVarint(b, s.dropped)
		b = binary.AppendUvarint(b, uint64(len(s.entries)))
		at := int64(0)
		for _, e := range s.entries {
			b = binary.AppendVarint(b, e.at-at)
			b = binary.AppendUvarint(b, uint64(e.n))
			at = e.at
		}
	}
	if err := a.UnmarshalBinary(b); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return nil
}

// find returns the counter of a limit, or nil.
func (s *snapshot) find(l limit.Limit) *counterState {
	i := slices.IndexFunc(s.counters, func(c counterState) bool { return c.limit == l })
	if i < 0 {
		return nil
	}
	return &s.counters[i]
}

// sumFrom returns the sum of the entries from an index on, at most maxAmount.
func (s *snapshot) sumFrom(first int) (sum int64) {
	for _, e := range s.entries[first:] {
		sum += min(e.n, maxAmount-sum)
	}
	return sum
}

// varints reads the binary form of an account, which is known to be complete, from front to back.
type varints struct{ rest []byte }

func (r *varints) signed() int64 {
	v, n := binary.Varint(r.rest)
	r.rest = r.rest[n:]
	return v
}

func (r *varints) unsigned() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.rest = r.rest[n:]
	return v
}

// limit reads a limit. To find its end, it skips the limit's numbers.
func (r *varints) limit() (l limit.Limit) {
	start := r.rest
	for range 3 { // the count, the period and the burst
		r.unsigned()
	}
	windowing := r.rest[1] // after the algorithm
	r.rest = r.rest[2:]
	if windowing == calendarWindows {
		r.unsigned() // the minute of the day
		zone := r.unsigned()
		r.rest = r.rest[zone:]
	}
	l.UnmarshalBinary(start[:len(start)-len(r.rest)])
	return l
}

const calendarWindows = 2 // package limit's constant for windows that follow the calendar
