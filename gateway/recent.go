package gateway

import (
	"slices"
	"sync"
)

// recent keeps the last requests: those that were admitted, and those that were not, so that many
// denials do not push out the calls that have caused them. Its methods may be called concurrently.
type recent struct {
	mu       sync.Mutex
	last     uint64 // the Seq of the latest request; the first has 1
	admitted ring
	denied   ring
}

// ring is the last requests of one kind, with growing Seqs.
type ring struct {
	entries []entry
	count   uint64 // how many were added so far: the n-th, from 0, is at index n modulo the length
}

// entry is a request, and what the limits have answered to it.
type entry struct {
	Record
	answers *answers // nil: no limit was asked
}

// newRecent returns rings of a size each.
func newRecent(size int) *recent {
	return &recent{admitted: ring{entries: make([]entry, size)}, denied: ring{entries: make([]entry, size)}}
}

// add numbers a request, and replaces the oldest of its kind with a copy of it. It keeps what the
// limits have answered, and returns what is not kept any more.
func (r *recent) add(rec *Record, a *answers) (old *answers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	rec.Seq = r.last
	of := &r.admitted
	if !rec.Outcome.admitted() {
		of = &r.denied
	}
	e := of.at(of.count)
	of.count++
	old, e.answers, e.Record = e.answers, a, *rec
	return old
}

func (r *ring) at(n uint64) *entry { return &r.entries[n%uint64(len(r.entries))] }

// since returns the entries whose Seqs are above a number, oldest first. They are those of the ring,
// and not copies.
func (r *ring) since(seq uint64) []*entry {
	size := uint64(len(r.entries))
	first := r.count - min(r.count, size)
	var list []*entry
	for n := r.count; n > first && r.at(n-1).Seq > seq; n-- {
		list = append(list, r.at(n-1))
	}
	slices.Reverse(list)
	return list
}

// after returns the first n requests after a sequence number that match a filter, oldest first. A number
// above the last is from another run of the gateway, and all requests follow it.
func (r *recent) after(f *Filter, seq uint64, n int) (found []Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq > r.last {
		seq = 0
	}
	a, b := r.admitted.since(seq), r.denied.since(seq)
	for len(a)+len(b) > 0 && len(found) < n {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].Seq < a[0].Seq {
			from = &b
		}
		if rec := &(*from)[0].Record; f.Match(rec) {
			found = append(found, *rec)
		}
		*from = (*from)[1:]
	}
	return found
}

// find returns the request with an id, and a copy of what the limits have answered to it.
func (r *recent) find(id string) (rec Record, a *answers, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range []*ring{&r.denied, &r.admitted} {
		for i := range of.entries {
			if e := &of.entries[i]; e.Seq > 0 && e.ID == id {
				return e.Record, e.answers.clone(), true
			}
		}
	}
	return Record{}, nil, false
}
