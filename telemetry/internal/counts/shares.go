package counts

import (
	"maps"
	"slices"

	"dappco.re/go/core/go-ratelimit/event"
)

// Sum adds up the shares of one model's projects that are not listed.
func (l *Listing) Sum(projects []event.ProjectShare) []event.ProjectShare {
	sums := map[string]event.ProjectShare{}
	for _, p := range projects {
		p.Project = l.names[l.index(p.Project)]
		sum, ok := sums[p.Project]
		if !ok {
			sum = event.ProjectShare{Project: p.Project, Limits: slices.Clone(p.Limits)}
		}
		for i := range p.Limits {
			if one, all := p.Limits[i], &sum.Limits[i]; ok {
				all.Share, all.Used, all.Lent, all.Borrowed = all.Share+one.Share, all.Used+one.Used, all.Lent+one.Lent, all.Borrowed+one.Borrowed
			}
		}
		sum.Waiting += p.Waiting
		sums[p.Project] = sum
	}
	return slices.Collect(maps.Values(sums))
}
