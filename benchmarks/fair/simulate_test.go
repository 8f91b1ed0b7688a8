package main

import (
	"slices"
	"testing"
	"time"
)

const sec = time.Second

// of is a load of clients whose calls arrive by themselves.
func of(quota int, clients ...client) *load {
	return &load{name: "test", unit: "requests", quota: quota, windows: 4, clients: clients}
}

// at are calls of cost 1 at some seconds.
func at(seconds ...int) (all []arrival) {
	for _, s := range seconds {
		all = append(all, arrival{time.Duration(s) * sec, 1})
	}
	return all
}

// crowd are n calls of one cost at the same time.
func crowd(n, cost int, at time.Duration) (all []arrival) {
	for range n {
		all = append(all, arrival{at, cost})
	}
	return all
}

// inOrder are the clients whose calls were admitted from a time on and before another, in the order
// of time.
func inOrder(l *load, r rule, from, to time.Duration) (names []string) {
	for _, c := range newService(l, simulate(l, r)).admitted {
		if c.admitted >= from && c.admitted < to {
			names = append(names, l.clients[c.client].name)
		}
	}
	return names
}

func TestFirstComeFirstServed(t *testing.T) {
	l := of(2, client{name: "a", weight: 1, arrivals: at(0, 1, 3)}, client{name: "b", weight: 1, arrivals: at(2, 100)})
	var got []time.Duration
	for _, c := range newService(l, simulate(l, newFCFS(l))).admitted {
		got = append(got, c.admitted)
	}
	// The window is full from 1 to 60, and again from 61 to 120.
	if want := []time.Duration{0, sec, 60 * sec, 61 * sec, 120 * sec}; !slices.Equal(got, want) {
		t.Errorf("admitted at %v, want %v", got, want)
	}
}

func TestFirstComeHoldsUpOthers(t *testing.T) {
	l := of(4, client{name: "large", weight: 1, arrivals: []arrival{{0, 1}, {sec, 4}}}, client{name: "small", weight: 1, arrivals: at(2)})
	if got := inOrder(l, newFCFS(l), sec, window); got != nil {
		t.Errorf("%v passed the large call", got)
	}
}

// turns are the clients whose calls a rule admits, in order, while nothing of the window is used and
// all calls of the load wait.
func turns(l *load, r rule) (names []string) {
	for i, c := range l.clients {
		for _, a := range c.arrivals {
			r.join(&call{client: i, cost: a.cost})
		}
	}
	u := &usage{quota: l.quota, of: make([]int, len(l.clients))}
	for c := r.next(u); c != nil; c = r.next(u) {
		u.add(c)
		names = append(names, l.clients[c.client].name)
	}
	return names
}

func TestTurns(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(*load) rule
		a, b client
		want []string
	}{
		{"round robin, 3 to 1", newDRR, client{weight: 3, arrivals: crowd(9, 1, 0)}, client{weight: 1, arrivals: crowd(9, 1, 0)},
			[]string{"a", "a", "a", "b", "a", "a", "a", "b"}},
		{"round robin, large and small", newDRR, client{weight: 1, arrivals: crowd(9, 2, 0)}, client{weight: 1, arrivals: crowd(9, 1, 0)},
			[]string{"b", "a", "b", "b", "a", "b"}},
		{"round robin forgets who leaves", newDRR, client{weight: 3, arrivals: crowd(2, 1, 0)}, client{weight: 1, arrivals: crowd(9, 1, 0)},
			[]string{"a", "a", "b", "b", "b", "b", "b", "b"}},
		{"VTC, 3 to 1", newVTC, client{weight: 3, arrivals: crowd(9, 1, 0)}, client{weight: 1, arrivals: crowd(9, 1, 0)},
			[]string{"a", "b", "a", "a", "a", "b", "a", "a"}},
		{"VTC, large and small", newVTC, client{weight: 1, arrivals: crowd(9, 2, 0)}, client{weight: 1, arrivals: crowd(9, 1, 0)},
			[]string{"a", "b", "b", "a", "b", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.a.name, test.b.name = "a", "b"
			l := of(8, test.a, test.b)
			if got := turns(l, test.make(l)); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// A client whose last call is admitted leaves the round, and comes back with nothing.
func TestRoundRobinKeepsNothing(t *testing.T) {
	l := of(9, client{name: "a", weight: 3, arrivals: crowd(1, 1, 0)}, client{name: "b", weight: 1, arrivals: crowd(3, 1, 0)})
	r := newDRR(l)
	turns(l, r)
	for range 9 {
		r.join(&call{client: 1, cost: 1})
		r.join(&call{client: 0, cost: 1})
	}
	l.clients[0].arrivals, l.clients[1].arrivals = nil, nil
	if got, want := turns(l, r), []string{"b", "a", "a", "a", "b", "a", "a", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A client that comes late is not served for the time in which it did not wait.
func TestVTCLifts(t *testing.T) {
	l := of(4, client{name: "a", weight: 1, arrivals: crowd(20, 1, 0)}, client{name: "b", weight: 1, arrivals: crowd(20, 1, 90*sec)})
	got := inOrder(l, newVTC(l), 2*window, 3*window)
	slices.Sort(got)
	if want := []string{"a", "a", "b", "b"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFixedSplit(t *testing.T) {
	l := of(8, client{name: "a", weight: 3, arrivals: crowd(9, 1, 0)}, client{name: "b", weight: 1, arrivals: at(100)})
	if got := len(inOrder(l, newSplit(l), 0, window)); got != 6 {
		t.Errorf("a client of weight 3 of 4 had %d of 8, want 6: nothing is lent", got)
	}
}

func TestLiteLLM(t *testing.T) {
	alone := of(8, client{name: "a", weight: 1, arrivals: crowd(9, 1, 0)}, client{name: "b", weight: 3, arrivals: at(100)})
	if got := len(inOrder(alone, newLiteLLM(alone), 0, window)); got != 4 {
		t.Errorf("a client of weight 1 of 4 had %d of 8, want 4: half of the quota is everybody's", got)
	}
	both := of(8, client{name: "a", weight: 1, arrivals: crowd(9, 1, 0)}, client{name: "b", weight: 3, arrivals: crowd(9, 1, sec)})
	if got, want := inOrder(both, newLiteLLM(both), sec, window), []string{"b", "b", "b", "b"}; !slices.Equal(got, want) {
		t.Errorf("then %v, want %v: what was lent is not there", got, want)
	}
}

// Workers call again when the answer has come and they have paused.
func TestWorkers(t *testing.T) {
	l := of(100, client{name: "a", weight: 1, workers: 2, cost: 1, pause: 20 * sec, from: 10 * sec})
	l.answer, l.windows = 5*sec, 1
	var got []time.Duration
	for _, c := range newService(l, simulate(l, newFCFS(l))).admitted {
		got = append(got, c.admitted)
	}
	if want := []time.Duration{10 * sec, 10*sec + stagger, 35 * sec, 35*sec + stagger}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
