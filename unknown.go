package ratelimit

import (
	"math"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/modelname"
)

// unknownModels is the models without a quota whose usage is counted. Clients may invent any
// number of names, so only mostUnknown of them are counted. A new name never replaces one that
// is counted already: another program on the same store may have a quota for that one.
type unknownModels struct {
	mu    sync.Mutex
	until map[string]int64 // when the name may go, in Unix nanoseconds: its first usage counts no longer
	none  int64            // no name may go before this time
}

const (
	mostUnknown = 1000                       // how many models without a quota are counted
	unknownStay = 24*time.Hour + time.Minute // how long a name is counted after it was first used
)

// admit reports whether the usage of a model without a quota is counted. A new name is added if
// there is room.
func (n *unknownModels) admit(name string, now int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now < n.until[name] {
		return true
	}
	if len(n.until) >= mostUnknown && now >= n.none {
		n.prune(now)
	}
	if len(n.until) >= mostUnknown {
		return false
	}
	if n.until == nil {
		n.until = map[string]int64{}
	}
	n.until[name] = now + int64(unknownStay)
	n.none = min(n.none, n.until[name])
	return true
}

// prune removes the names that may go.
func (n *unknownModels) prune(now int64) {
	n.none = math.MaxInt64
	for name, until := range n.until {
		if until <= now {
			delete(n.until, name)
		} else {
			n.none = min(n.none, until)
		}
	}
}

// forget removes a name whose usage was reset.
func (n *unknownModels) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.until, name)
}

// counts reports whether the usage of a model is counted. Models with a quota always are.
func (rl *RateLimiter) counts(name string) bool {
	return (*rl.quotas.Load())[name] != nil || modelname.Check(name) == nil && rl.unknown.admit(name, rl.engine.Now())
}
