package redisstore

import (
	"fmt"
	"math/bits"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// stored is an account as the script keeps it.
type stored struct {
	bytes    []byte // as it was read; empty: nothing is in use
	account  *limit.Account
	revision int64
	leases   []storedLease
}

const (
	accountVersion = 1
	entryBytes     = 24
	maxEntries     = 1 << 16 // more than any log has
	maxCounters    = 250
)

// readAccount decodes an account and the entries of its log.
func readAccount(bytes, ring []byte) (stored, error) {
	s := stored{bytes: bytes, account: new(limit.Account)}
	if len(bytes) == 0 {
		return s, nil
	}
	r := reader{rest: bytes}
	if version := r.byte(); version != accountVersion {
		return s, fmt.Errorf("%w: version %d: this program knows version %d", errCorrupt, version, accountVersion)
	}
	shot := limit.Snapshot{FullAt: r.number(), Seen: r.number(), Epoch: r.epoch()}
	s.revision = r.float()
	counters, logged, leases := r.byte(), r.byte(), r.byte()
	for range counters {
		shot.Counters = append(shot.Counters, r.counter())
	}
	if logged == 1 {
		r.log(&shot, ring)
	}
	for range leases {
		s.leases = append(s.leases, r.leased())
	}
	if r.err != nil {
		return s, r.err
	}
	account, err := shot.Account()
	if err != nil {
		return s, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	s.account = account
	return s, nil
}

func (r *reader) counter() (c limit.Counter) {
	if err := c.Limit.UnmarshalBinary(r.name()); err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: %w", errCorrupt, err)
	}
	r.name()
	c.At, c.A, c.B = r.number(), r.number(), r.number()
	c.Refunded = r.backlog()
	c.Changes, c.Beyond = r.float(), r.number()
	return c
}

func (r *reader) log(shot *limit.Snapshot, ring []byte) {
	size, oldest, next := r.float(), r.float(), r.float()
	shot.Dropped = r.number()
	newest := r.number()
	for range r.byte() {
		w := limit.Window{Period: time.Duration(r.number()), First: int(r.float() - oldest), Sum: r.number()}
		shot.Windows = append(shot.Windows, w)
	}
	if r.err != nil || size < 1 || size > maxEntries || oldest < 0 || next < oldest || next-oldest > size {
		r.err = errCorrupt
		return
	}
	if int64(len(ring)) != size*entryBytes {
		rebuildLog(shot, newest)
		return
	}
	for i := oldest; i < next; i++ {
		e := reader{rest: ring[i%size*entryBytes:]}
		shot.Entries = append(shot.Entries, limit.Entry{At: e.number(), N: e.number()})
	}
}

// rebuildLog replaces the entries of a log that Redis has evicted, or another program has changed:
// everything that was in any window counts as used at the time of the newest entry.
func rebuildLog(shot *limit.Snapshot, newest int64) {
	var most int64
	for _, w := range shot.Windows {
		most = max(most, w.Sum)
	}
	for i := range shot.Windows {
		shot.Windows[i].First, shot.Windows[i].Sum = 0, most
	}
	if most > 0 {
		shot.Entries = []limit.Entry{{At: newest, N: most}}
	}
}

var errTooManyCounters = fmt.Errorf("more than %d limits of the key are in use", maxCounters)

// write encodes the account as the script keeps it, and its log.
func (s *stored) write() (account, ring []byte, err error) {
	shot := s.account.Snapshot()
	if shot.Epoch == 0 {
		return nil, nil, nil
	}
	if len(shot.Counters) > maxCounters || len(shot.Windows) > maxCounters {
		return nil, nil, errTooManyCounters
	}
	var w writer
	w.byte(accountVersion)
	w.number(shot.FullAt)
	w.number(shot.Seen)
	w.epoch(shot.Epoch)
	w.float(s.revision)
	w.byte(byte(len(shot.Counters)))
	w.bool(len(shot.Windows) > 0)
	w.byte(byte(len(s.leases)))
	for _, c := range shot.Counters {
		w.counter(c)
	}
	if len(shot.Windows) > 0 {
		ring = w.log(shot)
	}
	for _, l := range s.leases {
		w.leased(l)
	}
	return w, ring, nil
}

func (w *writer) counter(c limit.Counter) {
	w.name(nameOf(c.Limit))
	w.name(nameOf(c.Limit.Shape()))
	w.number(c.At)
	w.number(c.A)
	w.number(c.B)
	w.unsigned(uint64(c.Refunded.NS))
	w.number(c.Refunded.Parts)
	w.float(c.Changes)
	w.number(c.Beyond)
}

// log writes a log whose ring has room for one more entry, and returns the ring.
func (w *writer) log(shot limit.Snapshot) []byte {
	size := max(1<<bits.Len(uint(len(shot.Entries))), 8)
	ring := make(writer, 0, size*entryBytes)
	newest := int64(0)
	for _, e := range shot.Entries {
		ring.number(e.At)
		ring.number(e.N)
		newest = e.At
	}
	w.float(int64(size))
	w.float(0)
	w.float(int64(len(shot.Entries)))
	w.number(shot.Dropped)
	w.number(newest)
	w.byte(byte(len(shot.Windows)))
	for _, each := range shot.Windows {
		w.number(int64(each.Period))
		w.float(int64(each.First))
		w.number(each.Sum)
	}
	return append(ring, make([]byte, size*entryBytes-len(ring))...)
}

// storedLease is a lease as the script keeps it: a name, the time at which it ends, and the request
// for its charge.
type storedLease struct {
	name    string
	ends    int64
	request []byte
}

func (r *reader) leased() storedLease {
	l := storedLease{name: string(r.take(leaseName)), ends: r.number()}
	l.request = r.take(int(r.byte()) | int(r.byte())<<8)
	return l
}

func (w *writer) leased(l storedLease) {
	*w = append(*w, l.name...)
	w.number(l.ends)
	w.byte(byte(len(l.request)))
	w.byte(byte(len(l.request) >> 8))
	*w = append(*w, l.request...)
}

// charge returns the requested charge, without its key.
func (l storedLease) charge() (c store.Charge, err error) {
	r := reader{rest: l.request}
	r.take(4) // the step, the number of charges, and two indexes of keys
	c.N = r.number()
	for range r.byte() {
		kind := r.byte()
		var of limit.Limit
		if err := of.UnmarshalBinary(r.name()); err != nil || int(kind) >= len(limitBytes) {
			return c, errCorrupt
		}
		c.Limits = append(c.Limits, of)
		r.name()
		r.take(1 + 12 + limitBytes[kind])
	}
	return c, r.err
}

// limitBytes is the length of a limit of each kind beyond the part that all kinds have.
var limitBytes = [...]int{kindBucket: 48, kindAligned: 24, kindAnchored: 12, kindCalendar: 48, kindCounter: 24, kindLog: 12}
