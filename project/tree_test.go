package project_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// A call is charged to its project and to all above it, and what denies is named.
func TestATreeOfProjects(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{
				Default: &project.Limit{},
				Limits: map[string]project.Limit{
					"acme":          {RequestsPerDay: 5},
					"acme/search":   {RequestsPerDay: 4, DollarsPerMonth: 10 * price.Dollar},
					"acme/search/*": {RequestsPerDay: 2},
				},
			}))
			ask := func(id string) project.Decision { return spend(t, l, project.Call{Project: id}) }
			for _, id := range []string{"acme/search/alice", "acme/search/alice", "acme/search/bob", "acme/search", "acme/chat"} {
				if d := ask(id); !d.Allowed {
					t.Fatalf("%s: %s", id, d.Reason())
				}
			}
			for id, owner := range map[string]string{"acme/search/alice": "acme/search/alice", "acme/search/carol": "acme/search", "acme/chat": "acme", "acme": "acme"} {
				if d := ask(id); d.Allowed || d.Owner != owner || d.Limit != "requests_per_day" {
					t.Errorf("%s: %+v", id, d)
				}
			}
			d, err := l.Peek(t.Context(), "acme/search/bob")
			if err != nil {
				t.Fatal(err)
			}
			var left []int64
			for _, s := range d.Windows() {
				left = append(left, s.Remaining)
			}
			if len(left) != 4 || left[0] != 1 || left[1] != 0 || left[2] != 10*price.Dollar || left[3] != 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// A project has the limit of the template that fits it best, at once when that changes.
func TestTemplates(t *testing.T) {
	l := newLimiter(t, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
		"*/*": {RequestsPerDay: 1}, "a/*": {RequestsPerDay: 2}, "*/b": {RequestsPerDay: 3}, "a/own": {RequestsPerDay: 4},
	}})
	for id, want := range map[string]int{"a": 0, "x/y": 1, "a/y": 2, "a/b": 2, "x/b": 3, "a/own": 4, "a/own/deeper": 0} {
		if got := l.Limit(id).RequestsPerDay; got != want {
			t.Errorf("%s has %d; want %d", id, got, want)
		}
	}
	if d := spend(t, l, project.Call{Project: "x/y"}); !d.Allowed {
		t.Error(d.Reason())
	}
	if err := l.SetLimit("x/*", project.Limit{RequestsPerDay: 9}); err != nil {
		t.Fatal(err)
	}
	if d := spend(t, l, project.Call{Project: "x/y"}); !d.Allowed || d.Windows()[0].Remaining != 7 {
		t.Errorf("after the template was set: %+v", d)
	}
	if err := l.UnsetLimit("x/*"); err != nil {
		t.Fatal(err)
	}
	if d := spend(t, l, project.Call{Project: "x/y"}); d.Allowed {
		t.Error("the template has no effect after it was taken back")
	}
}

func TestBadTemplates(t *testing.T) {
	l := newLimiter(t, project.Config{})
	for id, says := range map[string]string{"*": "default limit", "a//*": "empty name", "a/*": "MinShare"} {
		err := l.SetLimit(id, project.Limit{MinShare: 10})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// What a call costs is reserved, and settled to what it has cost, at every level.
func TestDollars(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{
				Default: &project.Limit{},
				Limits:  map[string]project.Limit{"acme": {DollarsPerDay: 3 * price.Dollar}, "acme/search": {Dollars: 2 * price.Dollar}},
			}))
			c := project.Call{Project: "acme/search", Dollars: price.Dollar * 3 / 2}
			res, d, err := l.Take(t.Context(), c)
			if err != nil || !d.Allowed {
				t.Fatal(d.Reason(), err)
			}
			if _, d, _ := l.Take(t.Context(), c); d.Allowed || d.Owner != "acme/search" || d.Limit != "dollars" {
				t.Errorf("%+v", d)
			}
			res.CommitPriced(llm.Tokens{Input: 1, Output: 1}, price.Dollar/2)
			if _, d, _ := l.Take(t.Context(), c); !d.Allowed {
				t.Error(d.Reason())
			}
			_, d, err = l.Take(t.Context(), project.Call{Project: "acme", Dollars: 2 * price.Dollar})
			if want := "project \"acme\" has $1.00 of its $3.00 a day left, and calls under way have reserved $1.50 of what is used"; err != nil || !strings.HasPrefix(d.Reason(), want) {
				t.Errorf("%s; want %s", d.Reason(), want)
			}
			_, _, err = l.Take(t.Context(), project.Call{Project: "acme/chat", Dollars: price.Unknown})
			if !errors.Is(err, project.ErrUnpriced) || !strings.Contains(err.Error(), "project \"acme\" has a limit in dollars") {
				t.Errorf("without a price: %v", err)
			}
			if _, d, err = l.Take(t.Context(), project.Call{Project: "other", Dollars: price.Unknown}); !d.Allowed {
				t.Errorf("nothing limits dollars: %v", err)
			}
		})
	}
}

// The windows of a limit with a calendar end when the calendar says.
func TestCalendarOfALimit(t *testing.T) {
	l := newLimiter(t, project.Config{Default: &project.Limit{DollarsPerMonth: price.Dollar, Resets: limit.Calendar{Zone: "Europe/Berlin"}}})
	res, d, err := l.Take(t.Context(), project.Call{Project: "p", Dollars: price.Dollar})
	if err != nil || !d.Allowed {
		t.Fatal(d.Reason(), err)
	}
	res.Commit(-1, -1)
	_, d, _ = l.Take(t.Context(), project.Call{Project: "p", Dollars: 1})
	berlin, _ := time.LoadLocation("Europe/Berlin")
	now := time.Now().In(berlin)
	next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, berlin)
	if off := time.Until(next) - d.RetryAfter; off < -time.Minute || off > time.Minute {
		t.Errorf("it passes in %v; want %v", d.RetryAfter, time.Until(next))
	}
	if want := "project \"p\" has $0.00 of its $1.00 of " + now.Month().String() + " left"; !strings.HasPrefix(d.Reason(), want) {
		t.Errorf("%s; want %s", d.Reason(), want)
	}
}

// A denial names the month of its window, however late it is read.
func TestMonthOfAnOldDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins on 1 January 2000
		l := newLimiter(t, project.Config{Default: &project.Limit{DollarsPerMonth: price.Dollar, Resets: limit.Calendar{Zone: "UTC"}}})
		spend(t, l, project.Call{Project: "p", Dollars: price.Dollar})
		for _, pass := range []time.Duration{0, 30*24*time.Hour + 23*time.Hour} {
			time.Sleep(pass)
			_, d, err := l.Take(t.Context(), project.Call{Project: "p", Dollars: 1})
			if err != nil || d.Allowed {
				t.Fatal(d, err)
			}
			time.Sleep(time.Minute)
			if s := d.Reason(); !strings.Contains(s, "of January") {
				t.Error(s)
			}
		}
	})
}

// A key's limit counts beside those of its project, and a run's for all calls that name it.
func TestKeysAndRuns(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{}, Runs: project.RunLimit{Calls: 2, Dollars: price.Dollar}}))
			if err := l.SetKeyLimits(map[string]*project.Limit{"k": {RequestsPerDay: 3}}); err != nil {
				t.Fatal(err)
			}
			ask := func(c project.Call) (d project.Decision) {
				_, d, err := l.Take(context.Background(), c)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			for range 2 {
				if d := ask(project.Call{Project: "a/b", Key: "k", Run: "r"}); !d.Allowed {
					t.Fatal(d.Reason())
				}
			}
			if d := ask(project.Call{Project: "a/b", Key: "k", Run: "r"}); d.Allowed || d.Owner != "run r" || d.Limit != project.RunCalls {
				t.Errorf("%+v", d)
			}
			if d := ask(project.Call{Project: "a", Run: "r"}); !d.Allowed {
				t.Error("a run of another project: " + d.Reason())
			}
			if d := ask(project.Call{Project: "a", Key: "k"}); !d.Allowed {
				t.Error(d.Reason())
			}
			if d := ask(project.Call{Project: "a", Key: "k"}); d.Allowed || d.Owner != "key k" || d.Limit != "requests_per_day" {
				t.Errorf("%+v", d)
			}
			if err := l.SetKeyLimits(map[string]*project.Limit{"k": nil}); err != nil {
				t.Fatal(err)
			}
			if d := ask(project.Call{Project: "a", Key: "k"}); !d.Allowed {
				t.Error("after the key's limit was taken back: " + d.Reason())
			}
			if _, _, err := l.Take(t.Context(), project.Call{Project: "a", Run: "r\n"}); !errors.Is(err, project.ErrInvalid) {
				t.Errorf("a bad run: %v", err)
			}
		})
	}
}

// What a project and those below it have at least is the larger of its own minimum and the sum of
// theirs.
func TestMinimaOfATree(t *testing.T) {
	for _, tt := range []struct {
		sum    float64
		minima map[string]limit.Percent
	}{
		{100, map[string]limit.Percent{"a": 60, "a/x": 50, "b": 40}},
		{110, map[string]limit.Percent{"a": 60, "a/x": 50, "a/y": 20, "b": 40}},
		{120, map[string]limit.Percent{"a/x/1": 40, "a/x/2": 40, "b/x": 40}},
		{100, map[string]limit.Percent{"a/x": 90, "a/x/1/2": 40, "a/x/1/3": 30, "b": 10}},
	} {
		limits := map[string]project.Limit{}
		for id, least := range tt.minima {
			limits[id] = project.Limit{MinShare: least}
		}
		if err := project.CheckShares(limits); (err != nil) != (tt.sum > 100) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%g%%", tt.sum)) {
			t.Errorf("%v: %v; want a sum of %v", tt.minima, err, tt.sum)
		}
	}
	l := newLimiter(t, project.Config{})
	if err := l.SetLimit("a/b", project.Limit{MinShare: 10, Dedicated: true}); err == nil || !strings.Contains(err.Error(), "below another") {
		t.Errorf("dedicated below another: %v", err)
	}
}
