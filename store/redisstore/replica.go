package redisstore

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"dappco.re/go/core/go-ratelimit/limit"
)

const (
	version      = 2  // the first byte of an account in Redis: see lua/accounts.lua
	trailerBytes = 40 // of a record
	barrier      = 1 << 50
	fullTotal    = 1 << 52
)

// trailer is the end of a record in Redis: it says when its operations happened, and what the account came to.
type trailer struct {
	at     int64  // when they happened, in Unix nanoseconds
	mark   uint64 // of this record alone
	total  int64  // what was ever charged since the string began
	length int64  // of the string up to here
	due    int64  // the time in Unix milliseconds until which anything of the account may be in use
}

// appendRest appends the trailer without its time.
func (t *trailer) appendRest(w *writer) {
	*w = binary.LittleEndian.AppendUint64(*w, t.mark)
	w.float(t.total)
	w.uint32(uint32(t.length))
	w.float(t.due)
}

func (r *reader) trailer() trailer {
	at, below := r.float(), int64(r.uint32())
	if at < -maxAmount/billion || at >= maxAmount/billion {
		r.err, at = errCorrupt, 0
	}
	return trailer{at*billion + below, binary.LittleEndian.Uint64(r.take(8)), r.float(), int64(r.uint32()), r.float()}
}

// replica is an account in Redis as this node knows it. All nodes that have read the same bytes have the same account.
type replica struct {
	key     string
	account limit.Account
	known   string // the trailer up to which the account includes everything; "" if there is nothing, as far as is known
	last    trailer
	base    int64 // the length of the string when it began
	foreign bool  // what Redis has was no account
	foldAt  int64 // the string is written anew when it has so many bytes beside those with which it began, or more

	listed *list.Element // among the replicas that are kept; nil if it is not
	size   int64
}

// forget makes the replica that of an account of which nothing is known.
func (r *replica) forget() {
	r.account, r.known, r.last, r.base = limit.Account{}, "", trailer{}, 0
}

// read replays what the string has after what is known, or all of it. It calls own for the record with a mark, in place
// of replaying that.
func (r *replica) read(text []byte, all bool, mark uint64, own func(at int64) error) error {
	if all {
		r.forget()
		if len(text) > 0 && text[0] != version {
			return errCorrupt
		}
		text = text[min(1, len(text)):]
	}
	for from := (reader{rest: text}); len(from.rest) > 0; {
		operations := from.bytes()
		known := from.rest[:min(trailerBytes, len(from.rest))]
		last := from.trailer()
		length := max(r.last.length, 1) + 4 + int64(len(operations)) + trailerBytes
		if from.err != nil || last.length != length {
			return errCorrupt
		}
		var err error
		if last.mark == mark {
			err = own(last.at)
		} else {
			err = r.account.Replay(operations, last.at, last.mark)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errCorrupt, err)
		}
		r.advance(string(known), last)
	}
	return nil
}

// expiresEarly reports whether the key expires before the account is full. So it does if something is charged by a node
// that did not know under which limits it counts.
func (r *replica) expiresEarly() bool {
	return r.known != "" && r.last.due*1_000_000 < r.account.FullAt()
}

// advance notes up to where the account includes everything.
func (r *replica) advance(known string, last trailer) {
	if r.known == "" {
		r.base = last.length
	}
	r.known, r.last = known, last
}

const foldAt = 8192

// isLong reports whether the string should be written anew, with the account in place of the operations.
func (r *replica) isLong() bool {
	return r.known != "" && (r.last.total > fullTotal || r.last.length-r.base > max(2*r.base, r.foldAt))
}

// isTooLong reports whether the string must be written anew before anything else is taken: it has become long, and those who
// would have written it anew did not know what others had appended.
func (r *replica) isTooLong() bool { return r.last.length-r.base > 4*max(2*r.base, r.foldAt) }

// maxReplicaBytes is how many bytes of strings a node knows by heart, with replicaBytes for each key.
const (
	maxReplicaBytes = 64 << 20
	replicaBytes    = 1024
)

// replicas are the replicas that a node keeps: those that were used last.
type replicas struct {
	mu    sync.Mutex
	byKey map[string]*replica
	order list.List // the replica that was used last is in front
	size  int64
	most  int64

	foldAt int64 // of each
}

func newReplicas(most int64) *replicas {
	return &replicas{byKey: map[string]*replica{}, most: most, foldAt: foldAt}
}

// of returns the replica of a key. If there is none, it makes one, and keeps it if keep is set. used is how many replicas
// are used together with it.
func (s *replicas) of(key string, keep bool, used int) *replica {
	r := s.byKey[key]
	switch {
	case r != nil:
		s.order.MoveToFront(r.listed)
	case keep:
		r = &replica{key: strings.Clone(key), foldAt: s.foldAt}
		s.byKey[r.key], r.listed = r, s.order.PushFront(r)
		s.resize(r, used) // there may be no answer that says how long the string is
	default:
		r = &replica{key: key, foldAt: s.foldAt}
	}
	return r
}

// resize notes that the string of a replica has another length, and drops replicas that were not used for long, but none of
// the last ones that were used: otherwise a node that uses more accounts in one call than it keeps would never know all of
// them at once.
func (s *replicas) resize(r *replica, used int) {
	if r.listed == nil {
		return
	}
	s.size += replicaBytes + r.last.length - r.size
	r.size = replicaBytes + r.last.length
	for s.size > s.most && s.order.Len() > used {
		oldest := s.order.Back().Value.(*replica)
		s.order.Remove(oldest.listed)
		delete(s.byKey, oldest.key)
		oldest.listed, s.size = nil, s.size-oldest.size
	}
}
