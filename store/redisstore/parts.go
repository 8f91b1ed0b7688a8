package redisstore

import (
	"context"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// takeParts takes charges in a cluster: one part of the keyspace after another, in
// one order for everybody. Where a later one denies, those before are given back,
// and the answer is what all say without them.
func (r *remote) takeParts(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	takes := make([]*taken, len(charges))
	each := make([][]limit.Decision, len(charges))
	groups := r.byPart(len(charges), func(i int) string { return charges[i].Key })
	for at, part := range groups {
		t, err := r.ask(ctx, toTake, pick(charges, part))
		if err != nil {
			r.undo(slices.DeleteFunc(takes, func(t *taken) bool { return t == nil }))
			return nil, nil, err
		}
		spread(t.decisions, charges, part, each)
		if t.status == denied {
			err := r.retreat(ctx, charges, groups, at, takes, each)
			return nil, slices.Concat(each...), err
		}
		for k, i := range part {
			takes[i] = t.takes[k]
		}
	}
	return r.receipt(takes), slices.Concat(each...), nil
}

// retreat gives back what was taken of the groups before the one that denied, and
// asks all others what they say.
func (r *remote) retreat(ctx context.Context, charges []store.Charge, groups [][]int, deniedBy int, takes []*taken, each [][]limit.Decision) error {
	for at, part := range groups {
		if at < deniedBy {
			if _, err := r.correct(ctx, pick(takes, part), make([]int64, len(part)), true); err != nil {
				return err
			}
		}
		if at == deniedBy {
			continue
		}
		t, err := r.ask(ctx, toPeek, pick(charges, part))
		if err != nil {
			return err
		}
		spread(t.decisions, charges, part, each)
	}
	return nil
}
