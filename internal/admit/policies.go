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

	// value is the value of RateLimit-Policy. Many responses share the slice. It has no
	// spare capacity, so appending to a response's header copies it.
	value []string
}

// find returns the policy of some windows.
func (p *Policies) find(windows []project.Standing) *policy {
	entry := &p.cache[cacheIndex(windows)]
	cached := entry.Load()
	if cached == nil || !cached.matches(windows) {
		cached = newPolicy(windows)
		entry.Store(cached)
	}
	return cached
}

func newPolicy(windows []project.Standing) *policy {
	p := &policy{}
	var value []byte
	for _, s := range windows {
		p.windows = append(p.windows, s.Window)
		value = appendPolicy(value, s.Window)
	}
	p.value = []string{string(value)}
	return p
}

func (p *policy) matches(windows []project.Standing) bool {
	if len(p.windows) != len(windows) {
		return false
	}
	for i, own := range p.windows {
		if w := windows[i].Window; w != own && *w != *own {
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
