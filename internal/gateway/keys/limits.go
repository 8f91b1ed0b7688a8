package keys

import "dappco.re/go/core/go-ratelimit/project"

// FollowLimits calls set with the limits of all keys that have one, by their ids, now and whenever
// some change: a nil limit is one that is gone. A key is found only after its limit was set. It may
// be called once.
func (r *Ring) FollowLimits(set func(map[string]*project.Limit) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onLimits = set
	r.limit(&map[string]*entry{}, *r.entries.Load(), true)
}

// limit reports the limits that differ between two states of the ring: of those that there are
// after the change, or of those that are gone. before may be nil.
func (r *Ring) limit(before *map[string]*entry, after map[string]*entry, there bool) {
	if r.onLimits == nil || before == nil {
		return
	}
	changed := map[string]*project.Limit{}
	for id, e := range after {
		old := (*before)[id]
		if has := e.key.Limit != (project.Limit{}); has && there && (old == nil || old.key.Limit != e.key.Limit) {
			changed[id] = &e.key.Limit
		}
	}
	for id, e := range *before {
		left := after[id]
		if had := e.key.Limit != (project.Limit{}); had && !there && (left == nil || left.key.Limit == project.Limit{}) {
			changed[id] = nil
		}
	}
	if len(changed) > 0 {
		r.missed.Keep(r.onLimits(changed))
	}
}
