package line

import "container/list"

// Whole is the cost of a turn that uses up all that there is.
const Whole = 1 << 32

// least is what a turn costs at least, so that nobody has any number of them in a
// row by asking for next to nothing.
const least = quantum / 16

// quantum is what a flow of weight 1 gains in a round: so little that a flow
// whose turns are cheap does not have many in a row.
const quantum = Whole / 256

// flow is those who belong together.
type flow struct {
	name    string
	weight  int64
	waiters list.List     // of *waiter, who comes first first
	place   *list.Element // among those that are ready, or nil
	lacks   bool          // it waits for what is its own: see Hall.lacks

	// Deficit round robin: whenever a round comes to a flow it gains its
	// quantum, and has turns while it has gained as much as they cost.
	deficit int64
	visited bool // the round is at this flow, which has its quantum
}

func (f *flow) first() *waiter {
	if front := f.waiters.Front(); front != nil {
		return front.Value.(*waiter)
	}
	return nil
}

// enter puts w behind those who come before it: most often behind all.
func (f *flow) enter(w *waiter) {
	for e := f.waiters.Back(); e != nil; e = e.Prev() {
		if !w.before(e.Value.(*waiter)) {
			w.place = f.waiters.InsertAfter(w, e)
			return
		}
	}
	w.place = f.waiters.PushFront(w)
}

func (f *flow) gain() int64 { return quantum * f.weight }

// next returns the flow whose turn it is, or nil if none is ready.
func (l *Line) next() *flow {
	for l.ready.Len() > 0 {
		for range l.ready.Len() {
			f := l.ready.Front().Value.(*flow)
			if !f.visited {
				f.visited = true
				f.deficit += f.gain()
			}
			if f.deficit >= f.first().Cost {
				return f
			}
			f.visited = false
			l.ready.MoveToBack(f.place)
		}
		l.skip()
	}
	return nil
}

// skip lets those rounds pass in which nobody would have a turn.
func (l *Line) skip() {
	rounds := int64(Whole)
	for e := l.ready.Front(); e != nil; e = e.Next() {
		f := e.Value.(*flow)
		lacks := f.first().Cost - f.deficit
		rounds = min(rounds, (lacks-1)/f.gain())
	}
	for e := l.ready.Front(); e != nil; e = e.Next() {
		f := e.Value.(*flow)
		f.deficit += rounds * f.gain()
	}
}
