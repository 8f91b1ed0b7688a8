package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestJain(t *testing.T) {
	for _, test := range []struct {
		of   []float64
		want float64
	}{{[]float64{2, 2, 2}, 1}, {[]float64{5, 0, 0, 0}, 0.25}, {[]float64{1, 2, 3}, 36.0 / 42}} {
		if got := jain(test.of); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("Jain's index of %v: %v, want %v", test.of, got, test.want)
		}
	}
}

// done is a call that was admitted.
func done(client, cost int, arrived, admitted time.Duration) *call {
	return &call{client: client, cost: cost, arrived: arrived, admitted: admitted}
}

func TestBacklog(t *testing.T) {
	l := of(10, client{weight: 1}, client{weight: 1, workers: 1})
	calls := []*call{
		done(0, 1, 1*sec, 5*sec), done(0, 1, 3*sec, 9*sec), done(0, 1, 20*sec, 20*sec), done(0, 1, 30*sec, 31*sec),
		{client: 0, cost: 1, arrived: 50 * sec, admitted: never}, done(1, 1, 7*sec, 8*sec),
	}
	s := newService(l, calls)
	if got, want := s.backlog[0], []span{{1 * sec, 9 * sec}, {30 * sec, 31 * sec}, {50 * sec, 4 * window}}; !slices.Equal(got, want) {
		t.Errorf("calls that arrive by themselves: %v, want %v", got, want)
	}
	if got, want := s.backlog[1], []span{{7 * sec, 4 * window}}; !slices.Equal(got, want) {
		t.Errorf("workers: %v, want %v", got, want)
	}
	if got := s.backlogged(span{31 * sec, 40 * sec}); !slices.Equal(got, []int{1}) {
		t.Errorf("backlogged are %v, want the workers alone", got)
	}
}

// bruteDifference looks at every interval between two instants.
func bruteDifference(s *service) (most float64) {
	var instants []time.Duration
	for t := time.Duration(0); t <= s.load.length(); t += sec {
		instants = append(instants, t)
	}
	over := func(i int, from, to time.Duration) (sum float64) { // without the instant from, with to
		for _, c := range s.admitted {
			if c.client == i && c.admitted > from && c.admitted <= to {
				sum += float64(c.cost) / float64(s.load.clients[i].weight)
			}
		}
		return sum
	}
	for n, from := range instants {
		for _, to := range instants[n:] {
			clients := s.backlogged(span{from, to + 1}) // to is within, and not the end of the wait
			for _, i := range clients {
				for _, j := range clients {
					most = max(most, over(i, from, to)-over(j, from, to))
				}
			}
		}
	}
	return most
}

func TestDifferenceAsByBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		l := of(10, client{weight: 1}, client{weight: 2}, client{weight: 3, workers: r.IntN(2)})
		l.windows = 1
		var calls []*call
		for range 30 {
			arrived := time.Duration(r.IntN(60)) * sec
			admitted := min(arrived+time.Duration(r.IntN(15))*sec, window-1*sec)
			calls = append(calls, done(r.IntN(3), 1+r.IntN(5), min(arrived, admitted), admitted))
		}
		s := newService(l, calls)
		if got, want := s.difference(), bruteDifference(s); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v, want %v of %+v", got, want, s.admitted)
		}
	}
}

// hand has two clients of weights 3 and 1 that always want more. The first gets 3, 1, 3 and 3 of the
// four in the windows.
func hand() *service {
	l := of(4, client{weight: 3, workers: 1}, client{weight: 1, workers: 1})
	calls := []*call{done(0, 0, 0, 0), done(1, 0, 0, 0)}
	for k, first := range []int{3, 1, 3, 3} {
		at := time.Duration(k)*window + sec
		calls = append(calls, done(0, first, at, at), done(1, 4-first, at, at))
	}
	return newService(l, calls)
}

func TestWorstShare(t *testing.T) {
	// Over the first two windows the first has 4 of 8 where 6 are due.
	if got, ok := hand().worstShare(0); !ok || math.Abs(got-25) > 1e-9 {
		t.Errorf("%v points, %t; want 25", got, ok)
	}
	alone := newService(of(4, client{weight: 1, workers: 1}, client{weight: 1}), []*call{done(0, 4, 0, sec)})
	if got, ok := alone.worstShare(0); ok {
		t.Errorf("%v points of a client that is alone", got)
	}
}

func TestMeanOfJain(t *testing.T) {
	// Over their weights they have 1 and 1, 1/3 and 3, 1 and 1, 1 and 1.
	odd := (10.0 / 3) * (10.0 / 3) / (2 * (1.0/9 + 9))
	if got, ok := hand().jain(); !ok || math.Abs(got-(3+odd)/4) > 1e-9 {
		t.Errorf("%v, %t; want %v", got, ok, (3+odd)/4)
	}
}

func TestUtilisation(t *testing.T) {
	if got := hand().utilisation(); got != 1 {
		t.Errorf("%v of a quota that was used up", got)
	}
	l := of(4, client{weight: 1, arrivals: crowd(5, 1, 0)})
	l.windows = 2
	if got := newService(l, []*call{done(0, 1, 0, 0), done(0, 1, 0, 0)}).utilisation(); got != 0.4 {
		t.Errorf("%v, want 0.4: 2 of 5 that were asked for", got)
	}
}

func TestLate(t *testing.T) {
	l := of(8, client{weight: 3, workers: 1}, client{weight: 1, workers: 1, from: 30 * sec})
	l.latecomer = 1
	calls := []*call{done(1, 2, 30*sec, 40*sec), done(1, 1, 90*sec, 90*sec), done(1, 5, 150*sec, 150*sec)}
	if got := newService(l, calls).late(); got != 0.5 {
		t.Errorf("%v, want 0.5: 1 of the 2 that are due from 90 s to 150 s", got)
	}
}

func TestBounds(t *testing.T) {
	l := of(60, client{weight: 2, workers: 1, cost: 8}, client{weight: 1, arrivals: crowd(1, 3, 0)})
	if calls, batch := l.bounds(); calls != 8 || batch != 120 {
		t.Errorf("%v and %v, want 8 and 120", calls, batch)
	}
}
