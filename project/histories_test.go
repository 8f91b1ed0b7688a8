package project_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// naive is a project as it is counted on paper: a list of all that it has
// used, and sums over it.
type naive struct {
	limit project.Limit
	uses  []*used
}

// used is what a call has used at a time, in nanoseconds.
type used struct {
	at               int64
	requests, tokens int64
	places           int64 // among the calls that are under way
}

func (u *used) of(w project.Window) int64 {
	switch {
	case w.Unit == project.Tokens:
		return u.tokens
	case w.Name == project.Concurrent:
		return u.places
	}
	return u.requests
}

// said is what a window reports, or all of them.
type said struct {
	name         string
	remaining    int64
	retry, reset time.Duration
}

type answer struct {
	allowed bool
	by      string
	retry   time.Duration
	windows []said
	running int64
}

// windows returns what a limit limits, in order: last the calls at a time, of which
// each has its place for ten minutes at most.
func windows(l project.Limit) (all []project.Window) {
	for _, w := range []project.Window{
		{Name: "requests_per_minute", Unit: project.Requests, Count: int64(l.RequestsPerMinute), Period: time.Minute},
		{Name: "requests_per_hour", Unit: project.Requests, Count: int64(l.RequestsPerHour), Period: time.Hour},
		{Name: "requests_per_day", Unit: project.Requests, Count: int64(l.RequestsPerDay), Period: 24 * time.Hour},
		{Name: "tokens_per_minute", Unit: project.Tokens, Count: int64(l.TokensPerMinute), Period: time.Minute},
		{Name: "tokens_per_hour", Unit: project.Tokens, Count: int64(l.TokensPerHour), Period: time.Hour},
		{Name: "tokens_per_day", Unit: project.Tokens, Count: int64(l.TokensPerDay), Period: 24 * time.Hour},
		{Name: "tokens_per_month", Unit: project.Tokens, Count: int64(l.TokensPerMonth), Period: 30 * 24 * time.Hour},
		{Name: project.Concurrent, Count: int64(l.MaxConcurrent), Period: 10 * time.Minute},
	} {
		if w.Count > 0 {
			all = append(all, w)
		}
	}
	return all
}

// sum returns what counts in a window at a time: what was used less than a period
// ago.
func (n *naive) sum(w project.Window, now int64) (sum int64) {
	for _, u := range n.uses {
		if now-u.at < int64(w.Period) {
			sum += u.of(w)
		}
	}
	return sum
}

// retry returns when a window lets so much pass: now, or when one of the uses
// leaves.
func (n *naive) retry(w project.Window, now, much int64) time.Duration {
	switch {
	case much > w.Count:
		return project.Never
	case much == 0 || n.sum(w, now)+much <= w.Count:
		return 0
	}
	first := int64(project.Never)
	for _, u := range n.uses {
		leaves := u.at + int64(w.Period)
		if leaves > now && leaves < first && n.sum(w, leaves)+much <= w.Count {
			first = leaves
		}
	}
	return time.Duration(first - now)
}

// reset returns when a window is empty.
func (n *naive) reset(w project.Window, now int64) (last time.Duration) {
	for _, u := range n.uses {
		if u.of(w) > 0 {
			last = max(last, time.Duration(u.at+int64(w.Period)-now))
		}
	}
	return last
}

// take answers a call, and charges it if it passes. One that asks for no tokens, or
// for no place, is not asked whether it may have any. peek charges nothing.
func (n *naive) take(asks used, peek bool) (*used, answer) {
	a := answer{allowed: true}
	now := asks.at
	var asked []project.Window
	for _, w := range windows(n.limit) {
		if asks.of(w) > 0 {
			asked = append(asked, w)
		}
	}
	for _, w := range asked {
		retry := n.retry(w, now, asks.of(w))
		if w.Name == project.Concurrent {
			retry = min(retry, time.Second) // it is a guess
		} else {
			a.windows = append(a.windows, said{name: w.Name, retry: retry})
		}
		if retry > a.retry {
			a.allowed, a.by, a.retry = false, w.Name, retry
		}
	}
	if n.limit.MaxConcurrent == 0 {
		asks.places = 0 // they are not counted
	}
	if a.allowed && !peek {
		n.uses = append(n.uses, &asks)
	}
	for i, w := range asked {
		if w.Name == project.Concurrent {
			a.running = min(n.sum(w, now), w.Count)
			continue
		}
		a.windows[i].remaining = max(w.Count-n.sum(w, now), 0)
		a.windows[i].reset = n.reset(w, now)
	}
	return &asks, a
}

// heard returns what a limiter has answered, in the same form.
func heard(d project.Decision, of project.Limit) (a answer) {
	a = answer{allowed: d.Allowed, by: d.Limit, retry: d.RetryAfter, running: d.Concurrent}
	for _, s := range d.Windows() {
		name := s.Window.Name
		for _, w := range windows(of) {
			if w.Name == name && (w.Unit != s.Window.Unit || w.Count != s.Window.Count || w.Period != s.Window.Period || s.Window.Calendar || s.Window.Run || s.Window.Most || s.Window.Cut) {
				name = fmt.Sprintf("%+v", *s.Window)
			}
		}
		a.windows = append(a.windows, said{name, s.Remaining, s.RetryAfter, s.ResetAfter})
	}
	return a
}

// step is something that happens in a history.
type step struct {
	do       string
	project  int
	requests int
	tokens   int
	held     int // which of the reservations
	prompt   int // that were used of it, or -1
	limit    project.Limit
	pass     time.Duration
}

var ids = []string{"a", "a%2F", "a%2Fb"}

// counts draws a limit on what a shape has: so small that it is often met.
func counts(t *rapid.T, shape project.Limit, most int) project.Limit {
	draw := func(of, times int, name string) int {
		if of == 0 {
			return 0
		}
		return rapid.IntRange(1, most*times).Draw(t, name)
	}
	return project.Limit{
		RequestsPerMinute: draw(shape.RequestsPerMinute, 1, "max_rpm"),
		RequestsPerHour:   draw(shape.RequestsPerHour, 2, "rph"),
		RequestsPerDay:    draw(shape.RequestsPerDay, 3, "max_rpd"),
		TokensPerMinute:   draw(shape.TokensPerMinute, 5, "max_tpm"),
		TokensPerHour:     draw(shape.TokensPerHour, 10, "tph"),
		TokensPerDay:      draw(shape.TokensPerDay, 15, "max_tpd"),
		TokensPerMonth:    draw(shape.TokensPerMonth, 20, "tokens a month"),
		MaxConcurrent:     draw(shape.MaxConcurrent, 1, "at a time"),
	}
}

var shapes = rapid.Custom(func(t *rapid.T) project.Limit {
	one := rapid.IntRange(0, 1)
	return project.Limit{
		RequestsPerMinute: one.Draw(t, "rpm"), RequestsPerHour: one.Draw(t, "rph"), RequestsPerDay: one.Draw(t, "rpd"),
		TokensPerMinute: one.Draw(t, "tpm"), TokensPerHour: one.Draw(t, "tph"), TokensPerDay: one.Draw(t, "tpd"),
		TokensPerMonth: one.Draw(t, "tokens a month"), MaxConcurrent: one.Draw(t, "at a time"),
	}
})

var passes = rapid.OneOf(
	rapid.SampledFrom([]time.Duration{1, time.Second, time.Minute - 1, time.Minute, time.Minute + 1, time.Hour - 1, time.Hour, 24*time.Hour - 1, 24 * time.Hour,
		10*time.Minute - 1, 10 * time.Minute, 29 * 24 * time.Hour, 30*24*time.Hour - 1, 30 * 24 * time.Hour}),
	rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "ns"))
	}),
	rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "ns"))
	}),
)

func steps(shape project.Limit, doing []string) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		s := step{do: rapid.SampledFrom(doing).Draw(t, "do"), project: rapid.IntRange(0, len(ids)-1).Draw(t, "project")}
		switch s.do {
		case "spend", "take":
			s.requests, s.tokens = rapid.IntRange(0, 4).Draw(t, "requests"), rapid.IntRange(0, 20).Draw(t, "tokens")
		case "commit":
			s.held, s.prompt = rapid.IntRange(0, 9).Draw(t, "held"), rapid.IntRange(-1, 40).Draw(t, "prompt")
		case "cancel":
			s.held = rapid.IntRange(0, 9).Draw(t, "held")
		case "set":
			s.limit = counts(t, shape, 6)
		case "pass":
			s.pass = passes.Draw(t, "pass")
		case "wait":
			s.pass = 30 * 24 * time.Hour // at most
		}
		return s
	})
}

// ticket is a reservation, and what is known of it on paper.
type ticket struct {
	*project.Reservation
	use       *used
	estimated int
	forgotten bool // by a reset
}

// play lets a history happen to a limiter and on paper. It returns the first step in which
// they differ, or an empty string.
func play(l *project.Limiter, clock func() int64, all []step, same func(got, want answer) bool) string {
	ctx := context.Background()
	usual := l.Limit("one without its own")
	projects := make([]naive, len(ids))
	for i, id := range ids {
		projects[i].limit = l.Limit(id)
	}
	held := make([][]*ticket, len(ids))
	var last time.Duration // that was to be waited
	for i, s := range all {
		n, id := &projects[s.project], ids[s.project]
		call := project.Call{Project: id, Requests: s.requests, Estimated: s.tokens}
		requests := int64(max(s.requests, 1))
		var d project.Decision
		var want answer
		var err error
		switch s.do {
		case "spend":
			_, want = n.take(used{clock(), requests, int64(s.tokens), 0}, false)
			d, err = l.Spend(ctx, call)
		case "take":
			tk := ticket{estimated: s.tokens}
			tk.use, want = n.take(used{clock(), requests, int64(max(s.tokens, 1)), 1}, false) // a call without an estimate reserves one
			tk.Reservation, d, err = l.Take(ctx, call)
			if (tk.Reservation != nil) != want.allowed {
				return fmt.Sprintf("step %d, %+v: a reservation: %t", i, s, tk.Reservation != nil)
			}
			if want.allowed {
				held[s.project] = append(held[s.project], &tk)
			}
		case "peek":
			_, want = n.take(used{clock(), 1, 1, 1}, true)
			d, err = l.Peek(ctx, id)
		case "commit", "cancel":
			if len(held[s.project]) == 0 {
				continue
			}
			held[s.project][s.held%len(held[s.project])].settle(s)
			continue
		case "set":
			err, n.limit = l.SetLimit(id, s.limit), s.limit
		case "unset":
			err, n.limit = l.UnsetLimit(id), usual
		case "reset":
			err, n.uses = l.Reset(ctx, id), nil
			for _, tk := range held[s.project] {
				tk.forgotten = true
			}
		case "pass":
			time.Sleep(s.pass)
		case "wait":
			if last <= s.pass {
				time.Sleep(last)
			}
		}
		if err != nil {
			return fmt.Sprintf("step %d, %+v: %v", i, s, err)
		}
		if s.do == "spend" || s.do == "take" || s.do == "peek" {
			if got := heard(d, n.limit); !same(got, want) {
				return fmt.Sprintf("step %d, %+v of %+v:\n got %+v\nwant %+v", i, s, n.limit, got, want)
			}
			last = want.retry
		}
	}
	return ""
}

// settle ends a reservation, also on paper. Only the first end counts.
func (tk *ticket) settle(s step) {
	ended := tk.use == nil
	if !ended {
		tk.use.places = 0
	}
	switch {
	case s.do == "cancel":
		tk.Cancel()
		if !ended {
			tk.use.requests, tk.use.tokens = 0, 0
		}
	case s.prompt < 0:
		tk.Commit(-1, -1)
		if !ended {
			tk.use.tokens = int64(tk.estimated)
		}
	case tk.forgotten: // what it has used beyond would be a debt, or not
		tk.Commit(min(s.prompt, tk.estimated), 0)
	default:
		tk.Commit(s.prompt/2, s.prompt-s.prompt/2)
		if !ended {
			tk.use.tokens = int64(s.prompt)
		}
	}
	tk.use = nil
}

func exactly(got, want answer) bool { return reflect.DeepEqual(got, want) }

// Whatever happens in whatever order, each decision is what counting on paper says,
// to the nanosecond.
func TestHistories(t *testing.T) {
	doing := []string{"spend", "spend", "spend", "take", "take", "commit", "cancel", "peek", "pass", "pass", "wait", "set", "unset", "reset"}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				shape := shapes.Draw(rt, "shape")
				def := counts(rt, shape, 6)
				own := counts(rt, shape, 6)
				history := rapid.SliceOfN(steps(shape, doing), 1, 60).Draw(rt, "history")
				for i := range history {
					history[i].pass = min(history[i].pass, longest(name))
				}
				var differs string
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					l := newLimiter(t, kind(t, project.Config{Default: &def, Limits: map[string]project.Limit{ids[1]: own}}))
					differs = play(l, func() int64 { return int64(time.Since(start)) }, history, exactly)
				})
				if differs != "" {
					rt.Fatal(differs)
				}
			})
		})
	}
}

// Histories that are over long before anything leaves its window: the clock is the
// server's, so of times nothing is wanted but that they make sense.
func TestRedisHistories(t *testing.T) {
	server := redistest.New(t)
	s := openRedis(t, server.URL())
	doing := []string{"spend", "spend", "spend", "take", "take", "commit", "cancel", "peek", "set", "unset", "reset"}
	sensible := func(got, want answer) bool {
		for i, s := range got.windows {
			if s.reset < 0 || s.reset > 30*24*time.Hour || s.retry < 0 || s.retry > 30*24*time.Hour && s.retry != project.Never || i >= len(want.windows) {
				return false
			}
			for _, d := range []struct{ got, want *time.Duration }{{&got.windows[i].retry, &want.windows[i].retry}, {&got.windows[i].reset, &want.windows[i].reset}} {
				if *d.got != project.Never && (*d.got > 0) == (*d.want > 0) {
					*d.got = *d.want
				}
			}
		}
		if got.retry != project.Never && (got.retry > 0) == (want.retry > 0) {
			got.retry, got.by = want.retry, want.by
		}
		return exactly(got, want)
	}
	rapid.Check(t, func(rt *rapid.T) {
		shape := project.Limit{
			RequestsPerHour: rapid.IntRange(0, 1).Draw(rt, "rph"), RequestsPerDay: rapid.IntRange(0, 1).Draw(rt, "rpd"),
			TokensPerHour: rapid.IntRange(0, 1).Draw(rt, "tph"), TokensPerDay: rapid.IntRange(0, 1).Draw(rt, "tpd"),
			TokensPerMonth: rapid.IntRange(0, 1).Draw(rt, "tokens a month"), MaxConcurrent: rapid.IntRange(0, 1).Draw(rt, "at a time"),
		}
		limits := map[string]project.Limit{}
		for _, id := range ids {
			limits[id] = counts(rt, shape, 6)
		}
		all := rapid.SliceOfN(steps(shape, doing), 1, 30).Draw(rt, "history")
		usual := counts(rt, shape, 6)
		l, err := project.NewWithConfig(project.Config{Store: s, Default: &usual})
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		if err := l.SetLimits(limits); err != nil {
			rt.Fatal(err)
		}
		for _, id := range ids {
			if err := l.Reset(context.Background(), id); err != nil {
				rt.Fatal(err)
			}
		}
		if differs := play(l, func() int64 { return 0 }, all, sensible); differs != "" {
			rt.Fatal(differs)
		}
	})
}

// happening is something that happens while calls of a project wait.
type happening struct {
	do       string
	requests int
	tokens   int
	priority int
	patience time.Duration // of a call that joins
	held     int           // which of the calls that have passed
	used     int           // tokens, of what it has reserved
	limit    project.Limit
	pass     time.Duration
}

// waiter is a call that waits, on paper.
type waiter struct {
	name     string
	event    happening
	deadline int64
}

// queue is the calls that wait, on paper: by priority, and then first come, first served.
// The first passes as soon as what is counted lets it.
type queue struct {
	naive
	now      int64
	waiting  []waiter
	returned []string // names, with how and when
	uses     map[string]*used
}

// join lets a call stand in line, unless it could never pass.
func (q *queue) join(name string, e happening) {
	q.waiting = append(q.waiting, waiter{name, e, q.now + int64(e.patience)})
	slices.SortStableFunc(q.waiting, func(a, b waiter) int { return cmp.Compare(b.event.priority, a.event.priority) })
	q.set(q.limit)
}

// set sets the limit. Calls that could never pass leave at once.
func (q *queue) set(limit project.Limit) {
	q.limit = limit
	q.waiting = slices.DeleteFunc(q.waiting, func(c waiter) bool {
		asks := &used{0, int64(c.event.requests), int64(c.event.tokens), 1}
		never := slices.ContainsFunc(windows(limit), func(w project.Window) bool { return asks.of(w) > w.Count })
		if never {
			q.returned = append(q.returned, fmt.Sprint(c.name, " never, at ", time.Duration(q.now)))
		}
		return never
	})
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

// look lets the calls pass that may at this time, and returns when the next may.
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

// crowd lets a history happen to a limiter and on paper, and returns where they differ.
func crowd(l *line, all []happening) string {
	ctx := context.Background()
	q := &queue{naive: naive{limit: l.Limit("p")}, uses: map[string]*used{}}
	for i, e := range all {
		c := project.Call{Project: "p", Requests: e.requests, Estimated: e.tokens, Priority: e.priority}
		switch e.do {
		case "join":
			name := fmt.Sprint("call ", i)
			e.patience += time.Duration(i + 1) // no two things happen at the same time
			within, cancel := testkit.WithHiddenTimeout(ctx, e.patience)
			defer cancel()
			q.join(name, e)
			l.join(within, name, c)
		case "spend":
			if q.limit.MaxConcurrent > 0 {
				continue // it passes calls that wait for others to end
			}
			want := len(q.waiting) == 0
			if want {
				_, a := q.take(used{q.now, int64(e.requests), int64(e.tokens), 0}, false)
				want = a.allowed
			}
			if d, err := l.Spend(ctx, c); d.Allowed != want || err != nil || want == (d.RetryAfter > 0) || want == (d.Limit != "") {
				return fmt.Sprintf("step %d: %+v: %t, %q, %v, %v; want it allowed: %t", i, e, d.Allowed, d.Limit, d.RetryAfter, err, want)
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
			q.set(e.limit)
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
	const patience = 5 * time.Minute // more than any call has
	time.Sleep(patience)
	q.sleep(q.now + int64(patience))
	synctest.Wait()
	return l.differs(q)
}

// differs says which calls have returned at another time than on paper, or otherwise.
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

// A call that waits passes at the very time that counting on paper says, in order, whatever
// happens meanwhile; and a call that does not pass has taken nothing.
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
