package admin

import (
	"cmp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/event"
)

// InnerShare is where a project stands in the limits of one above it, together with all projects below
// itself.
type InnerShare struct {
	event.ProjectShare
	Weight   int  `json:"weight"`
	Priority int  `json:"priority"`
	Own      bool `json:"own_calls,omitempty"` // only calls of the project itself, which are beside those of projects below it
}

// mostShares is how many of those below a project are shown with their shares.
const mostShares = 100

// innerShares returns the projects below one that share its limits, in the order of their paths, and
// whether there are more. The highest in the tree come before those below them, and among those of one
// level the ones that are closest to their shares.
func (a *Admin) innerShares(id string) (list []InnerShare, more bool) {
	limiter := a.gateway.Projects()
	members := limiter.Shares(id)
	if len(members) < 2 {
		return nil, false
	}
	byPath, inside := map[string]*InnerShare{}, map[string]int{} // inside counts the members
	for _, member := range members {
		for path := member.Project; path != id && path != ""; path = above(path) {
			if byPath[path] == nil {
				limit := limiter.Limit(path)
				byPath[path] = &InnerShare{ProjectShare: event.ProjectShare{Project: path}, Weight: max(limit.Weight, 1), Priority: limit.Priority}
			}
			byPath[path].add(member)
			inside[path]++
		}
	}
	for _, s := range byPath {
		list = append(list, *s)
	}
	for _, member := range members {
		if member.Project == id || inside[member.Project] > 1 {
			list = append(list, InnerShare{ProjectShare: member, Weight: 1, Own: true})
		}
	}
	if len(list) > mostShares {
		slices.SortFunc(list, func(a, b InnerShare) int {
			return cmp.Or(cmp.Compare(strings.Count(a.Project, "/"), strings.Count(b.Project, "/")), cmp.Compare(b.pressure(), a.pressure()), cmp.Compare(a.Project, b.Project))
		})
		list, more = list[:mostShares], true
	}
	slices.SortFunc(list, func(a, b InnerShare) int {
		if a.Project == b.Project && b.Own {
			return -1
		}
		return slices.Compare(strings.Split(a.Project, "/"), strings.Split(b.Project, "/"))
	})
	return list, more
}

// add adds what one of those that share the limits has, uses and waits for.
func (s *InnerShare) add(member event.ProjectShare) {
	s.Waiting += member.Waiting
	if s.Limits == nil {
		s.Limits = slices.Clone(member.Limits)
		return
	}
	for i, l := range member.Limits {
		sum := &s.Limits[i]
		sum.Share, sum.Used, sum.Part = sum.Share+l.Share, sum.Used+l.Used, sum.Part+l.Part
		sum.Lent, sum.Borrowed = max(0, sum.Part-max(sum.Share, sum.Used)), max(0, sum.Used-sum.Part)
	}
}

// pressure returns the largest part that is used of a share and of what is lent of it.
func (s *InnerShare) pressure() (most float64) {
	for _, l := range s.Limits {
		most = max(most, float64(l.Used)/float64(max(l.Share+l.Lent, 1)))
	}
	return most
}
