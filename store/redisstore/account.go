package redisstore

import (
	"fmt"
	"math/bits"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// stored is an account with what the script stores beside it.
type stored struct {
	bytes    []byte // the stored form, as it was read; empty if nothing is in use
	account  *limit.Account
	revision int64
}

const (
	accountVersion = 1
	entryBytes     = 24
	maxEntries     = 1 << 16 // more than any log has
	maxCounters    = 250
)

// readAccount decodes an account.
func readAccount(bytes []byte) (stored, error) {
	s := stored{bytes: bytes, account: new(limit.Account)}
	if len(bytes) == 0 {
		return s, nil
	}
	r := reader{rest: bytes}
	if version := r.byte(); version != accountVersion {
		return s, fmt.Errorf("%w: version %d: this program knows version %d", errCorrupt, version, accountVersion)
	}
	shot := snapshot{fullAt: r.number(), seen: r.number(), epoch: r.epoch()}
	s.revision = r.float()
	counters, logged := r.byte(), r.byte()
	r.byte() // is 0
	for range counters {
		shot.counters = append(shot.counters, r.counter())
	}
	if logged == 1 {
		r.log(&shot)
	}
	if r.err != nil {
		return s, r.err
	}
	return s, shot.restore(s.account)
}

func (r *reader) counter() (c counterState) {
	if err := c.limit.UnmarshalBinary(r.name()); err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: %w", errCorrupt, err)
	}
	r.name()
	c.at, c.a, c.b = r.number(), r.number(), r.number()
	c.refunded = r.backlog()
	c.changes, c.beyond = r.float(), r.number()
	return c
}

// log decodes a log, whose ring of entries is the rest.
func (r *reader) log(shot *snapshot) {
	size, oldest, next := r.float(), r.float(), r.float()
	shot.dropped = r.number()
	newest, most := r.number(), int64(0)
	for range r.byte() {
		w := logWindow{period: time.Duration(r.number()), first: int(r.float() - oldest)}
		shot.windows = append(shot.windows, w)
		most = max(most, r.number())
	}
	if r.err != nil || size < 1 || size > maxEntries || oldest < 0 || next < oldest || next-oldest > size {
		r.err = errCorrupt
		return
	}
	if int64(len(r.rest)) != size*entryBytes {
		rebuildLog(shot, newest, most)
		return
	}
	for i := oldest; i < next; i++ {
		e := reader{rest: r.rest[i%size*entryBytes:]}
		shot.entries = append(shot.entries, logEntry{e.number(), e.number()})
	}
}

// rebuildLog replaces the entries of a log that is cut off: the most that was in any window counts as used at the time
// of the newest entry. Older versions had the entries under a key of their own.
func rebuildLog(shot *snapshot, newest, most int64) {
	for i := range shot.windows {
		shot.windows[i].first = 0
	}
	if most > 0 {
		shot.entries = []logEntry{{newest, most}}
	}
}

var errTooManyCounters = fmt.Errorf("more than %d limits of the key are in use", maxCounters)

// write encodes the account as the script stores it.
func (s *stored) write() ([]byte, error) {
	shot := snapshotOf(s.account)
	if shot.epoch == 0 {
		return nil, nil
	}
	if len(shot.counters) > maxCounters || len(shot.windows) > maxCounters {
		return nil, errTooManyCounters
	}
	var w writer
	w.byte(accountVersion)
	w.number(shot.fullAt)
	w.number(shot.seen)
	w.epoch(shot.epoch)
	w.float(s.revision)
	w.byte(byte(len(shot.counters)))
	w.bool(len(shot.windows) > 0)
	w.byte(0)
	for _, c := range shot.counters {
		w.counter(c)
	}
	if len(shot.windows) > 0 {
		w.log(&shot)
	}
	return w, nil
}

func (w *writer) counter(c counterState) {
	w.name(nameOf(c.limit))
	w.name(nameOf(shapeOf(c.limit)))
	w.number(c.at)
	w.number(c.a)
	w.number(c.b)
	w.unsigned(uint64(c.refunded.ns))
	w.number(c.refunded.parts)
	w.float(c.changes)
	w.number(c.beyond)
}

// log writes the log, whose ring of entries has room for one more.
func (w *writer) log(shot *snapshot) {
	size := max(1<<bits.Len(uint(len(shot.entries))), 8)
	newest := int64(0)
	if n := len(shot.entries); n > 0 {
		newest = shot.entries[n-1].at
	}
	w.float(int64(size))
	w.float(0)
	w.float(int64(len(shot.entries)))
	w.number(shot.dropped)
	w.number(newest)
	w.byte(byte(len(shot.windows)))
	for _, each := range shot.windows {
		w.number(int64(each.period))
		w.float(int64(each.first))
		w.number(shot.sumFrom(each.first))
	}
	for _, e := range shot.entries {
		w.number(e.at)
		w.number(e.n)
	}
	*w = append(*w, make([]byte, (size-len(shot.entries))*entryBytes)...)
}
