package fair

import (
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The waiters pass in the order that Order has said, whatever their flows, ranks, weights, priorities and
// costs are.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var tickets []Ticket
		for range rapid.IntRange(1, 20).Draw(rt, "waiters") {
			flow := rapid.IntRange(0, 3).Draw(rt, "flow")
			tickets = append(tickets, Ticket{
				Flow: fmt.Sprint(flow), Rank: flow % 2, Weight: 1 + flow, Priority: rapid.IntRange(0, 1).Draw(rt, "priority"),
				Cost: rapid.Int64Range(0, WholeTurn/8).Draw(rt, "cost"), Call: fmt.Sprintf("%d of %d", len(tickets), flow),
			})
		}
		var want, got []string
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t)
			l := o.line()
			for _, ticket := range tickets {
				o.join(l, ticket.Call.(string), ticket)
			}
			for _, call := range l.Order() {
				want = append(want, call.(string))
			}
			o.let(l, len(tickets))
			got = o.passed
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%v pass: they were to pass as %v", got, want)
		}
	})
}

// Waiters of a flow that waits for its own limits come last.
func TestOrderOfThoseAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.own["a"] = 0
		o.join(l, "a1", Ticket{Flow: "a", Weight: 1, Call: "a1"})
		o.join(l, "b1", Ticket{Flow: "b", Weight: 1, Call: "b1"})
		o.join(l, "a2", Ticket{Flow: "a", Weight: 1, Call: "a2"})
		o.join(l, "b2", Ticket{Flow: "b", Weight: 1, Call: "b2"})
		testkit.Equal(t, "the order", []any{"b1", "b2", "a1", "a2"}, l.Order())
	})
}
