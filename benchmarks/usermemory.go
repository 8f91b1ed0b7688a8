package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// userMemory measures what is kept of each of a million users of a project, whose limit is that of
// one template, after one call of each.
func userMemory(b *bench) (result, error) {
	const name = "project/users"
	ids := newKeys(b.sized(1_000_000))
	for i := range ids {
		ids[i] = "acme/search/" + ids[i]
	}
	var rows []row
	for what, resets := range map[string]limit.Calendar{nameAnyDay: {}, nameCalendarDay: {Zone: "UTC"}} {
		b.step(what)
		before := measureHeap()
		l, err := usersOf(ids, project.Limit{DollarsPerDay: 20 * price.Dollar, Resets: resets})
		if err != nil {
			return result{}, err
		}
		used := measureHeap().perKey(before, len(ids))
		rows = append(rows, row{what, ours, used.heap, []string{fmt.Sprintf("%.1f", used.heap), fmt.Sprintf("%.1f", used.scanned)}})
		if err := l.Close(); err != nil {
			return result{}, err
		}
	}
	runtime.KeepAlive(ids)
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	within := func(what string) check {
		return check{
			figure:   name + ": heap a user after one call, " + what,
			required: fmt.Sprintf("at most %d bytes", maxBytesPerProject),
			measured: fmt.Sprintf("%.1f", named(rows, what).value),
			pass:     named(rows, what).value <= maxBytesPerProject,
		}
	}
	return result{
		reports: []report{{
			name:    name,
			title:   "heap a user, 1M users of a template with dollars a day, one call each; their ids are not counted; measured once",
			columns: []string{"bytes/user", "of them scanned by the collector"},
			rows:    rows,
		}},
		checks: []check{within(nameAnyDay), within(nameCalendarDay)},
	}, nil
}

const (
	nameAnyDay      = "any 24 hours"
	nameCalendarDay = "calendar days"
)

// usersOf returns a limiter of which every user has made one call.
func usersOf(ids []string, each project.Limit) (*project.Limiter, error) {
	l, err := project.NewWithConfig(project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{"acme/search/*": each}})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		res, d, err := l.Take(context.Background(), project.Call{Project: id, Dollars: price.Dollar})
		if err != nil || !d.Allowed {
			return nil, fmt.Errorf("%s: %s: %w", id, d.Reason(), err)
		}
		res.Commit(1, 1)
	}
	return l, nil
}
