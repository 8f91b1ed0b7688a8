package main

import (
	"sync"

	xrate "golang.org/x/time/rate"
)

// recipes are what people write when they need x/time/rate for many keys. Neither ever forgets one.
func recipes() []contestant {
	return []contestant{
		{name: "map of x/time/rate, RWMutex", kind: peer, keyed: true, retains: "the key", build: rwMutexRecipe},
		{name: "sync.Map of x/time/rate", kind: peer, keyed: true, retains: "the key", build: syncMapRecipe},
	}
}

func rwMutexRecipe(q quota) instance {
	m := rwMutexMap{quota: q, limiters: make(map[string]*xrate.Limiter)}
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if m.limiter(key).Allow() {
				n++
			}
		}
		return n
	}}
}

type rwMutexMap struct {
	quota    quota
	mu       sync.RWMutex
	limiters map[string]*xrate.Limiter
}

func (m *rwMutexMap) limiter(key string) *xrate.Limiter {
	m.mu.RLock()
	l, ok := m.limiters[key]
	m.mu.RUnlock()
	if ok {
		return l
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.limiters[key]; ok {
		return l
	}
	l = xrate.NewLimiter(xrate.Limit(m.quota.perSecond()), int(m.quota.count))
	m.limiters[key] = l
	return l
}

func syncMapRecipe(q quota) instance {
	m := syncMap{quota: q}
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if m.limiter(key).Allow() {
				n++
			}
		}
		return n
	}}
}

type syncMap struct {
	quota    quota
	limiters sync.Map // string to *xrate.Limiter
}

func (m *syncMap) limiter(key string) *xrate.Limiter {
	if l, ok := m.limiters.Load(key); ok {
		return l.(*xrate.Limiter)
	}
	l, _ := m.limiters.LoadOrStore(key, xrate.NewLimiter(xrate.Limit(m.quota.perSecond()), int(m.quota.count)))
	return l.(*xrate.Limiter)
}
