package gateway

import (
	"strings"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// mostFound is how many names of models are remembered of a provider. Clients may invent
// any number of them; then all are forgotten, so that those in use are remembered again.
const mostFound = 1024

// found remembers which models the names that clients use stand for: to compare a name
// with all models by all rules takes longer than the rest of a request's reading.
type found struct {
	names sync.Map // of string to foundModel
	n     atomic.Int64
}

type foundModel struct {
	config.Model
	known bool
}

// Find is [config.Provider.Find].
func (u *upstream) Find(name string) (config.Model, bool) {
	if f, ok := u.found.names.Load(name); ok {
		f := f.(*foundModel)
		return f.Model, f.known
	}
	m, known := u.Provider.Find(name)
	if u.found.n.Add(1) > mostFound {
		u.found.names.Clear()
		u.found.n.Store(1)
	}
	u.found.names.Store(strings.Clone(name), &foundModel{m, known})
	return m, known
}
