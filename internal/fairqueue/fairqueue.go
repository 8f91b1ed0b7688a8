// Package fairqueue is a bounded queue of messages about budgets, in which the budgets of one project cannot keep out
// those of others.
package fairqueue

import "strings"

// Queue has Most places, of which one group of items takes Each at most. Groups are served in turns. Its fields must be
// set before it is used, and its methods must not be called concurrently.
type Queue[T any] struct {
	Most, Each int

	groups map[string][]T
	turns  []string // the groups that have items; the first one is served next
	length int
}

// HasRoom reports whether Add would add an item of a group.
func (q *Queue[T]) HasRoom(group string) bool {
	return q.length < q.Most && len(q.groups[group]) < q.Each
}

// Add adds an item of a group, and reports whether there was room for it.
func (q *Queue[T]) Add(group string, item T) bool {
	if !q.HasRoom(group) {
		return false
	}
	if q.groups == nil {
		q.groups = map[string][]T{}
	}
	items, waiting := q.groups[group]
	if !waiting {
		q.turns = append(q.turns, group)
	}
	q.groups[group] = append(items, item)
	q.length++
	return true
}

// Next removes the oldest item of the group that is served next, and returns it. ok is false if there is none.
func (q *Queue[T]) Next() (item T, ok bool) {
	if q.length == 0 {
		return item, false
	}
	group := q.turns[0]
	q.turns = q.turns[1:]
	items := q.groups[group]
	item, q.length = items[0], q.length-1
	if len(items) > 1 {
		q.groups[group], q.turns = items[1:], append(q.turns, group)
	} else {
		delete(q.groups, group)
	}
	return item, true
}

// GroupOf returns the group of a budget: that of all projects directly below one project, since a client may invent any
// number of users there, and that of all keys, or of all runs, of a project at the top. owner is whose budget it is, as
// observers get, and project is the project of the call.
func GroupOf(owner, project string) string {
	if kind, _, ok := strings.Cut(owner, " "); ok { // "key" or "run" and its id: ids of projects have no spaces
		top, _, _ := strings.Cut(project, "/")
		return kind + " " + top
	}
	if parent := strings.LastIndexByte(owner, '/'); parent >= 0 {
		return owner[:parent+1]
	}
	return owner
}
