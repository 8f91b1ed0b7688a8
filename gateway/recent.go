package gateway

import "sync"

// recent keeps the last requests. Its methods may be called concurrently.
type recent struct {
	mu   sync.Mutex
	last uint64   // the Seq of the latest request; the first has 1
	ring []Record // the request with Seq n is at index n modulo the length
}

func newRecent(size int) *recent { return &recent{ring: make([]Record, size)} }

// add numbers a request, and replaces the oldest with a copy of it.
func (r *recent) add(rec *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	rec.Seq = r.last
	r.ring[r.last%uint64(len(r.ring))] = *rec
}

// after returns the first n requests after a sequence number, oldest first. If project is not
// empty, it returns only the requests of the project and of those inside of it. A number above the last is from another run
// of the gateway, and all requests follow it.
func (r *recent) after(project string, seq uint64, n int) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.ring))
	if seq > r.last {
		seq = 0
	}
	if r.last > size {
		seq = max(seq, r.last-size)
	}
	var found []Record
	for seq < r.last && len(found) < n {
		seq++
		rec := &r.ring[seq%size]
		if project == "" || rec.isOf(project) {
			found = append(found, *rec)
		}
	}
	return found
}
