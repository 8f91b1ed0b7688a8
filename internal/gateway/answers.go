package gateway

import (
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// answers is what the limits have answered to a request. It is copied as it is: what it means is worked
// out when an operator asks.
type answers struct {
	at     time.Time // when they were asked last
	limits ratelimit.Asked
}

// answersPool has memory of requests that are not kept any more.
var answersPool = sync.Pool{New: func() any { return new(answers) }}

// newAnswers returns room for the answers to a request.
func newAnswers() *answers {
	a := answersPool.Get().(*answers)
	a.limits.Forget()
	return a
}

// free returns the memory to the pool, for another request. a may be nil.
func (a *answers) free() {
	if a != nil {
		answersPool.Put(a)
	}
}

func (a *answers) clone() *answers {
	if a == nil {
		return nil
	}
	return &answers{a.at, *a.limits.Clone()}
}

// all returns what each limit has answered.
func (a *answers) all() []ratelimit.LimitAnswer {
	if a == nil {
		return nil
	}
	return a.limits.Limits()
}

// Explained is one of the last requests, with what each limit has answered to it.
type Explained struct {
	Record
	At      time.Time // when the limits were asked
	Limits  []ratelimit.LimitAnswer
	MaxWait time.Duration // how long calls of the project may wait by now
}

// Explain returns one of the last requests by its id, unless it is not kept any more.
func (g *Gateway) Explain(id string) (e Explained, ok bool) {
	rec, a, ok := g.recent.find(id)
	if !ok {
		return e, false
	}
	e = Explained{Record: rec, Limits: a.all()}
	if rec.Project != "" {
		e.MaxWait = g.Terms(rec.path()).MaxWait
	}
	if a != nil {
		e.At = a.at
	}
	return e, true
}
