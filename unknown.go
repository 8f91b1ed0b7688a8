package ratelimit

import (
	"maps"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/modelname"
)

// unknownModels is the models without a quota that are counted. Clients may invent any number
// of names, so those beyond mostUnknown are not counted: nothing limits them. What is
// counted already is never forgotten for a newcomer, because the store is shared, and
// another program may have a quota for the name.
type unknownModels struct {
	mu    sync.Mutex
	until map[string]int64 // Unix nanoseconds: a day after the name came, when all that counted then is over
}

const (
	mostUnknown  = 1000 // models without a quota that are counted
	unknownCount = 24*time.Hour + time.Minute
)

// admit reports whether a model without a quota is counted, and makes it so if there is
// room.
func (n *unknownModels) admit(name string, now int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now < n.until[name] {
		return true
	}
	if len(n.until) >= mostUnknown {
		maps.DeleteFunc(n.until, func(_ string, until int64) bool { return until <= now })
	}
	if len(n.until) >= mostUnknown {
		return false
	}
	if n.until == nil {
		n.until = map[string]int64{}
	}
	n.until[name] = now + int64(unknownCount)
	return true
}

// forget makes room: nothing is used of a model any more.
func (n *unknownModels) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.until, name)
}

// counts reports whether what is used of a model is counted: models with a quota always
// are.
func (rl *RateLimiter) counts(name string) bool {
	return (*rl.quotas.Load())[name] != nil || modelname.Check(name) == nil && rl.unknown.admit(name, rl.engine.Now())
}
