package config

import "strings"

// Tree finds the rules of a project by its path. Looking allocates nothing.
type Tree struct {
	defaults *Project
	root     branch
}

// branch holds the rules of one path of projects, and the branches of the paths below it.
type branch struct {
	rules *Project // nil: it only leads to others
	below map[string]*branch
	every *branch // the branch of the name *, which stands for every name; nil: there is none
}

// NewTree returns the rules of a configuration.
func NewTree(c *Config) *Tree {
	t := &Tree{defaults: c.Defaults}
	for path, rules := range c.Projects {
		t.add(path, rules)
	}
	return t
}

// add adds the rules of a project or of a template.
func (t *Tree) add(path string, rules *Project) {
	at := &t.root
	for name := range strings.SplitSeq(path, "/") {
		at = at.grow(name)
	}
	at.rules = rules
}

// grow returns the branch of a name below another, which it makes if there is none.
func (b *branch) grow(name string) *branch {
	if name == "*" {
		if b.every == nil {
			b.every = &branch{}
		}
		return b.every
	}
	if b.below == nil {
		b.below = map[string]*branch{}
	}
	if b.below[name] == nil {
		b.below[name] = &branch{}
	}
	return b.below[name]
}

// Append appends the rules of every level of a path that has some, the highest first: those of the
// first name, or else the defaults; and below it those of the project, or else of the template that
// fits best. So the last are those of the project itself, or of the nearest one above it that has
// any.
func (t *Tree) Append(levels []*Project, path string) []*Project {
	for end := 0; end < len(path); {
		next := strings.IndexByte(path[end+1:], '/')
		end += 1 + next
		if next < 0 {
			end = len(path)
		}
		if rules := t.At(path[:end]); rules != nil {
			levels = append(levels, rules)
		}
	}
	return levels
}

// At returns the rules of one level, or nil if it has none: those of the project, or else of the
// template that fits best, or else the defaults for one that is below no other.
func (t *Tree) At(path string) *Project {
	rules := t.root.find(path)
	if rules == nil && strings.IndexByte(path, '/') < 0 {
		return t.defaults
	}
	return rules
}

// find returns the rules that fit a path best, or nil. Of two, those fit better that have a name
// where the others first have a *.
func (b *branch) find(path string) *Project {
	name, rest, deeper := strings.Cut(path, "/")
	for _, next := range [2]*branch{b.below[name], b.every} {
		if next == nil {
			continue
		}
		rules := next.rules
		if deeper {
			rules = next.find(rest)
		}
		if rules != nil {
			return rules
		}
	}
	return nil
}
