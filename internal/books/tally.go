package books

import "strings"

// MaxLines is how many separate lines an hour or a day may have: see [Place].
const MaxLines = 100_000

// Place returns the owner of the line that an entry goes to, on a page that has a number of lines
// already, of which most may be separate. has reports whether the page has a line; it is called
// only if there are too many.
//
// Beyond most lines, calls of new models and keys share one line of their project, so that the
// sums of projects stay exact. Beyond twice as many, calls of new projects share one line with
// all projects below the same root, so that the sums of roots stay exact. Beyond three times as
// many, calls of new roots share one line, so that the sum of everything stays exact.
func Place(o Owner, lines, most int, has func(Owner) bool) Owner {
	if lines < most || has(o) {
		return o
	}
	o.Model, o.Key = Other, Other
	if lines < 2*most || has(o) {
		return o
	}
	if root, _, below := strings.Cut(o.Project, "/"); below {
		o.Project = root + "/" + Other
	}
	if lines < 3*most || has(o) {
		return o
	}
	return Owner{Other, Other, Other}
}

// Tally adds entries up by their owners. The zero Tally is empty. It is not safe for concurrent use.
type Tally struct {
	lines map[Owner]*Amounts
}

// Add adds an entry, of which there may be most lines that are separate.
func (t *Tally) Add(e *Entry, most int) {
	line := t.lines[e.Owner]
	if line == nil {
		line = t.line(Place(e.Owner, len(t.lines), most, t.has))
	}
	line.Add(&e.Amounts)
}

func (t *Tally) has(o Owner) bool { return t.lines[o] != nil }

// line returns the line of an owner, which it adds if it is missing.
func (t *Tally) line(o Owner) *Amounts {
	line := t.lines[o]
	if line == nil {
		if t.lines == nil {
			t.lines = map[Owner]*Amounts{}
		}
		line = new(Amounts)
		t.lines[o] = line
	}
	return line
}

// Lines returns the sums by their owners. The caller must not change them.
func (t *Tally) Lines() map[Owner]*Amounts { return t.lines }

// Clear forgets all entries.
func (t *Tally) Clear() { clear(t.lines) }
