package gateway

import (
	"cmp"
	"slices"
	"sync"
)

// recent keeps the last requests: those that were admitted, and those that were not, so that many
// denials do not push out the calls that have caused them. Requests of nobody, without a valid key or with
// an address that leads nowhere, are apart from both, so that strangers push out nothing of others. Its
// methods may be called concurrently.
type recent struct {
	mu    sync.Mutex
	last  uint64 // the Seq of the latest request
	rings [3]ring
}

// The rings of requests.
const (
	ofAdmitted = iota
	ofDenied
	ofStrangers
)

// ringOf returns the index of the ring that a request belongs to.
func ringOf(rec *Record) int {
	switch {
	case rec.Outcome.admitted():
		return ofAdmitted
	case rec.Project == "":
		return ofStrangers
	}
	return ofDenied
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
	r := &recent{}
	for i := range r.rings {
		r.rings[i].entries = make([]entry, size)
	}
	return r
}

// add numbers a request by the time of its end, so that the requests of several gateways have one order, and replaces
// the oldest of its kind with a copy of it. It keeps what the limits have answered, and returns what is not kept any
// more.
func (r *recent) add(rec *Record, a *answers) (old *answers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last+1, uint64(max(rec.Time.Add(rec.Took).UnixMicro(), 0)))
	rec.Seq = r.last
	of := &r.rings[ringOf(rec)]
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

// after returns the first n requests after a sequence number that match a filter, oldest first.
func (r *recent) after(f *Filter, seq uint64, n int) (found []Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*entry
	for i := range r.rings {
		all = append(all, r.rings[i].since(seq)...)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range all {
		if len(found) >= n {
			break
		}
		if f.Match(&e.Record) {
			found = append(found, e.Record)
		}
	}
	return found
}

// find returns the request with an id, and a copy of what the limits have answered to it.
func (r *recent) find(id string) (rec Record, a *answers, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.rings {
		for j := range r.rings[i].entries {
			if e := &r.rings[i].entries[j]; e.Seq > 0 && e.ID == id {
				return e.Record, e.answers.clone(), true
			}
		}
	}
	return Record{}, nil, false
}
