package mockprovider

import (
	"maps"
	"sync"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Totals counts the requests and the tokens of a model.
type Totals struct {
	Requests int // requests with an answer, or a part of one
	Refused  int // requests with an error

	Input      int // tokens of prompts, cached ones included
	Cached     int // a part of Input
	CacheWrite int // a part of Input
	Output     int // tokens that were sent, reasoning included
	Reasoning  int // a part of Output

	Units llm.Units // what is billed beside tokens
}

// ledger keeps the totals of models.
type ledger struct {
	mu     sync.Mutex
	models map[string]Totals
	calls  map[string]int
}

// number returns the number of the next call of a model.
func (l *ledger) number(model string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[model]++
	return l.calls[model]
}

func (l *ledger) add(model string, more Totals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.models[model]
	t.Requests += more.Requests
	t.Refused += more.Refused
	t.Input += more.Input
	t.Cached += more.Cached
	t.CacheWrite += more.CacheWrite
	t.Output += more.Output
	t.Reasoning += more.Reasoning
	for i, n := range more.Units {
		t.Units[i] += n
	}
	l.models[model] = t
}

// Totals returns the totals of all models, by name.
func (s *Server) Totals() map[string]Totals {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return maps.Clone(s.ledger.models)
}
