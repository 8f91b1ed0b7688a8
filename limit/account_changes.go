package limit

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The changes of an account are its binary form, if all of it has changed, or of another version:
//
//	fullAt, seen, epoch, counters and windows as in the binary form
//	dropped, how many of the oldest entries were forgotten, and how many after these are kept
//	the number of amended entries; for each its place among those that are kept, and its amount
//	the number of entries after those that are kept; for each the time since the entry before, and its amount
const changesVersion = 2

// AppendChanges appends what has changed of the account since AppendChanges or ApplyChanges was last called, so that a
// store need not write all of it. At first that is the whole account.
func (a *Account) AppendChanges(b []byte) []byte {
	h := a.counters.log
	if h == nil {
		b, _ = a.AppendBinary(b)
		return b
	}
	if c := h.changes; c == nil || c.whole || h.oldest > c.same {
		b, _ = a.AppendBinary(b)
	} else {
		b = a.appendHead(b, changesVersion)
		b = binary.AppendVarint(b, h.dropped)
		b = binary.AppendUvarint(b, uint64(h.oldest-c.oldest))
		b = binary.AppendUvarint(b, uint64(c.same-h.oldest))
		b = h.appendAmended(b)
		b = h.appendEntries(b, c.same)
	}
	h.written()
	return b
}

// appendAmended appends the entries whose amounts have changed, of those that are kept.
func (h *history) appendAmended(b []byte) []byte {
	c, n := h.changes, 0
	for _, i := range c.amended {
		if i >= h.oldest && i < c.same {
			c.amended[n] = i
			n++
		}
	}
	b = binary.AppendUvarint(b, uint64(n))
	for _, i := range c.amended[:n] {
		b = binary.AppendUvarint(b, uint64(i-h.oldest))
		b = binary.AppendUvarint(b, uint64(h.entry(i).n))
	}
	return b
}

// ApplyChanges makes the changes that AppendChanges has written of another account, which was like this one when it was
// written before. Other bytes give [ErrCorrupt]. After an error the account must not be used.
func (a *Account) ApplyChanges(b []byte) error {
	if len(b) == 0 || b[0] != changesVersion {
		if err := a.UnmarshalBinary(b); err != nil {
			return err
		}
		if h := a.counters.log; h != nil {
			h.written()
		}
		return nil
	}
	r := reader{rest: b[1:]}
	read, windows := r.head()
	h := a.counters.log
	if h == nil || !h.asWritten() {
		r.fail("changes of another account")
	} else {
		r.changes(h, windows)
	}
	if len(r.rest) > 0 {
		r.fail("bytes after its end")
	}
	if r.fault != "" {
		return fmt.Errorf("%w: %s", ErrCorrupt, r.fault)
	}
	read.counters.log = h
	read.counters.fullAt = max(read.counters.fullAt, read.counters.inUseUntil())
	*a = read
	h.written()
	return nil
}

// head reads the head of an account, and returns its windows, whose first entries are counted from the oldest.
func (r *reader) head() (read Account, windows []slidingWindow) {
	c := &read.counters
	c.fullAt, read.seen, read.epoch = r.varint(), r.time(), uint64(r.amount(math.MaxUint64))
	for range r.count(mostListed) {
		c.each = append(c.each, r.counter())
	}
	return read, r.windows(r.count(mostListed))
}

// changes makes changes of a history. Its windows become those that were read.
func (r *reader) changes(h *history, windows []slidingWindow) {
	dropped := r.time()
	forgotten, kept := r.amount(mostListed), r.amount(mostListed)
	if written := h.changes.oldest; written+forgotten+kept > h.next {
		r.fail("changes of another account")
	} else {
		h.oldest, h.next, h.dropped = written+forgotten, written+forgotten+kept, dropped
	}
	for range r.count(mostListed) {
		place, n := r.amount(mostListed), r.amount(maxCount)
		if r.fault != "" || place >= kept {
			r.fail("an amended entry that is not there")
			return
		}
		h.entry(h.oldest + place).n = n
	}
	r.entries(h)
	if r.fault == "" {
		h.windows = windows
		for i := range windows {
			windows[i].first += h.oldest
		}
		r.sums(h)
	}
}

// AppendLasting appends what lasts of the account until something is charged or settled, its limits change or its clock
// goes back, and reports whether the sliding log is as it was written. If both are as they were, the account need not be
// written: time alone has passed.
func (a *Account) AppendLasting(b []byte) (lasting []byte, asWritten bool) {
	c := &a.counters
	b = binary.AppendVarint(b, c.fullAt)
	b = binary.AppendUvarint(b, a.epoch)
	for i := range c.each {
		b = c.each[i].appendBinary(b)
	}
	if c.log == nil {
		return b, true
	}
	for _, w := range c.log.windows {
		b = binary.AppendUvarint(b, uint64(w.period))
	}
	return b, c.log.asWritten()
}
