package engine

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
)

// QueueTime is for how long a batch counts as enqueued whose end nobody has seen. No large provider has a batch waiting for
// longer: most of them end it after a day, and Gemini after two.
const QueueTime = 48 * time.Hour

// Enqueued returns a limit of n on the tokens that batches have enqueued at a time.
func Enqueued(n int64) limit.Limit { return limit.New(n, QueueTime).Using(limit.SlidingLog) }

// SetQueue limits the prompt tokens that the batches of a model may have enqueued at a time; 0 is no limit. key begins the
// keys of the model's counters.
func (e *Engine) SetQueue(model, key string, most int64) error {
	s := e.Queue(model)
	switch {
	case s == nil && most == 0:
		return nil
	case s == nil:
		s = e.NewOwn(key, "model "+model)
	}
	rules := new(Rules)
	if most > 0 {
		k := kind.MaxEnqueuedTokens
		w := decision.NewWindow(k, Enqueued(most), false)
		rules.Limits = []Limit{{Name: k.Name(), Unit: k.Unit(), Limit: Enqueued(most), Window: &w}}
	}
	if err := e.SetRules(s, rules); err != nil {
		return err
	}
	e.queues.Store(model, s)
	return nil
}

// Queue returns the scope whose limit counts what the batches of a model have enqueued, or nil if there is none. A batch
// takes from it when it is submitted, and gives all of it back when it is settled.
func (e *Engine) Queue(model string) *Scope {
	s, _ := e.queues.Load(model)
	scope, _ := s.(*Scope)
	return scope
}
