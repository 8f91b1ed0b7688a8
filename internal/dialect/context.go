package dialect

import (
	"cmp"
	"hash/maphash"
	"sync"

	"dappco.re/go/core/go-ratelimit/llm"
)

// storedContext reads the id of a stored context: a string, or the member id of an object.
func (r *requestReader) storedContext(f *field) {
	if !f.isOf(r.protocol) {
		r.skip()
		return
	}
	r.fixedContext = r.context == "" && f.fixed
	if r.next() != '{' {
		r.context = cmp.Or(r.name(), r.context)
		return
	}
	r.at++
	for first := true; r.item(first, '}'); first = false {
		if string(r.key()) == "id" {
			r.context = cmp.Or(r.name(), r.context)
		} else {
			r.skip()
		}
	}
}

// contextCache keeps how many tokens the stored contexts have that calls may continue. Their ids come
// from requests and responses, so their number is bounded: it keeps at most 8,192 contexts, those of
// the last calls, and none of the ids.
type contextCache struct {
	mu         sync.Mutex
	young, old map[uint64]int
}

const contextGeneration = 4096 // the most contexts of one generation: see [shard]

// contextKey names a stored context. What a project's calls teach of a context holds for that
// project alone.
type contextKey struct {
	provider    llm.Provider
	project, id string
}

// contextKeyOf returns the key of a context. Of a long id only the beginning counts, because a Meter
// keeps no more of it.
func contextKeyOf(p llm.Provider, project, id string) contextKey {
	return contextKey{p, project, id[:min(len(id), maxWord)]}
}

// tokens returns how many tokens a context has, or 0 if that is not known. It is negative if the context may have more.
func (c *contextCache) tokens(key contextKey) int {
	hash := maphash.Comparable(ownerSeed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, known := c.young[hash]; known {
		return n
	}
	n, known := c.old[hash]
	if known {
		c.keep(hash, n)
	}
	return n
}

// set records how many tokens a context has.
func (c *contextCache) set(key contextKey, tokens int) {
	hash := maphash.Comparable(ownerSeed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(hash, tokens)
}

// keep puts a context among the young ones.
func (c *contextCache) keep(hash uint64, tokens int) {
	if len(c.young) >= contextGeneration {
		c.young, c.old = c.old, c.young
		clear(c.young)
	}
	if c.young == nil {
		c.young = make(map[uint64]int)
	}
	c.young[hash] = tokens
}
