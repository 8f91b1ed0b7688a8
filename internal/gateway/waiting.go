package gateway

import ratelimit "dappco.re/go/core/go-ratelimit"

// Waiting is a request that waits for its turn.
type Waiting struct {
	ratelimit.WaitingCall
	ID, User, Key, Run string // as in [Record]
}

// Waiting returns the requests that wait, of those that match a filter on projects, models and keys.
// Those that wait for one model are in the order in which they pass if none comes or leaves.
func (g *Gateway) Waiting(f Filter) (list []Waiting) {
	calls := g.limits.Models.WaitingCalls(func(tag any, path, quota string) bool {
		x, ok := tag.(*exchange)
		return ok && (f.Project == "" || within(path, f.Project)) && (f.Model == "" || quota == f.Model || x.Model == f.Model) &&
			(f.Key == "" || x.Key == f.Key)
	})
	for _, c := range calls {
		x := c.Tag.(*exchange) // its fields that are read here do not change while it waits
		list = append(list, Waiting{c, x.ID, x.User, x.Key, x.Run})
	}
	return list
}
