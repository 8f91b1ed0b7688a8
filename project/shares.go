package project

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
)

// CheckShares returns an error if the MinShares of limits, which are by the ids of their
// projects, add up to more than 100%. What a project and those below it have at least is
// the larger of its own MinShare and the sum of theirs.
func CheckShares(limits map[string]Limit) error {
	limits = outermost(limits)
	ids := slices.Collect(maps.Keys(limits))
	ids = slices.DeleteFunc(ids, func(id string) bool { return limits[id].MinShare == 0 })
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(limits[b].MinShare, limits[a].MinShare), strings.Compare(a, b))
	})
	var sum limit.Percent
	var all []string
	for _, id := range ids {
		sum += limits[id].MinShare
		all = append(all, fmt.Sprintf("%v of %s", limits[id].MinShare, id))
	}
	if sum <= 100+rounding {
		return nil
	}
	if more := len(all) - mostNamed; more > 0 {
		all = append(all[:mostNamed], fmt.Sprintf("those of %d more", more))
	}
	return fmt.Errorf("ratelimit: the minimum shares of projects add up to %.6g%%, which must be 100%% at most: %s", float64(sum), strings.Join(all, ", "))
}

// outermost returns the MinShares of the projects that are in no other, with what those below
// them have.
func outermost(limits map[string]Limit) map[string]Limit {
	all := map[string]bool{} // with those above them
	for id, l := range limits {
		for ; id != "" && l.MinShare > 0; id = parentOf(id) {
			all[id] = true
		}
	}
	deepest := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")) })
	inside, tops := map[string]limit.Percent{}, map[string]Limit{}
	for _, id := range deepest {
		least := max(limits[id].MinShare, inside[id])
		if above := parentOf(id); above != "" {
			inside[above] += least
		} else {
			tops[id] = Limit{MinShare: least}
		}
	}
	return tops
}

const (
	rounding  = 1e-9 // by how much a sum of percentages may be wrong
	mostNamed = 10   // how many projects an error names, those with the largest shares
)

// checkLimits returns an error if one of the limits is not valid, or if with them the MinShares
// of all projects are more than everything.
func (l *Limiter) checkLimits(limits map[string]Limit) error {
	for id, each := range limits {
		if err := checkLimit(id, each); err != nil {
			return err
		}
	}
	return l.checkShares(limits)
}

func (l *Limiter) checkShares(limits map[string]Limit) error {
	all := maps.Clone(l.minima)
	maps.Copy(all, limits)
	return CheckShares(all)
}

// withinShares returns the limits of a store without those that have a MinShare, if these are
// more than everything together with those that are set here. Limiters that set limits at the
// same time can cause that, and so can a Config that differs from theirs.
func (l *Limiter) withinShares(limits map[string]Limit) map[string]Limit {
	if err := l.checkShares(limits); err != nil {
		l.engine.Miss(fmt.Errorf("ratelimit: the store's limits with a new MinShare are not used: %s", message.Plain(err)))
		maps.DeleteFunc(limits, func(_ string, each Limit) bool { return each.MinShare > 0 })
	}
	return limits
}

// dedicate lets projects whose plans were set have what is dedicated to them. A plan of nil was
// taken back.
func (l *Limiter) dedicate(some map[string]*plan) {
	changed := false
	for id, p := range some {
		before := l.minima[id]
		delete(l.minima, id)
		if p != nil && p.limit.MinShare > 0 {
			l.minima[id] = p.limit
		}
		changed = changed || before != l.minima[id] && (before.Dedicated || l.minima[id].Dedicated)
	}
	if !changed {
		return
	}
	dedicated := map[string]*engine.Rules{}
	for id, each := range l.minima {
		if each.Dedicated {
			dedicated[id] = l.plans.of(id).rules()
		}
	}
	l.engine.Dedicate(dedicated)
}

// Shares returns where each of those below a project stands in the limits of the project that they
// share, those of an hour and a day too, in the order of their names; dollars are in nanodollars. The
// project itself is among them if it calls. It is empty as long as nobody has to share.
func (l *Limiter) Shares(projectID string) []event.ProjectShare {
	scope := l.scopes.known(projectID)
	if scope == nil {
		return nil
	}
	return l.engine.Shares(scope)
}
