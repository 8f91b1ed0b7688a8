package limit

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Operation is a change of an [Account]. It has a binary form, so that all who replay the same operations at the same
// times have the same account.
type Operation struct {
	Kind   OperationKind
	Limits []Limit

	N int64 // what a take charges

	// A settlement corrects the take that has returned Receipt to the amount Actual.
	Receipt Receipt
	Actual  int64
}

// OperationKind says what an [Operation] does.
type OperationKind byte

const (
	stateOperation OperationKind = iota // the account becomes another one: see AppendState

	TakeOperation   // fits the account to the limits, and charges N to each: all of them must allow it
	SettleOperation // corrects a take: see [Account.Settle]
	FitOperation    // fits the account to the limits and to a clock that went back
)

// Do makes an operation. An account that begins to be used has an epoch that depends on the seed alone, which must be
// another one for each time at which that can happen. Only a take returns a receipt.
func (a *Account) Do(o *Operation, now int64, seed uint64) (r Receipt) {
	a.enter(now)
	wasUsed := a.epoch != 0
	switch o.Kind {
	case TakeOperation:
		a.Fit(o.Limits, now)
		r = a.Take(o.Limits, now, o.N)
	case SettleOperation:
		a.Settle(o.Limits, o.Receipt, now, o.Actual)
	case FitOperation:
		a.Fit(o.Limits, now)
		for _, l := range o.Limits {
			a.Check(l, now, 0)
		}
	}
	if !wasUsed && a.epoch != 0 {
		a.epoch = epochOf(seed)
		r.Epoch = a.epoch
	}
	return r
}

// epochOf returns the epoch of a seed. Different seeds are likely to have different epochs.
func epochOf(seed uint64) uint64 { return (seed*0x9e3779b97f4a7c15 | 1<<63) &^ rewinds }

// Fits reports whether a take under the limits, at now, changes nothing of the account but by its charge: the clock has
// not gone back, no limit takes over what was used of another one, and the sliding log has all windows.
func (a *Account) Fits(limits []Limit, now int64) bool {
	if now >= a.FullAt() {
		return true
	}
	if now < a.seen {
		return false
	}
	log := a.counters.log
	if log != nil && log.next == log.oldest {
		log = nil
	}
	for i := range limits {
		l := &limits[i]
		switch c := a.counters.find(l); {
		case l.algorithm == SlidingLog:
			hasWindow := func(w slidingWindow) bool { return w.period == l.period }
			if log != nil && (now < log.entry(log.next-1).at || !slices.ContainsFunc(log.windows, hasWindow)) {
				return false
			}
		case c != nil && now < c.state.at, c == nil && a.replacedBy(l, limits) != nil:
			return false
		}
	}
	return true
}

// LogUntil returns the time until which an amount counts that is added to the sliding log at a time: it counts in all
// windows of the log.
func (a *Account) LogUntil(at int64) int64 {
	if a.counters.log == nil {
		return at
	}
	return at + a.counters.log.longestPeriod()
}

// Revives reports whether a debt of a take brings back what the take has left in a bucket: the account was forgotten
// before that has drained, or the clock has gone back since.
func (a *Account) Revives(r *Receipt, now int64) bool {
	if r.buckets == nil || r.Epoch&^rewinds == a.epoch&^rewinds {
		return false
	}
	return slices.ContainsFunc(*r.buckets, func(b bucketReceipt) bool { return b.left.NS >= now-r.At })
}

// View returns a copy for decisions at now that take nothing. It is [Account.Fork] for one time, which costs less.
func (a *Account) View(now int64) *Account {
	return a.fork(func(log *history) *history { return log.view(now) })
}

// AppendState appends an operation after which any account is this one.
func (a *Account) AppendState(b []byte) []byte {
	state, _ := a.AppendBinary(nil)
	b = append(b, byte(stateOperation))
	b = binary.AppendUvarint(b, uint64(len(state)))
	return append(b, state...)
}

// AppendOperations appends the binary forms of operations, which never fails. Each is
//
//	its kind
//	the number of its limits and 1, and these; 0 if they are those of the operation before
//	of a take its amount
//	of a settlement the amount, the time and the epoch of its take, the actual amount, and 1 if the take has left anything
//	in buckets; then for each limit the backlog, everything refunded before, and the number of changes
func AppendOperations(b []byte, operations []Operation) []byte {
	for i := range operations {
		o := &operations[i]
		b = append(b, byte(o.Kind))
		if i > 0 && slices.Equal(o.Limits, operations[i-1].Limits) {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(len(o.Limits)+1))
			for _, l := range o.Limits {
				b = l.appendShort(b)
			}
		}
		switch o.Kind {
		case TakeOperation:
			b = binary.AppendUvarint(b, uint64(o.N))
		case SettleOperation:
			b = o.Receipt.appendBinary(b, o.Actual)
		}
	}
	return b
}

// appendShort appends a form of a limit that is shorter than its binary form, because most bursts are the count.
func (l Limit) appendShort(b []byte) []byte {
	b = append(b, byte(l.algorithm), byte(l.windowing))
	b = binary.AppendUvarint(b, uint64(l.count))
	b = binary.AppendUvarint(b, uint64(l.period))
	b = binary.AppendVarint(b, l.burst-l.count)
	if l.windowing == calendar {
		b = binary.AppendUvarint(b, uint64(l.minute))
		b = binary.AppendUvarint(b, uint64(len(l.zone.String())))
		b = append(b, l.zone.String()...)
	}
	return b
}

// shortLimit reads what appendShort has written.
func (r *reader) shortLimit() (l Limit) {
	l.algorithm, l.windowing = Algorithm(r.byte()), windowing(r.byte())
	l.count, l.period = r.amount(maxCount), time.Duration(r.amount(maxPeriod))
	l.burst = l.count + r.varint()
	if l.windowing == calendar {
		l.minute, l.zone = int32(r.amount(mostMinutes)), r.zone()
	}
	return l
}

func (r *Receipt) appendBinary(b []byte, actual int64) []byte {
	b = binary.AppendUvarint(b, uint64(r.N))
	b = binary.AppendVarint(b, r.At)
	b = binary.AppendUvarint(b, r.Epoch)
	b = binary.AppendUvarint(b, uint64(actual))
	if r.buckets == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	for _, each := range *r.buckets {
		for _, v := range []int64{each.left.NS, each.left.Parts, each.refunded.NS, each.refunded.Parts, each.changes} {
			b = binary.AppendVarint(b, v)
		}
	}
	return b
}

// Replay makes operations in their binary form: see [Account.Do]. Other bytes give [ErrCorrupt]; then the account must
// not be used.
func (a *Account) Replay(operations []byte, now int64, seed uint64) error {
	r := reader{rest: operations}
	var o Operation
	for len(r.rest) > 0 {
		if o.Kind = OperationKind(r.byte()); o.Kind == stateOperation {
			if err := a.UnmarshalBinary(r.bytes()); err != nil {
				return err
			}
			continue
		}
		r.operation(&o)
		if r.fault != "" {
			break
		}
		a.Do(&o, now, seed)
	}
	if r.fault != "" {
		return fmt.Errorf("%w: %s", ErrCorrupt, r.fault)
	}
	return nil
}

func (r *reader) bytes() []byte {
	n := r.count(len(r.rest))
	if n > len(r.rest) {
		r.fail("it ends too early")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// mostLimits is more limits than any operation has.
const mostLimits = 1 << 10

// operation reads the rest of an operation. o has the limits of the operation before.
func (r *reader) operation(o *Operation) {
	if n := r.count(mostLimits); n > 0 {
		o.Limits = make([]Limit, 0, min(n-1, len(r.rest)))
		for range n - 1 {
			l := r.shortLimit()
			if r.fault != "" {
				return
			}
			if !l.sane() {
				r.fail("a limit that is not valid")
			}
			o.Limits = append(o.Limits, l)
		}
	}
	switch o.Kind {
	case TakeOperation:
		o.N = r.amount(maxCount)
	case SettleOperation:
		r.settlement(o)
	case FitOperation:
	default:
		r.fail("an operation that is not known")
	}
}

func (r *reader) settlement(o *Operation) {
	o.Receipt = Receipt{N: r.amount(maxCount), At: r.time(), Mark: Mark{Epoch: uint64(r.amount(math.MaxUint64))}}
	o.Actual = r.amount(maxCount)
	if r.byte() == 0 {
		return
	}
	buckets := make([]bucketReceipt, len(o.Limits))
	for i := range buckets {
		each, count := &buckets[i], o.Limits[i].count
		*each = bucketReceipt{backlog{r.varint(), r.varint()}, backlog{r.varint(), r.varint()}, r.varint()}
		inParts := func(b backlog) bool { return b.Parts >= 0 && b.Parts < count }
		if each.left.NS < 0 || each.left.NS > maxCount || !inParts(each.left) || !inParts(each.refunded) {
			r.fail("a receipt that no take can have")
		}
	}
	o.Receipt.buckets = &buckets
}
