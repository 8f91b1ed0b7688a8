package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// service is what became of the calls of a load.
type service struct {
	load     *load
	admitted []*call    // in the order of their admission
	of       []received // what each client got
	backlog  [][]span   // when each client was backlogged
}

// span is the time from one instant to another.
type span struct{ from, to time.Duration }

// received is what a client got: sum[i] before the instant at[i].
type received struct {
	at  []time.Duration
	sum []int
}

// before is what the client got before an instant.
func (r received) before(t time.Duration) int {
	i, _ := slices.BinarySearch(r.at, t)
	return r.sum[i]
}

// in is what the client got in a span, with its beginning and without its end.
func (r received) in(s span) int { return r.before(s.to) - r.before(s.from) }

func newService(l *load, calls []*call) *service {
	s := &service{load: l}
	for _, c := range calls {
		if c.admitted != never {
			s.admitted = append(s.admitted, c)
		}
	}
	slices.SortStableFunc(s.admitted, func(a, b *call) int { return cmp.Compare(a.admitted, b.admitted) })
	for i := range l.clients {
		r := received{sum: []int{0}}
		for _, c := range s.admitted {
			if c.client == i {
				r.at = append(r.at, c.admitted)
				r.sum = append(r.sum, r.sum[len(r.sum)-1]+c.cost)
			}
		}
		s.of = append(s.of, r)
		s.backlog = append(s.backlog, backlog(l, calls, i))
	}
	return s
}

// backlog is when a client wants more than it gets: workers always come back for more, so theirs
// lasts from the first call to the end; calls that arrive by themselves make one while any waits.
func backlog(l *load, calls []*call, client int) (spans []span) {
	var waits []span
	for _, c := range calls {
		if c.client != client {
			continue
		}
		until := c.admitted
		if until == never || l.clients[client].workers > 0 {
			until = l.length()
		}
		waits = append(waits, span{c.arrived, until})
	}
	slices.SortFunc(waits, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, w := range waits {
		switch last := len(spans) - 1; {
		case w.from == w.to:
		case last >= 0 && w.from <= spans[last].to:
			spans[last].to = max(spans[last].to, w.to)
		default:
			spans = append(spans, w)
		}
	}
	return spans
}

// backlogged are the clients that were backlogged throughout a span.
func (s *service) backlogged(during span) (clients []int) {
	for i, spans := range s.backlog {
		if slices.ContainsFunc(spans, func(b span) bool { return b.from <= during.from && b.to >= during.to }) {
			clients = append(clients, i)
		}
	}
	return clients
}

// difference is the largest difference of service over weight between two clients, over all
// intervals in which both are backlogged. Calls that are admitted at the same instant count together.
func (s *service) difference() (most float64) {
	for i := range s.load.clients {
		for j := range i {
			for _, both := range intersect(s.backlog[i], s.backlog[j]) {
				most = max(most, s.apart(i, j, both))
			}
		}
	}
	return most
}

// apart is the largest difference between two clients over the intervals within a span. With d what
// one has got more than the other since the span's beginning, it is the largest d less the smallest.
func (s *service) apart(i, j int, within span) float64 {
	var d, low, high float64
	for k, c := range s.admitted {
		if c.admitted <= within.from || c.admitted >= within.to {
			continue
		}
		switch over := float64(c.cost) / float64(s.load.clients[c.client].weight); c.client {
		case i:
			d += over
		case j:
			d -= over
		}
		if k+1 == len(s.admitted) || s.admitted[k+1].admitted > c.admitted {
			low, high = min(low, d), max(high, d)
		}
	}
	return high - low
}

func intersect(a, b []span) (both []span) {
	for _, x := range a {
		for _, y := range b {
			if s := (span{max(x.from, y.from), min(x.to, y.to)}); s.from < s.to {
				both = append(both, s)
			}
		}
	}
	return both
}

// worstShare is by how many points a client was off its due share over two windows, wherever these
// begin from a time on: among the clients that are backlogged throughout, the part of what these get
// together. ok is false if there are never two such clients.
func (s *service) worstShare(since time.Duration) (points float64, ok bool) {
	starts := []time.Duration{since}
	for _, c := range s.admitted {
		starts = append(starts, c.admitted)
	}
	for _, spans := range s.backlog {
		for _, b := range spans {
			starts = append(starts, b.from)
		}
	}
	slices.Sort(starts)
	for _, from := range slices.Compact(starts) {
		two := span{from, from + 2*window}
		if two.to > s.load.length() {
			break
		}
		if from < since {
			continue
		}
		clients := s.backlogged(two)
		all, weights := 0, 0
		for _, i := range clients {
			all += s.of[i].in(two)
			weights += s.load.clients[i].weight
		}
		if len(clients) < 2 || all == 0 {
			continue
		}
		ok = true
		for _, i := range clients {
			share := float64(s.of[i].in(two)) / float64(all)
			due := float64(s.load.clients[i].weight) / float64(weights)
			points = max(points, 100*math.Abs(share-due))
		}
	}
	return points, ok
}

// jain is the mean over the windows of Jain's index of service over weight, among the clients that
// are backlogged throughout the window. ok is false if there are never two.
func (s *service) jain() (mean float64, ok bool) {
	n := 0
	for k := range s.load.windows {
		one := span{time.Duration(k) * window, time.Duration(k+1) * window}
		var x []float64
		for _, i := range s.backlogged(one) {
			x = append(x, float64(s.of[i].in(one))/float64(s.load.clients[i].weight))
		}
		if len(x) >= 2 && slices.Max(x) > 0 {
			mean += jain(x)
			n++
		}
	}
	return mean / float64(n), n > 0
}

// jain is 1 if all are equal, and 1/n if one of n has everything.
func jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}

// utilisation is what was admitted, of what the quota allows or of what was asked for, if that is less.
func (s *service) utilisation() float64 {
	possible := s.load.quota * s.load.windows
	if offered, finite := s.load.offered(); finite {
		possible = min(possible, offered)
	}
	all := 0
	for _, c := range s.admitted {
		all += c.cost
	}
	return float64(all) / float64(possible)
}

// share is a client's part of what was admitted in a span.
func (s *service) share(client int, during span) float64 {
	all := 0
	for _, r := range s.of {
		all += r.in(during)
	}
	return float64(s.of[client].in(during)) / float64(max(all, 1))
}

// late is what the latecomer got in its second window, of what was due to it.
func (s *service) late() float64 {
	who := s.load.clients[s.load.latecomer]
	got := s.of[s.load.latecomer].in(span{who.from + window, who.from + 2*window})
	return float64(got*s.load.weights()) / float64(s.load.quota*who.weight)
}

// bounds are those of the virtual token counter, 2·max(w_p·L_in, w_q·M), in the unit of the load and
// over the weight. Where a call is charged as a whole when it is admitted, as here, what counts is
// the largest call; where a running batch goes on to be served it is the batch, which is the window
// here: M is the quota.
func (l *load) bounds() (calls, batch float64) {
	for _, c := range l.clients {
		calls = max(calls, 2*float64(c.largest())/float64(c.weight))
		batch = max(batch, 2*float64(l.quota)/float64(c.weight))
	}
	return calls, batch
}
