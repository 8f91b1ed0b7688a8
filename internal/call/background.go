package call

import (
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// single has the facts by which a single call is settled, beside those of a batch.
type single struct {
	Kind  llm.Provider `json:"kind"`
	Quota string       `json:"quota"` // the name of the quota that was charged
}

// Background returns a call that the provider goes on with after its answer as a batch of one call, which its
// response settles when somebody fetches it. From then on only the batch can be settled.
func (c *Call) Background() *Batch {
	b := &Batch{
		Limits: c.Limits, Prices: c.Prices, Provider: c.priceProvider(), Owner: c.Owner,
		single: &single{c.Request.Provider, c.Quota},
		at:     c.quoted.at, prices: map[string]*price.Price{c.Request.Model: c.quoted.price},
		expected: Total{
			Calls: 1, Used: llm.Usage{Input: c.estimated.Input, Output: c.estimated.Output}, Dollars: int64(c.reserved),
		},
		reservation: c.reservation,
		owners:      engine.Owners{Project: c.Project, Key: c.Key, Run: c.Run, RunProject: c.Base, Shadow: c.ShadowOf},
	}
	c.addCharge(llm.Tokens{Input: -1, Output: -1}, c.reserved)
	c.reservation, c.Cost = nil, c.reserved
	return b
}

// SettleCall settles a call that the provider has made in the background, by the usage that its response reports.
func (b *Batch) SettleCall(used llm.Usage) {
	if b.single == nil {
		return
	}
	q, _ := b.Limits.Models.Quota(b.single.Quota)
	cost := b.cost("", used)
	if used.CostTold && llm.TellsCost(b.single.Kind) {
		cost = price.Amount(max(used.Cost, 0))
	}
	t := Total{Exact: true}
	t.add(used, cost)
	b.settled.Do(func() { b.commit(&t, used.TokensBy(b.single.Kind, q.Count)) })
}
