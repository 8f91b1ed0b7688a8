package engine

import (
	"net/url"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// mostCounters is how many counters of members are ready at most. The others are made again.
const mostCounters = 4096

// counter returns the scope that counts what a member of the pool uses, in all processes, of limits
// that slide; nil if there are none. Days are so long that it is early enough when processes tell each
// other. Its limits deny nothing. Their keys have the last slash of the divided scope's, so that a store
// asks for both at once.
func (c *claim) counter(e *Engine) (*Scope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.counters[c.member.Name]; s != nil {
		return s, nil
	}
	s := e.newScope(Counter, c.scope.Key+"share:"+url.PathEscape(c.member.Name)+":", "")
	r := &Rules{Most: c.rules.Most, Cut: c.rules.Cut}
	for _, i := range c.limits {
		l := c.rules.Limits[i]
		if l.Limit.Algorithm() == limit.SlidingLog && l.Limit.Period() < 24*time.Hour {
			r.Limits = append(r.Limits, Limit{Unit: l.Unit, Limit: l.Limit.WithCount(Boundless), Free: true, ID: i})
		}
	}
	if len(r.Limits) == 0 {
		return nil, nil
	}
	if err := e.SetRules(s, r); err != nil {
		return nil, err
	}
	if c.counters == nil || len(c.counters) >= mostCounters {
		c.counters = map[string]*Scope{}
	}
	c.counters[c.member.Name] = s
	return s, nil
}

// counted returns what the member has used of the limits that are divided, in all processes.
func (c *claim) counted(o *Outcome, counter *Scope, list []int64) []int64 {
	s := o.Of(counter)
	for _, i := range c.limits {
		n := int64(-1)
		for at := range s.Len() {
			if l, said := s.At(at); l.ID == i {
				n = said.Used
			}
		}
		list = append(list, n)
	}
	return list
}
