package engine

import (
	"fmt"
	"testing"
)

// However many keys a project has, those that came first stay remembered, and the member of another is made for its
// call alone: no call copies what is remembered of all others.
func TestMembersOfManyKeys(t *testing.T) {
	s := &Scope{Name: "p"}
	member := func(key int) *member {
		c := &Call{Key: fmt.Sprint(key)}
		c.Project = "p"
		return c.member(s)
	}
	first := member(0)
	for key := range 2 * mostKeyed {
		if m, want := member(key), fmt.Sprint("p", keyLevel, key); m.Name != want || !m.isKey {
			t.Fatalf("the member is %q; want %q", m.Name, want)
		}
	}
	if n := len(*s.keyed.Load()); n != mostKeyed || member(0) != first {
		t.Errorf("%d keys are remembered; want the first %d", n, mostKeyed)
	}
}
