package main

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
)

// Where nobody has to wait, ours sees the same calls at the same times as the other contestants.
func TestOursSeesTheSameLoad(t *testing.T) {
	for _, l := range loads() {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := slice(l, 2)
				l.quota = 1 << 40
				got, err := ours(l)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := values(got), values(simulate(l, newFCFS(l))); len(want) < 100 || !slices.Equal(got, want) {
					t.Errorf("%d calls, want the %d of the simulation", len(got), len(want))
				}
			})
		})
	}
}

// values are calls in an order that does not depend on who was asked first at an instant.
func values(calls []*call) (all []call) {
	for _, c := range calls {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.arrived, b.arrived), cmp.Compare(a.client, b.client), cmp.Compare(a.cost, b.cost))
	})
	return all
}
