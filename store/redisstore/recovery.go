package redisstore

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// recovery is the time from the loss of Redis until all nodes have charged it for what they admitted
// without it. A node that reaches Redis first finds little used there, because the others have not charged
// their shares yet. So until it has recovered, a node admits what both Redis and the node's own share
// admit.
//
// A node has recovered when every other node that it knew of before the loss has announced, after this
// node's first announcement since, that it is ready; or after ten seconds.
type recovery struct {
	groups atomic.Uint64 // the groups of the keyspace that recover, one bit for each

	mu      sync.Mutex
	known   []string  // the other nodes, as of the last announcement without a recovery
	awaited []string  // the other nodes that are not ready yet
	isBack  bool      // Redis can be asked again
	since   int64     // the time of this node's first announcement after that, in milliseconds; zero before it
	until   time.Time // the end of the wait
	backs   int       // how often Redis was back

	ended func() // is called when a recovery ends, with mu locked; may be nil
}

// of reports whether a group recovers, or is lost.
func (r *recovery) of(group int) bool { return r.groups.Load()&(1<<group) != 0 }

func (r *recovery) underWay() bool { return r.groups.Load() != 0 }

// begin begins the recovery of a group that is lost.
func (r *recovery) begin(group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups.Or(1 << group)
	r.isBack = false
}

// back says that Redis can be asked again.
func (r *recovery) back(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isBack, r.since, r.until = true, 0, until
	r.backs++
	r.awaited = slices.Clone(r.known)
	if len(r.awaited) == 0 {
		r.end()
	}
}

// attempt must be called before an announcement is sent. What it returns is for observe.
func (r *recovery) attempt() (backs int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backs
}

// observe records the announcements of all nodes, in the answer to an announcement of this node. It
// reports whether there is no recovery, so that the number of nodes counts.
func (r *recovery) observe(id string, all []announced, attempt int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.underWay() && r.isBack && attempt == r.backs {
		r.strike(id, all)
	}
	if r.underWay() {
		return false
	}
	r.known = r.known[:0]
	for _, a := range all {
		if a.id != id {
			r.known = append(r.known, a.id)
		}
	}
	return true
}

// strike strikes the nodes off that are ready, and ends the recovery if no other is left or the wait is
// over. An announcement of another node counts if it is later than this node's first one: an earlier one
// may have been under way since before the loss.
func (r *recovery) strike(id string, all []announced) {
	for _, a := range all {
		if a.id == id && r.since == 0 {
			r.since = a.at
		}
	}
	r.awaited = slices.DeleteFunc(r.awaited, func(other string) bool {
		return slices.ContainsFunc(all, func(a announced) bool {
			return a.id == other && a.ready && r.since > 0 && a.at > r.since
		})
	})
	if len(r.awaited) == 0 || time.Now().After(r.until) {
		r.end()
	}
}

func (r *recovery) end() {
	r.groups.Store(0)
	r.awaited = nil
	if r.ended != nil {
		r.ended()
	}
}
