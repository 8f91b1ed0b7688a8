package admit

import (
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Policies caches the values of RateLimit-Policy. Projects with the same limits share one value.
// Of two values with the same index in the cache, it keeps the last.
type Policies struct {
	cache [1 << cacheBits]atomic.Pointer[policy]
}

const cacheBits = 8

// policy is the part of the headers that all responses with the same windows have.
type policy struct {
	limit   limit.Limit // the limit of a plain limiter; zero for windows of projects
	windows []*project.Window
	owners  []string // of the windows; empty for the call's own project, whatever its name

	// value is the value of RateLimit-Policy. Many responses share the slice. It has no
	// spare capacity, so appending to a response's header copies it.
	value []string
}

// find returns the policy of some windows, for calls of the project own.
func (p *Policies) find(windows []project.Standing, own string) *policy {
	entry := &p.cache[cacheIndex(windows)]
	cached := entry.Load()
	if cached == nil || !cached.matches(windows, own) {
		cached = newPolicy(windows, own)
		entry.Store(cached)
	}
	return cached
}

func newPolicy(windows []project.Standing, own string) *policy {
	p := &policy{}
	var value []byte
	for _, s := range windows {
		p.windows, p.owners = append(p.windows, s.Window), append(p.owners, others(s.Owner, own))
		value = appendPolicy(value, own, &s)
	}
	p.value = []string{string(value)}
	return p
}

// others returns the owner of a window, or nothing for the call's own project.
func others(owner, own string) string {
	if owner == own {
		return ""
	}
	return owner
}

func (p *policy) matches(windows []project.Standing, own string) bool {
	if len(p.windows) != len(windows) {
		return false
	}
	for i, at := range p.windows {
		if w := windows[i].Window; w != at && *w != *at || p.owners[i] != others(windows[i].Owner, own) {
			return false
		}
	}
	return true
}

// cacheIndex returns the index of a set of windows in the cache, by a hash of their counts and
// periods.
func cacheIndex(windows []project.Standing) uint64 {
	var hash uint64
	for i := range windows {
		hash = mix(hash, windows[i].Window.Count, windows[i].Window.Period)
	}
	return hash >> (64 - cacheBits)
}

func mix(hash uint64, count int64, period time.Duration) uint64 {
	return (hash ^ uint64(count) ^ uint64(period)) * 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
}
