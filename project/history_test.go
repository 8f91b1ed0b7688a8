package project_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/project"
)

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

var ids = []string{"a", "a/b", "a%2Fb"}

// counts draws a limit on what a shape has: so small that it is often met.
func counts(t *rapid.T, shape project.Limit, most int) project.Limit {
	draw := func(of, times int, name string) int {
		if of == 0 {
			return 0
		}
		return rapid.IntRange(1, most*times).Draw(t, name)
	}
	return project.Limit{
		RequestsPerMinute: draw(shape.RequestsPerMinute, 1, "rpm"),
		RequestsPerHour:   draw(shape.RequestsPerHour, 2, "rph"),
		RequestsPerDay:    draw(shape.RequestsPerDay, 3, "rpd"),
		TokensPerMinute:   draw(shape.TokensPerMinute, 5, "tpm"),
		TokensPerHour:     draw(shape.TokensPerHour, 10, "tph"),
		TokensPerDay:      draw(shape.TokensPerDay, 15, "tpd"),
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

// ticket is a reservation, and what the model knows of it.
type ticket struct {
	*project.Reservation
	use       *used
	estimated int
	forgotten bool // by a reset
}

// play lets a history happen to a limiter and to the model. It returns the first
// step in which they differ, or an empty string.
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
			tk.use, want = n.take(used{clock(), requests, int64(max(s.tokens, 1)), 1}, false) // who estimates nothing reserves one
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

// settle ends a reservation, and the model's. Only the first end counts.
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
