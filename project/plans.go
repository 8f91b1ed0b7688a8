package project

import (
	"hash/maphash"
	"maps"
	"strings"
	"sync/atomic"
)

// plans is the plans of the projects that have one of their own. Reading takes no
// lock. Its maps are replaced, never changed: there are many, so that setting one
// plan among many copies few.
type plans struct {
	seed      maphash.Seed
	count     atomic.Int64
	templates [MaxNames + 1]atomic.Int64 // how many of the plans are of templates, by their number of names
	shards    [256]atomic.Pointer[map[string]*plan]
}

func newPlans() *plans { return &plans{seed: maphash.MakeSeed()} }

func (p *plans) shard(id string) *atomic.Pointer[map[string]*plan] {
	return &p.shards[maphash.String(p.seed, id)%uint64(len(p.shards))]
}

// of returns the plan of a project, or nil.
func (p *plans) of(id string) *plan {
	if p.count.Load() == 0 {
		return nil
	}
	if m := p.shard(id).Load(); m != nil {
		return (*m)[id]
	}
	return nil
}

// set sets the plans of projects, or takes back those that are nil. One caller at a
// time may.
func (p *plans) set(some map[string]*plan) {
	changed := map[*atomic.Pointer[map[string]*plan]]map[string]*plan{}
	var more int64
	var moreTemplates [MaxNames + 1]int64
	for id, to := range some {
		shard := p.shard(id)
		next := changed[shard]
		if next == nil {
			next = map[string]*plan{}
			if m := shard.Load(); m != nil {
				next = maps.Clone(*m)
			}
			changed[shard] = next
		}
		before := len(next)
		delete(next, id)
		if to != nil {
			next[id] = to
		}
		more += int64(len(next) - before)
		if IsTemplate(id) {
			moreTemplates[namesOf(id)] += int64(len(next) - before)
		}
	}
	p.count.Add(max(more, 0)) // before there are more, so that none is missed
	for names, more := range moreTemplates {
		p.templates[names].Add(max(more, 0))
	}
	for shard, next := range changed {
		shard.Store(&next)
	}
	p.count.Add(min(more, 0))
	for names, more := range moreTemplates {
		p.templates[names].Add(min(more, 0))
	}
}

// namesOf returns how many names a path has, or MaxNames if it has more.
func namesOf(path string) int { return min(strings.Count(path, "/")+1, MaxNames) }

// ids yields the ids of all plans.
func (p *plans) ids(yield func(string) bool) {
	for i := range p.shards {
		if m := p.shards[i].Load(); m != nil {
			for id := range *m {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// limits returns the limits of all plans.
func (p *plans) limits() map[string]Limit {
	all := map[string]Limit{}
	for i := range p.shards {
		if m := p.shards[i].Load(); m != nil {
			for id, each := range *m {
				all[id] = each.limit
			}
		}
	}
	return all
}
