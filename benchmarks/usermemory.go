package main

import (
	"context"
	"fmt"
	"runtime"

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
	before := measureHeap()
	l, err := project.NewWithConfig(project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
		"acme/search/*": {DollarsPerDay: 20 * price.Dollar, Resets: limit.Calendar{Zone: "UTC"}},
	}})
	if err != nil {
		return result{}, err
	}
	defer l.Close()
	for _, id := range ids {
		res, d, err := l.Take(context.Background(), project.Call{Project: id, Dollars: price.Dollar})
		if err != nil || !d.Allowed {
			return result{}, fmt.Errorf("%s: %s: %w", id, d.Reason(), err)
		}
		res.Commit(1, 1)
	}
	used := measureHeap().perKey(before, len(ids))
	runtime.KeepAlive(ids)
	return result{
		reports: []report{{
			name:    name,
			title:   "heap a user, 1M users of a template with dollars a day; their ids are not counted; measured once",
			columns: []string{"bytes/user", "of them scanned by the collector"},
			rows:    []row{{"one call each", ours, used.heap, []string{fmt.Sprintf("%.1f", used.heap), fmt.Sprintf("%.1f", used.scanned)}}},
		}},
		checks: []check{{
			figure:   name + ": heap a user after one call",
			required: fmt.Sprintf("at most %d bytes", maxBytesPerProject),
			measured: fmt.Sprintf("%.1f", used.heap),
			pass:     used.heap <= maxBytesPerProject,
		}},
	}, nil
}
