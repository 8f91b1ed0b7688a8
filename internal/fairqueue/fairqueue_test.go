package fairqueue_test

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/fairqueue"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A group takes no more than its places, and groups are served in turns, each in the order of its items.
func TestQueue(t *testing.T) {
	q := fairqueue.Queue[int]{Most: 7, Each: 3}
	var added []bool
	for i, group := range []string{"a", "a", "a", "a", "b", "c", "c", "c", "d", "b"} {
		room := q.HasRoom(group)
		if added = append(added, q.Add(group, i)); added[i] != room {
			t.Errorf("%d: HasRoom is %v", i, room)
		}
	}
	testkit.Equal(t, "added", []bool{true, true, true, false, true, true, true, true, false, false}, added)
	for round := range 3 {
		var served []int
		for item, ok := q.Next(); ok; item, ok = q.Next() {
			served = append(served, item)
		}
		want := []int{0, 4, 5, 1, 6, 2, 7}
		if round > 0 {
			want = []int{0, 3, 1, 2}
		}
		testkit.Equal(t, fmt.Sprint("round ", round), want, served)
		for i, group := range []string{"a", "a", "a", "b"} {
			q.Add(group, i)
		}
	}
}

func TestGroupOf(t *testing.T) {
	for _, c := range []struct{ owner, project, want string }{
		{"acme", "acme/u1", "acme"},
		{"acme/u1", "acme/u1", "acme/"},
		{"acme/u2", "acme/u2", "acme/"},
		{"acme/search/u2", "acme/search/u2", "acme/search/"},
		{"key abc", "acme/search", "key acme"},
		{"run abc", "acme", "run acme"},
	} {
		testkit.Equal(t, c.owner, c.want, fairqueue.GroupOf(c.owner, c.project))
	}
}
