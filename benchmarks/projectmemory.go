package main

import (
	"fmt"
	"runtime"

	"dappco.re/go/core/go-ratelimit/project"
)

const maxBytesPerProject = 200

// projectMemory measures what is kept of each of a million projects under the default limits, after
// one request of each and after another. The ids' own bytes are there before and not counted.
func projectMemory(b *bench) (result, error) {
	const name = "project/memory"
	ids := newKeys(b.sized(1_000_000))
	before := measureHeap()
	in := spending(project.DefaultLimit)
	defer in.stop()

	var rows []row
	made := 0
	for _, requests := range []int{1, 2} {
		what := fmt.Sprintf("requests each: %d", requests)
		b.step(what)
		for ; made < requests; made++ {
			if admitted := in.decide(ids); admitted != len(ids) {
				return result{}, fmt.Errorf("%d of %d projects were admitted: the figure would be too small", admitted, len(ids))
			}
		}
		used := measureHeap().perKey(before, len(ids))
		rows = append(rows, row{what, ours, used.heap, []string{fmt.Sprintf("%.1f", used.heap), fmt.Sprintf("%.1f", used.scanned)}})
	}
	runtime.KeepAlive(ids)
	return result{
		reports: []report{{
			name:    name,
			title:   "heap a project, 1M projects with ids of 16 bytes, three windows each; the ids themselves are not counted; measured once",
			columns: []string{"bytes/project", "of them scanned by the collector"},
			rows:    rows,
		}},
		checks: []check{{
			figure:   name + ": heap a project after one request",
			required: fmt.Sprintf("at most %d bytes", maxBytesPerProject),
			measured: fmt.Sprintf("%.1f", rows[0].value),
			pass:     rows[0].value <= maxBytesPerProject,
		}},
	}, nil
}
