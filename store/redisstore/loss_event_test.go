package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Events come in order, with what metrics need.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []store.Event
		f := newFleetNode(newFakeRedis(), Share, share{0, 3}, func(e store.Event) { heard = append(heard, e) })
		why := fmt.Errorf("%w: the wire is cut", ErrLost)
		f.changed(change{lost: true, group: 7, err: why})
		f.wire.lost.Store(true)
		f.take(t, "a", 2, limit.PerMinute(30))
		f.take(t, "b", 3, limit.PerMinute(30))
		f.take(t, "b", 9, limit.PerMinute(30))
		f.wire.lost.Store(false)
		f.changed(change{group: 7})
		f.sweep(t.Context())
		synctest.Wait()

		var keys int
		var charged, allowed, denied int64
		kinds := make([]store.EventKind, 0, len(heard))
		for _, e := range heard {
			if e.Mode != Share || e.Nodes != 3 || e.Missed != 0 {
				t.Errorf("%+v", e)
			}
			kinds = append(kinds, e.Kind)
			keys += e.Keys
			charged += e.Charged
			allowed += e.Allowed
			denied += e.Denied
		}
		if got := slices.Compact(slices.Clone(kinds)); !slices.Equal(got, []store.EventKind{store.Lost, store.Decided, store.Back, store.Reconciled}) {
			t.Fatalf("heard %v", got)
		}
		back := heard[slices.Index(kinds, store.Back)]
		if heard[0].Group != 7 || !errors.Is(heard[0].Err, ErrLost) || back.Group != 7 || back.Err != nil {
			t.Errorf("%+v", heard)
		}
		if keys != 2 || charged != 5 || allowed != 2 || denied != 1 {
			t.Errorf("%d of %d keys were charged, %d takes allowed and %d denied", charged, keys, allowed, denied)
		}
	})
}

// An observer that does not return blocks no caller, and learns how many events it has missed.
func TestSlowObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var heard []store.Event
		e := events{observe: func(e store.Event) {
			<-release
			heard = append(heard, e)
		}}
		for range 10 {
			e.send(store.Event{Kind: store.Reconciled, Keys: 1, Charged: 5})
		}
		for i := range 1000 {
			e.send(store.Event{Kind: store.Lost, Group: i})
		}
		close(release)
		synctest.Wait()
		e.send(store.Event{Kind: store.Back})
		synctest.Wait()

		keys, groups := 0, -1
		for _, e := range heard[:len(heard)-1] {
			keys += e.Keys
			if e.Kind == store.Lost {
				if e.Group != groups+1+e.Missed {
					t.Fatalf("group %d comes after %d, and %d were missed", e.Group, groups, e.Missed)
				}
				groups = e.Group
			}
		}
		last := heard[len(heard)-1]
		if keys != 10 || len(heard) > maxEvents+2 || last.Kind != store.Back || last.Missed != 999-groups {
			t.Errorf("%d events, of %d keys; the last is %+v", len(heard), keys, last)
		}
	})
}
