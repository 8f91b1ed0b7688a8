package gateway

import (
	"strings"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// maxCachedModels bounds a modelCache, since clients may invent any number of names. A full
// cache is emptied, and the names in use enter it again.
const maxCachedModels = 1024

// modelCache caches the models that names stand for. To find the model of a name by all rules
// takes longer than reading the rest of a request.
type modelCache struct {
	models sync.Map // from string to *cachedModel
	size   atomic.Int64
}

type cachedModel struct {
	config.Model
	known bool
}

// Find is [config.Upstream.Find], with a cache.
func (u *upstream) Find(name string) (config.Model, bool) {
	if cached, ok := u.cache.models.Load(name); ok {
		c := cached.(*cachedModel)
		return c.Model, c.known
	}
	m, known := u.Upstream.Find(name)
	if u.cache.size.Add(1) > maxCachedModels {
		u.cache.models.Clear()
		u.cache.size.Store(1)
	}
	u.cache.models.Store(strings.Clone(name), &cachedModel{m, known})
	return m, known
}
