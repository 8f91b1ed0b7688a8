package gateway

import (
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
)

// Figures returns what became of the calls of the last hour.
func (g *Gateway) Figures() *figures.Figures { return g.figures }

// count counts the request in the figures, if a project has made it and it was denied or refused, or a provider may
// have got it.
func (x *exchange) count() {
	denied, refused := x.Outcome == Denied, x.Outcome == Refused || x.Outcome == Lost
	if !denied && !refused && x.Upstream == 0 || x.path == "" {
		return
	}
	c := figures.Call{
		Denied: denied, Refused: refused, Limit: x.Limit, Failed: x.Outcome != Passed, Waited: x.call.Charged.Waited,
		Input: x.call.Charged.Input, Output: x.call.Charged.Output, Dollars: int64(x.call.Charged.Dollars),
		KeysOwn: x.Key != "" && x.User == "",
	}
	if x.Exact && x.Outcome == Passed {
		c.Estimated = x.call.Estimated()
	}
	x.g.figures.Count(figures.Name{Project: x.path, Model: x.Quota, Key: x.Key}, &c)
}

// named reports whether an operator has named the project and the model of a name, and not a client.
func (g *Gateway) named(n figures.Name, keysOwn bool) bool {
	if n.Model != "" {
		if _, ok := g.limits.Models.Quota(n.Model); !ok {
			return false
		}
	}
	return keysOwn || n.Project == figures.Other || hidden.Of[engine.Projects](g.limits.Projects).HasLimit(n.Project)
}
