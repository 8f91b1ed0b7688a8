package limit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// The binary form of an Account is its version, and then numbers as varints:
//
//	fullAt, seen, epoch
//	the number of counters; for each its limit, state and refunds
//	the number of windows of the log; for each its period, and how many entries have left it
//	if there are windows: dropped, the number of entries; for each the time since the entry before, and its amount
//
// The sums of windows are not written. They are computed from the entries, so that no
// file can contradict itself.
const accountVersion = 1

// ErrCorrupt is the error for bytes that are not the binary form of an [Account].
var ErrCorrupt = errors.New("ratelimit: corrupt account")

// AppendBinary appends the binary form of the account. It never fails.
func (a *Account) AppendBinary(b []byte) ([]byte, error) {
	b = a.appendHead(b, accountVersion)
	h := a.counters.log
	if h == nil || len(h.windows) == 0 {
		return b, nil
	}
	b = binary.AppendVarint(b, h.dropped)
	return h.appendEntries(b, h.oldest), nil
}

// appendHead appends everything of an account but the entries of its log.
func (a *Account) appendHead(b []byte, version byte) []byte {
	c := &a.counters
	b = append(b, version)
	b = binary.AppendVarint(b, c.fullAt)
	b = binary.AppendVarint(b, a.seen)
	b = binary.AppendUvarint(b, a.epoch)
	b = binary.AppendUvarint(b, uint64(len(c.each)))
	for i := range c.each {
		b = c.each[i].appendBinary(b)
	}
	h := c.log
	if h == nil {
		return binary.AppendUvarint(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(h.windows)))
	for _, w := range h.windows {
		b = binary.AppendUvarint(b, uint64(w.period))
		b = binary.AppendUvarint(b, uint64(w.first-h.oldest))
	}
	return b
}

// appendEntries appends the number of entries from the i-th on, and these.
func (h *history) appendEntries(b []byte, i int64) []byte {
	b = binary.AppendUvarint(b, uint64(h.next-i))
	before := int64(0)
	for ; i < h.next; i++ {
		e := h.entry(i)
		b = binary.AppendVarint(b, e.at-before)
		b = binary.AppendUvarint(b, uint64(e.n))
		before = e.at
	}
	return b
}

// AppendBinary appends the binary form of a valid limit. No limit's form is the beginning
// of another's. It never fails.
func (l Limit) AppendBinary(b []byte) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(l.count))
	b = binary.AppendUvarint(b, uint64(l.period))
	b = binary.AppendUvarint(b, uint64(l.burst))
	b = append(b, byte(l.algorithm), byte(l.windowing))
	if l.windowing == calendar {
		b = binary.AppendUvarint(b, uint64(l.minute))
		b = binary.AppendUvarint(b, uint64(len(l.zone.String())))
		b = append(b, l.zone.String()...)
	}
	return b, nil
}

// UnmarshalBinary sets l to what AppendBinary has written. Other bytes give
// [ErrCorrupt], and leave l as it was.
func (l *Limit) UnmarshalBinary(b []byte) error {
	r := reader{rest: b}
	read := r.limit()
	if r.fault == "" && len(r.rest) > 0 {
		r.fail("bytes after its end")
	}
	if r.fault == "" && !read.sane() {
		r.fail("a limit that is not valid")
	}
	if r.fault != "" {
		return fmt.Errorf("%w: %s", ErrCorrupt, r.fault)
	}
	*l = read
	return nil
}

func (c *counter) appendBinary(b []byte) []byte {
	b, _ = c.limit.AppendBinary(b)
	for _, v := range []int64{c.state.at, c.state.a, c.state.b, c.refunds.total.NS, c.refunds.total.Parts, c.refunds.changes, c.refunds.beyond} {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// UnmarshalBinary sets a to what AppendBinary has written. Other bytes give
// [ErrCorrupt], and leave a as it was.
func (a *Account) UnmarshalBinary(b []byte) error {
	r := reader{rest: b}
	if version := r.byte(); version != accountVersion {
		return fmt.Errorf("%w: version %d: this program knows version %d", ErrCorrupt, version, accountVersion)
	}
	read, windows := r.head()
	c := &read.counters
	if len(windows) > 0 && r.fault == "" {
		c.log = r.history(windows)
	}
	if len(r.rest) > 0 {
		r.fail("bytes after its end")
	}
	if r.fault != "" {
		return fmt.Errorf("%w: %s", ErrCorrupt, r.fault)
	}
	c.fullAt = max(c.fullAt, c.inUseUntil())
	*a = read
	return nil
}

// inUseUntil returns the time from which on nothing that the key has used counts any more.
func (c *counters) inUseUntil() (at int64) {
	for i := range c.each {
		each := &c.each[i]
		_, v := each.limit.take(each.state, each.state.at, 0)
		at = max(at, each.state.at+int64(v.ResetAfter))
	}
	if c.log != nil {
		at = max(at, c.log.fullAt())
	}
	return at
}

// mostListed is how many limits, and how many entries, an account in bytes may have.
const mostListed = 1 << 16

// reader reads the binary form of an account from front to back. After the first fault,
// it returns zeros.
type reader struct {
	rest  []byte
	fault string
}

func (r *reader) fail(fault string) {
	if r.fault == "" {
		r.fault = fault
	}
	r.rest = nil
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail("it ends too early")
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail("it ends too early, or a number is too large")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// amount reads a number from 0 to most.
func (r *reader) amount(most uint64) int64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > most {
		r.fail("it ends too early, or a number is too large")
		return 0
	}
	r.rest = r.rest[n:]
	return int64(v)
}

func (r *reader) count(most int) int { return int(r.amount(uint64(most))) }

// time reads a time to which periods can be added without overflow.
func (r *reader) time() int64 {
	t := r.varint()
	if t < -maxCount || t > maxCount {
		r.fail("a time is out of range")
		return 0
	}
	return t
}

func (r *reader) counter() counter {
	c := counter{limit: r.limit()}
	c.state = state{r.time(), r.varint(), r.varint()}
	c.refunds = refunds{backlog{r.varint(), r.varint()}, r.varint(), r.varint()}
	if r.fault == "" && !c.sane() {
		r.fail("a counter that no take can have led to")
	}
	return c
}

func (r *reader) limit() (l Limit) {
	l.count = r.amount(maxCount)
	l.period = time.Duration(r.amount(maxPeriod))
	l.burst = r.amount(maxCount)
	l.algorithm, l.windowing = Algorithm(r.byte()), windowing(r.byte())
	if l.windowing == calendar {
		l.minute = int32(r.amount(mostMinutes))
		l.zone = r.zone()
	}
	return l
}

func (r *reader) zone() *time.Location {
	length := r.count(len(r.rest))
	if length > len(r.rest) {
		r.fail("it ends too early")
	}
	if r.fault != "" {
		return nil
	}
	zone, err := zoneNamed(string(r.rest[:length]))
	if err != nil {
		r.fail(err.Error())
		return nil
	}
	r.rest = r.rest[length:]
	return zone
}

// sane reports whether the constructors of this package can return such a limit.
func (l Limit) sane() bool {
	return l.Validate() == nil && l.windowing <= calendar && (l.windowing == aligned || l.algorithm == FixedWindow)
}

// sane reports whether take and settle can produce such a counter.
func (c *counter) sane() bool {
	l, s, parts := c.limit, c.state, c.refunds.total.Parts
	if !l.sane() {
		return false
	}
	inRange := func(v int64) bool { return v >= 0 && v <= maxCount }
	switch l.algorithm {
	case SlidingLog:
		return false
	case FixedWindow:
		length := s.a - s.at
		if s.a < s.at || length < 0 || length/3 > int64(l.period) || !inRange(s.b) { // the calendar's windows can be longer than the period
			return false
		}
		return l.windowing != aligned || s.a%int64(l.period) == 0
	case SlidingCounter:
		return s.at == floor(s.at, int64(l.period)) && inRange(s.a) && inRange(s.b)
	default:
		return inRange(s.a) && s.b >= 0 && s.b < l.count && parts >= 0 && parts < l.count && inRange(c.refunds.beyond)
	}
}

// windows reads so many windows of a log.
func (r *reader) windows(n int) (windows []slidingWindow) {
	for range n {
		w := slidingWindow{period: time.Duration(r.amount(maxPeriod)), first: r.amount(mostListed)}
		if w.period < 1 {
			r.fail("a window of no length")
		}
		if r.fault != "" {
			return nil
		}
		windows = append(windows, w)
	}
	return windows
}

// history reads the rest of a log with these windows.
func (r *reader) history(windows []slidingWindow) *history {
	h := newHistory(r.time())
	h.windows = append(h.windows, windows...)
	r.entries(h)
	if r.fault == "" {
		r.sums(h)
	}
	return h
}

// entries reads entries and adds them to a log.
func (r *reader) entries(h *history) {
	n := r.count(mostListed)
	if room := h.next - h.oldest + int64(n); room > int64(len(h.ring)) {
		h.growTo(1 << bits.Len(uint(room-1)))
	}
	at := int64(0)
	for i := range n {
		since := r.varint()
		at += since
		amount := r.amount(maxCount)
		if r.fault != "" {
			return
		}
		before := at
		if h.next > h.oldest {
			before = h.entry(h.next - 1).at
		}
		if since < 0 && i > 0 || at < before || at < -maxCount || at > maxCount {
			r.fail("entries that are not in the order of time")
			return
		}
		*h.entry(h.next) = entry{at, amount}
		h.next++
	}
}

// sums computes the sums of a log's windows.
func (r *reader) sums(h *history) {
	for i := range h.windows {
		w := &h.windows[i]
		if w.first > h.next {
			r.fail("a window that begins after its last entry")
			return
		}
		w.sum = 0
		for k := w.first; k < h.next; k++ {
			w.sum = correct(w.sum, h.entry(k).n)
		}
	}
}
