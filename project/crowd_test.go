package project_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/project"
)

// happening is something that happens while calls of a project wait.
type happening struct {
	do       string
	requests int
	tokens   int
	priority int
	patience time.Duration // of who joins
	held     int           // which of those who have passed
	used     int           // tokens, of what it has reserved
	limit    project.Limit
	pass     time.Duration
}

// waiter is who waits, in the model.
type waiter struct {
	name     string
	event    happening
	deadline int64
}

// queue is those who wait as anybody would have them stand: by priority, and then
// first come, first served. The first passes as soon as counting on paper says so.
type queue struct {
	naive
	now      int64
	waiting  []waiter
	returned []string // names, with how and when
	uses     map[string]*used
}

// join lets somebody stand in line, unless it could never pass.
func (q *queue) join(name string, e happening) {
	for _, w := range windows(q.limit) {
		if asks := (&used{0, int64(e.requests), int64(e.tokens), 1}); asks.of(w) > w.Count {
			q.returned = append(q.returned, fmt.Sprint(name, " never, at ", time.Duration(q.now)))
			return
		}
	}
	q.waiting = append(q.waiting, waiter{name, e, q.now + int64(e.patience)})
	slices.SortStableFunc(q.waiting, func(a, b waiter) int { return cmp.Compare(b.event.priority, a.event.priority) })
}

// ask returns when the first may pass, and charges it if that is now.
func (q *queue) ask() time.Duration {
	w := q.waiting[0]
	u, a := q.take(used{q.now, int64(w.event.requests), int64(w.event.tokens), 1}, false)
	if a.allowed {
		q.uses[w.name] = u
	}
	return a.retry
}

// look lets pass who may, at this time.
func (q *queue) look() (again time.Duration) {
	for len(q.waiting) > 0 {
		again = q.ask()
		switch again {
		case 0:
			q.returned = append(q.returned, fmt.Sprint(q.waiting[0].name, " at ", time.Duration(q.now)))
		case project.Never:
			q.returned = append(q.returned, fmt.Sprint(q.waiting[0].name, " never, at ", time.Duration(q.now)))
		default:
			return again
		}
		q.waiting = q.waiting[1:]
	}
	return project.Never
}

// sleep lets time pass.
func (q *queue) sleep(until int64) {
	for {
		next := until
		if again := q.look(); again < project.Never {
			next = min(next, q.now+int64(again))
		}
		for _, w := range q.waiting {
			next = min(next, w.deadline)
		}
		q.now = next
		q.waiting = slices.DeleteFunc(q.waiting, func(w waiter) bool {
			if w.deadline == next {
				q.returned = append(q.returned, fmt.Sprint(w.name, " left, at ", time.Duration(next)))
			}
			return w.deadline == next
		})
		if next == until {
			q.look()
			return
		}
	}
}

var happenings = rapid.Custom(func(t *rapid.T) happening {
	e := happening{do: rapid.SampledFrom([]string{"join", "join", "join", "join", "spend", "commit", "cancel", "set", "reset", "pass", "pass", "pass"}).Draw(t, "do")}
	switch e.do {
	case "join", "spend":
		e.requests, e.tokens = rapid.IntRange(1, 3).Draw(t, "requests"), rapid.IntRange(1, 15).Draw(t, "tokens")
		e.priority = rapid.IntRange(0, 2).Draw(t, "priority")
		e.patience = time.Duration(rapid.IntRange(1, 200_000).Draw(t, "patience")) * time.Millisecond
	case "commit", "cancel":
		e.held, e.used = rapid.IntRange(0, 20).Draw(t, "held"), rapid.IntRange(0, 25).Draw(t, "used")
	case "set":
		e.limit = crowded(t)
	case "pass":
		e.pass = time.Duration(rapid.OneOf(rapid.IntRange(1, 70_000), rapid.SampledFrom([]int{60_000, 3_600_000})).Draw(t, "ms")) * time.Millisecond
	}
	return e
})

func crowded(t *rapid.T) project.Limit {
	return project.Limit{
		RequestsPerMinute: rapid.IntRange(1, 6).Draw(t, "rpm"), RequestsPerHour: rapid.IntRange(5, 40).Draw(t, "rph"),
		TokensPerMinute: rapid.IntRange(5, 30).Draw(t, "tpm"), MaxConcurrent: rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "at a time"),
	}
}

// crowd lets a history happen to a limiter and to the model, and returns where they
// differ.
func crowd(l *line, all []happening) string {
	ctx := context.Background()
	q := &queue{naive: naive{limit: l.Limit("p")}, uses: map[string]*used{}}
	for i, e := range all {
		c := project.Call{Project: "p", Requests: e.requests, Estimated: e.tokens, Priority: e.priority}
		switch e.do {
		case "join":
			name := fmt.Sprint("call ", i)
			e.patience += time.Duration(i + 1) // no two things happen at the same time
			within, cancel := context.WithTimeout(ctx, e.patience)
			defer cancel()
			q.join(name, e)
			l.join(within, name, c)
		case "spend":
			if q.limit.MaxConcurrent > 0 {
				continue // it passes those who wait for others to end
			}
			want := len(q.waiting) == 0
			if want {
				_, a := q.take(used{q.now, int64(e.requests), int64(e.tokens), 0}, false)
				want = a.allowed
			}
			if d, err := l.Spend(ctx, c); d.Allowed != want || err != nil || want == (d.RetryAfter > 0) || want == (d.Exceeded != "") {
				return fmt.Sprintf("step %d: %+v: %t, %q, %v, %v; want it allowed: %t", i, e, d.Allowed, d.Exceeded, d.RetryAfter, err, want)
			}
		case "commit", "cancel":
			names := l.all()
			if len(names) == 0 {
				continue
			}
			name := names[e.held%len(names)]
			use := q.uses[name]
			if use == nil {
				continue // it has ended, or was forgotten
			}
			delete(q.uses, name)
			use.places = 0
			if e.do == "cancel" {
				l.cancel(name)
				use.requests, use.tokens = 0, 0
			} else {
				l.commit(name, e.used, 0)
				use.tokens = int64(e.used)
			}
		case "set":
			if err := l.SetLimit("p", e.limit); err != nil {
				return err.Error()
			}
			q.limit = e.limit
		case "reset":
			if err := l.Reset(ctx, "p"); err != nil {
				return err.Error()
			}
			q.naive.uses = nil
			clear(q.uses)
		case "pass":
			time.Sleep(e.pass)
		}
		q.sleep(q.now + int64(e.pass))
		synctest.Wait()
		if differs := l.differs(q); differs != "" {
			return fmt.Sprintf("step %d, %+v of %+v: %s", i, e, q.limit, differs)
		}
	}
	const patience = 5 * time.Minute // which nobody has
	time.Sleep(patience)
	q.sleep(q.now + int64(patience))
	synctest.Wait()
	return l.differs(q)
}

// differs says who has returned at another time than the model says, or otherwise.
func (l *line) differs(q *queue) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for name, at := range l.at {
		switch err := l.errs[name]; {
		case err == nil:
			got = append(got, fmt.Sprint(name, " at ", at))
		case errors.Is(err, project.ErrNever):
			got = append(got, fmt.Sprint(name, " never, at ", at))
		default:
			got = append(got, fmt.Sprint(name, " left, at ", at))
		}
	}
	slices.Sort(got)
	slices.Sort(q.returned)
	if slices.Equal(got, q.returned) {
		return ""
	}
	return fmt.Sprintf("after %v\n got %q\nwant %q", time.Duration(q.now), got, q.returned)
}

// Whoever waits passes at the very time that counting on paper says, in order, whatever
// happens meanwhile; and who does not pass has taken nothing.
func TestCrowds(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				limit := crowded(rt)
				all := rapid.SliceOfN(happenings, 1, 40).Draw(rt, "events")
				for i := range all {
					all[i].pass = min(all[i].pass, longest(name))
				}
				var differs string
				synctest.Test(t, func(t *testing.T) {
					differs = crowd(newLine(newLimiter(t, kind(t, project.Config{Default: &limit}))), all)
				})
				if differs != "" {
					rt.Fatal(differs)
				}
			})
		})
	}
}
