package fair

import "sync/atomic"

// Dedicated is the members that have their minimum in every pool that follows it, even if they
// have never called. The zero Dedicated has none.
type Dedicated struct {
	terms atomic.Pointer[map[string]Terms] // replaced, never changed
}

// Set replaces all dedicated members.
func (d *Dedicated) Set(terms map[string]Terms) { d.terms.Store(&terms) }

func (d *Dedicated) empty() bool {
	terms := d.terms.Load()
	return terms == nil || len(*terms) == 0
}

// Follow gives the pool dedicated members. It is called before any other method.
func (p *Pool) Follow(d *Dedicated) { p.dedicated = d }

// dedicate marks exactly these members as dedicated.
func (p *Pool) dedicate(now int64) {
	p.seen = p.dedicated.terms.Load()
	for _, m := range p.members {
		m.dedicated = false
	}
	for name, t := range *p.seen {
		p.member(&Who{Name: name}, t, now).dedicated = true
	}
	p.disturb()
}
