package project_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// What Spend has charged is used, and not reserved by a call under way.
func TestSpendReservesNothing(t *testing.T) {
	l := project.New(&project.Limit{DollarsPerDay: price.Dollar})
	defer l.Close()
	if d, err := l.Spend(t.Context(), project.Call{Project: "acme", Dollars: price.Dollar / 2}); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	d, err := l.Peek(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range d.Windows() {
		if w.Used != int64(price.Dollar/2) || w.Reserved != 0 {
			t.Errorf("%s: %d are used, and %d of them reserved; want none", w.Window.Name, w.Used, w.Reserved)
		}
	}
}

// A project that has spent its calls and is gone lends its share: none of them is under way.
func TestSpendIsNotUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := project.New(nil)
		defer l.Close()
		if err := l.SetLimit("acme", project.Limit{RequestsPerMinute: 100}); err != nil {
			t.Fatal(err)
		}
		spend := func(id string) bool {
			d, err := l.Spend(t.Context(), project.Call{Project: id})
			if err != nil {
				t.Fatal(err)
			}
			return d.Allowed
		}
		for range 20 {
			spend("acme/gone")
			spend("acme/here")
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		passed := 0
		for spend("acme/here") {
			passed++
		}
		if passed != 60 {
			t.Errorf("%d more pass of 100, of which 40 are used", passed)
		}
	})
}
