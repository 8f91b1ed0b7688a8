package gateway

import (
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
)

// providersWord keeps what providers have last reported of their limits, by the names of quotas. Only
// models with a quota are in it, which operators have named, so its size is bounded.
type providersWord struct {
	mu   sync.RWMutex
	last map[string]*saidLimits
}

// saidLimits is what the provider of a model has last reported of each of its limits.
type saidLimits struct {
	mu   sync.Mutex
	said [kind.Models]SaidLimit
}

// SaidLimit is what a provider has reported of one of its limits, and what the gateway had counted when
// it admitted the call that the provider has answered with it.
type SaidLimit struct {
	Name      string    // as quotas name the limit: "max_rpm"
	Limit     int64     // 0 if the provider does not say
	Remaining int64     // -1 if the provider does not say
	Used      int       // by the gateway's count, that call included
	At        time.Time // zero: the provider has reported nothing
}

// keepSaid keeps what the provider reports of its limits in an answer, if it concerns all callers.
func (x *exchange) keepSaid(said llm.Limits) {
	if x.call.Applies != nil {
		said = x.call.Applies(said)
	}
	if len(said.Windows) == 0 {
		return
	}
	if to := x.g.said.of(x.Quota, x.g.limits.Models); to != nil {
		to.keep(said.Windows, &x.decision.Stats, time.Now())
	}
}

// of returns where the word on a model is kept, or nil if the model has no quota.
func (w *providersWord) of(quota string, models *ratelimit.RateLimiter) *saidLimits {
	w.mu.RLock()
	to := w.last[quota]
	w.mu.RUnlock()
	if to != nil {
		return to
	}
	if _, ok := models.Quota(quota); !ok {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last[quota] == nil {
		if w.last == nil {
			w.last = map[string]*saidLimits{}
		}
		w.last[quota] = new(saidLimits)
	}
	return w.last[quota]
}

func (s *saidLimits) keep(windows []llm.Window, used *ratelimit.ModelStats, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range windows {
		if k, ok := kind.Reported(string(w.Unit), w.Per); ok {
			s.said[k] = SaidLimit{k.Name(), w.Limit, w.Remaining, used.Of(k.Name()).Used, now}
		}
	}
}

// Said returns what the provider of a model has last reported of its limits.
func (g *Gateway) Said(quota string) (list []SaidLimit) {
	g.said.mu.RLock()
	of := g.said.last[quota]
	g.said.mu.RUnlock()
	if of == nil {
		return nil
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	for _, s := range of.said {
		if !s.At.IsZero() {
			list = append(list, s)
		}
	}
	return list
}
