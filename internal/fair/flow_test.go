package fair

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// textbook is deficit round robin as textbooks have it: flows in a circle, each of which gains its
// quantum when it is visited, and is served while that suffices. Only the flows of the highest rank
// in the circle take part.
type textbook struct {
	circle []*visited
	turn   *visited
}

type visited struct {
	name    string
	rank    int
	weight  int64
	queue   []queued
	deficit int64
	now     bool // it is being visited
}

type queued struct {
	name     string
	priority int
	cost     int64
}

func (b *textbook) join(flow string, rank int, weight int64, s queued) {
	i := slices.IndexFunc(b.circle, func(f *visited) bool { return f.name == flow })
	if i < 0 {
		i = len(b.circle)
		b.circle = append(b.circle, &visited{name: flow, rank: rank})
	}
	f := b.circle[i]
	if f.rank != rank { // it comes last among those of its new rank
		f.rank, f.now = rank, false
		b.circle = append(slices.Delete(b.circle, i, i+1), f)
	}
	f.weight = weight
	f.queue = append(f.queue, s)
	slices.SortStableFunc(f.queue, func(a, b queued) int { return cmp.Compare(b.priority, a.priority) })
	if b.turn == f && f.queue[0] == s {
		b.turn = nil // what it has gained was for another
	}
	if b.turn != nil && b.turn.rank < b.highest() {
		b.turn = nil
	}
	b.choose()
}

// leave removes a waiter that has been served or has given up.
func (b *textbook) leave(name string, served bool) {
	for i, f := range b.circle {
		k := slices.IndexFunc(f.queue, func(s queued) bool { return s.name == name })
		if k < 0 {
			continue
		}
		if served {
			f.deficit -= f.queue[k].cost
		}
		if k == 0 && b.turn == f {
			b.turn = nil
		}
		f.queue = slices.Delete(f.queue, k, k+1)
		if len(f.queue) == 0 {
			b.circle = slices.Delete(b.circle, i, i+1)
		}
		b.choose()
		return
	}
}

func (b *textbook) highest() int {
	return slices.MaxFunc(b.circle, func(a, b *visited) int { return cmp.Compare(a.rank, b.rank) }).rank
}

// choose finds the waiter that has the turn, if none has it.
func (b *textbook) choose() {
	for b.turn == nil && len(b.circle) > 0 {
		i := slices.IndexFunc(b.circle, func(f *visited) bool { return f.rank == b.highest() })
		f := b.circle[i]
		if !f.now {
			f.now = true
			f.deficit += quantum * f.weight
		}
		if f.deficit >= f.queue[0].cost {
			b.turn = f
			return
		}
		f.now = false
		b.circle = append(slices.Delete(b.circle, i, i+1), f)
	}
}

// serve serves n waiters, and returns their names.
func (b *textbook) serve(n int) (names []string) {
	for ; n > 0 && b.turn != nil; n-- {
		name := b.turn.queue[0].name
		names = append(names, name)
		b.leave(name, true)
	}
	return names
}

// act is an event in the life of a line.
type act struct {
	Do       string
	Flow     string
	Rank     int
	Cost     int64
	Priority int
	Which    int
}

var costs = []int64{1, 1000, quantum - 1, quantum, quantum + 1, WholeTurn / 100, WholeTurn / 10, WholeTurn / 3, WholeTurn}

func acts(t *rapid.T) (weights map[string]int64, list []act) {
	weights = map[string]int64{}
	flows := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "flows")]
	for _, f := range flows {
		weights[f] = rapid.SampledFrom([]int64{1, 1, 2, 3, 10, 1 << 20}).Draw(t, f)
	}
	ranks := rapid.SampledFrom([][]int{{0}, {0, 0, 0, 1}, {-1000, 0, 7, 1000}}).Draw(t, "ranks")
	list = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		return act{
			Rank:     rapid.SampledFrom(ranks).Draw(t, "rank"),
			Do:       rapid.SampledFrom([]string{"join", "join", "join", "join", "serve", "cancel"}).Draw(t, "do"),
			Flow:     rapid.SampledFrom(flows).Draw(t, "flow"),
			Cost:     rapid.SampledFrom(costs).Draw(t, "cost"),
			Priority: rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(t, "priority"),
			Which:    rapid.IntRange(0, 20).Draw(t, "which"),
		}
	}), 1, 60).Draw(t, "acts")
	return weights, list
}

// Waiters have their turns in the textbook's order, whatever joins, passes or gives up, and
// whatever rank a flow has by then.
func TestLikeTheTextbook(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights, list := acts(rt)
		var got, want []string
		synctest.Test(t, func(t *testing.T) {
			o, book := newOffice(t), &textbook{}
			l := o.line()
			var joined []string
			serve := func(n int) {
				want = append(want, book.serve(n)...)
				o.let(l, n)
				o.mu.Lock()
				defer o.mu.Unlock()
				o.open[l] = 0
			}
			for i, a := range list {
				switch a.Do {
				case "join":
					name := fmt.Sprint(a.Flow, i)
					joined = append(joined, name)
					o.join(l, name, Ticket{Flow: a.Flow, Rank: a.Rank, Weight: int(weights[a.Flow]), Cost: a.Cost, Priority: a.Priority})
					book.join(a.Flow, a.Rank, weights[a.Flow], queued{name, a.Priority, max(a.Cost, minCost)})
				case "serve":
					serve(a.Which % 5)
				case "cancel":
					if a.Which < len(joined) {
						o.cancel(joined[a.Which])
						book.leave(joined[a.Which], false)
					}
				}
			}
			serve(len(list))
			got = o.passed
			o.wantNobody()
		})
		if !slices.Equal(got, want) {
			rt.Fatalf("served\n  %v; want\n  %v", got, want)
		}
	})
}

// While each flow always has a waiting call, what two flows were served by their weights differs by
// no more than a quantum and the largest cost of a waiter that had to wait for the next round.
//
// After v visits a flow of weight w was served v·quantum·w, less what it could not use, which is
// less than its largest cost c. During a visit it is between that of the visit before and that of
// this one. Of two flows one was visited at most once more than the other. So s/w differs by
// quantum + c/w at most.
func TestSharesByWeight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(rt, "flows")
		weights := rapid.SliceOfN(rapid.Int64Range(1, 9), n, n).Draw(rt, "weights")
		queues := make([][]int64, n)
		for i := range queues {
			some := rapid.SliceOfN(rapid.Int64Range(minCost, WholeTurn), 1, 3).Draw(rt, "costs")
			some = append(some, max(rapid.SampledFrom(costs).Draw(rt, "cost"), minCost))
			queues[i] = rapid.SliceOfN(rapid.SampledFrom(some), 10, 40).Draw(rt, "queue")
		}
		var order []string
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t)
			l := o.line()
			o.join(l, "", Ticket{Flow: "first", Cost: 1}) // while it has the turn, the others come
			for i, queue := range queues {
				for k, cost := range queue {
					o.start(l, fmt.Sprint(i, " ", k), Ticket{Flow: fmt.Sprint(i), Weight: int(weights[i]), Cost: cost})
					synctest.Wait()
				}
			}
			o.let(l, 1_000_000)
			order = o.passed[1:]
			o.wantNobody()
		})
		served, next := make([]int64, n), make([]int, n)
		for at, name := range order {
			var i, k int
			fmt.Sscan(name, &i, &k)
			if k != next[i] {
				rt.Fatalf("%q is served where %d is next: %q", name, next[i], order)
			}
			served[i] += queues[i][k]
			if next[i]++; next[i] == len(queues[i]) {
				return // it has nobody waiting any more
			}
			for a := range n {
				for b := range n {
					most := quantum*weights[a]*weights[b] + max(slices.Max(queues[a])*weights[b], slices.Max(queues[b])*weights[a])
					if apart := served[a]*weights[b] - served[b]*weights[a]; apart > most {
						rt.Fatalf("after %q flows of weights %v were served %v: %d and %d are %d apart; want at most %d", order[:at+1], weights, served, a, b, apart, most)
					}
				}
			}
		}
	})
}

// A flow has its turn, whatever others send without end: by then, none of them has had more than
// its weight allows.
func TestNobodyStarves(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mine   int64
		others []int64 // costs
		weight int64   // of the others
	}{
		{"all, among small ones", WholeTurn, []int64{WholeTurn / 500}, 1},
		{"all, among all", WholeTurn, []int64{WholeTurn}, 1},
		{"one, among all", 1, []int64{WholeTurn}, 1},
		{"one, among heavy ones", 1, []int64{WholeTurn / 7, WholeTurn}, 5},
		{"all, among several", WholeTurn, []int64{WholeTurn / 200, WholeTurn, WholeTurn / 300}, 2},
		{"half, among heavy ones", WholeTurn / 2, []int64{WholeTurn / 50, WholeTurn / 3}, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				l := o.line()
				served := make([]atomic.Int64, len(tt.others))
				var over atomic.Bool
				done := func(add *atomic.Int64, cost int64) (Answer, error) {
					if !over.Load() {
						add.Add(cost)
					}
					return Answer{Done: true}, nil
				}
				o.join(l, "", Ticket{Flow: "first", Cost: 1})
				for i, cost := range tt.others {
					for range 4 { // so that never all of them are between turns
						go func() {
							for !over.Load() {
								l.Wait(t.Context(), Ticket{Flow: fmt.Sprint(i), Weight: int(tt.weight), Cost: cost},
									func() (Answer, error) { return done(&served[i], cost) })
							}
						}()
					}
				}
				synctest.Wait()
				go l.Wait(t.Context(), Ticket{Flow: "mine", Weight: 1, Cost: tt.mine}, func() (Answer, error) {
					over.Store(true)
					return Answer{Done: true}, nil
				})
				synctest.Wait()
				o.let(l, 1)
				for i, cost := range tt.others {
					if got, most := served[i].Load(), tt.weight*quantum+max(tt.mine*tt.weight, cost); !over.Load() || got > most {
						t.Errorf("flow %d was served %d before; want at most %d", i, got, most)
					}
				}
				o.wantNobody()
			})
		})
	}
}

// A flow of weight 3 has three turns for one of another flow, and the waiter that came first is
// served first.
func TestThreeToOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.join(l, "", Ticket{Flow: "first", Cost: 1})
		for i := range 24 {
			o.join(l, fmt.Sprint("a", i), Ticket{Flow: "a", Weight: 3, Cost: WholeTurn / 60})
			o.join(l, fmt.Sprint("b", i), Ticket{Flow: "b", Weight: 1, Cost: WholeTurn / 60})
		}
		o.let(l, 25)
		count := map[string]int{}
		for _, name := range o.passed[1:] {
			count[name[:1]]++
		}
		if !maps.Equal(count, map[string]int{"a": 18, "b": 6}) {
			t.Errorf("%v of %s; want 18 to 6", count, strings.Join(o.passed, " "))
		}
		o.let(l, 99)
		o.wantNobody()
	})
}

// A flow whose turns cost nothing does not have them without end: another flow has its turn too.
func TestTurnsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		l := o.line()
		o.join(l, "", Ticket{Flow: "first", Cost: 1})
		for i := range 200 {
			o.join(l, fmt.Sprint("x", i), Ticket{Flow: "x"})
		}
		o.join(l, "mine", Ticket{Flow: "mine", Cost: quantum})
		o.let(l, 999)
		if at := slices.Index(o.passed, "mine"); at < 0 || at > 40 {
			t.Errorf("it was number %d; want it to have its turn", at)
		}
		o.wantNobody()
	})
}
