package engine

import (
	"cmp"
	"maps"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/fair"
)

// member is whom calls count for where limits are divided: the calls of a scope or, if they are made with a key, those
// of the scope with that key. The keys of a project share what the project has, and the users of each key share what the
// key has: so no key takes the part of another by inventing users.
type member struct {
	fair.Who
	scope *Scope
	isKey bool // it is the calls of the key's project itself: one of weight 1 among the project's keys
}

// terms returns what the member was promised.
func (m *member) terms() fair.Terms {
	if m.isKey {
		return fair.Terms{}
	}
	return m.scope.terms()
}

const (
	keySign  = fair.KeySign       // stands between the name of a scope and the id of a key; no project's name has it
	keyLevel = keySign + keyScope // the name is that of the key itself, and not of a user of it
	keyScope = "key "             // begins the names of keys' own scopes, too
)

// sharerOf returns whom a share is of, by the name that a pool has for it: a project or a key.
func sharerOf(name string) string {
	name, key, _ := strings.Cut(name, keySign)
	if strings.HasPrefix(key, keyScope) {
		return key
	}
	return name
}

// member returns whom a call counts for whose innermost scope is own.
func (c *Call) member(own *Scope) *member {
	base := c.keyOf(own)
	if base == nil {
		return &own.member
	}
	if all := own.keyed.Load(); all != nil {
		if m := (*all)[c.Key]; m != nil && m.isKey == (base == own) {
			return m
		}
	}
	return own.addKeyed(c.Key, base)
}

// keyOf returns the scope whose key the call has: own, or the one above it if own is a user of that. It is nil if the
// call has no key.
func (c *Call) keyOf(own *Scope) *Scope {
	if c.Key == "" || own == nil {
		return nil
	}
	base := cmp.Or(c.RunProject, c.Project)
	for _, s := range [...]*Scope{own, own.parent} {
		if s != nil && s.Name == base {
			return s
		}
	}
	return nil
}

// mostKeyed is of how many keys a scope remembers its members. Those of other keys are made for each call.
const mostKeyed = 1000

// addKeyed makes the member of a scope's calls with a key of base, which is the scope itself or the one above it.
func (s *Scope) addKeyed(key string, base *Scope) *member {
	m := &member{scope: s, isKey: base == s, Who: fair.Who{Name: s.Name + keySign + key, Group: &fair.Group{Name: base.Name + keyLevel + key, Above: &base.group}}}
	if m.isKey {
		m.Name, m.Group = m.Group.Name, &base.group
	}
	for {
		before := s.keyed.Load()
		after := map[string]*member{}
		if before != nil {
			if len(*before) >= mostKeyed {
				return m
			}
			after = maps.Clone(*before)
		}
		after[key] = m
		if !s.keyed.CompareAndSwap(before, &after) {
			continue
		}
		if m.isKey && len(after) == 2 {
			s.divideAmongKeys(*before)
		}
		return m
	}
}

// divideAmongKeys divides the limits of a scope among its keys, because a second key calls now. What was used
// so far counts as used by the first.
func (s *Scope) divideAmongKeys(first map[string]*member) {
	s.below.Store(true)
	r := s.rules.Load()
	if r == nil || !r.divisible || s.engine.undivided {
		return
	}
	if d := r.divided(); d != nil {
		for _, m := range first {
			d.sole.CompareAndSwap(nil, m)
		}
	}
}

// flow returns the flow of a call of the scope.
func (c *Call) flow(own *Scope) string {
	if c.keyOf(own) == nil {
		return own.Key
	}
	return own.Key + keyLevel + c.Key
}

// groups returns the names of the groups that the flow of a call of a scope is in: of its key, of the scopes above, and
// of the scope itself if others share what it has.
func (c *Call) groups(own *Scope) (names []string) {
	base := c.keyOf(own)
	if base != nil && base != own {
		names = append(names, base.Name+keyLevel+c.Key)
	}
	if base != own && !own.HasBelow() {
		own = own.parent
	}
	for ; own != nil; own = own.parent {
		names = append(names, own.Name)
	}
	return names
}
