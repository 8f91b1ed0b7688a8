package gateway

import "sync"

// recent is the last requests. Its methods may be called at a time.
type recent struct {
	mu   sync.Mutex
	last uint64   // Seq of the latest; the first has 1
	ring []Record // the one of Seq n is at n modulo its length
}

func newRecent(size int) *recent { return &recent{ring: make([]Record, size)} }

// add numbers a request, and keeps a copy of it in place of the oldest.
func (r *recent) add(rec *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	rec.Seq = r.last
	r.ring[r.last%uint64(len(r.ring))] = *rec
}

// after returns the first n that follow a sequence number, oldest first: of one
// project, unless that is empty. A number that none has had yet is one of another run,
// and all follow it.
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
		if project == "" || rec.Project == project {
			found = append(found, *rec)
		}
	}
	return found
}
