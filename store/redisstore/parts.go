package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// takeParts takes charges in a cluster: one part of the keyspace after another, in
// one order for everybody. Where a later one denies, those before are given back,
// and the answer is what all say without them.
func (r *remote) takeParts(parent context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	ctx, cancel := context.WithTimeout(parent, r.timeout)
	defer cancel()
	takes := make([]*chargeReceipt, len(charges))
	each := make([][]limit.Decision, len(charges))
	groups := r.byPart(len(charges), func(i int) string { return charges[i].Key })
	for at, part := range groups {
		t, err := r.ask(ctx, pick(charges, part))
		if err != nil {
			r.undo(slices.DeleteFunc(takes, func(t *chargeReceipt) bool { return t == nil }))
			return nil, nil, r.timeoutError(parent, err)
		}
		spread(t.decisions(t.status == allowed), charges, part, each)
		if t.status == denied {
			if err := r.retreat(ctx, charges, groups, at, takes, each); err != nil {
				return nil, nil, r.timeoutError(parent, err)
			}
			return nil, slices.Concat(each...), nil
		}
		for k, take := range t.takes() {
			takes[part[k]] = take
		}
	}
	return r.receipt(takes), slices.Concat(each...), nil
}

// retreat gives back what was taken of the groups before the one that denied, and
// asks all others what they say.
func (r *remote) retreat(ctx context.Context, charges []store.Charge, groups [][]int, deniedBy int, takes []*chargeReceipt, each [][]limit.Decision) (err error) {
	for _, part := range groups[:deniedBy] {
		taken := pick(takes, part)
		done, failed := r.correct(ctx, taken, make([]int64, len(part)), true)
		if !done {
			r.undo(taken)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return err
	}
	for at, part := range groups {
		if at == deniedBy {
			continue
		}
		decisions, err := r.peek(ctx, pick(charges, part), true)
		if err != nil {
			return err
		}
		spread(decisions, charges, part, each)
	}
	return nil
}

// byPart groups the places of keys by what may share a script call: the parts of
// the keyspace in a cluster, in their order, and otherwise all.
func (r *remote) byPart(n int, key func(i int) string) (groups [][]int) {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	if n == 0 {
		return nil
	}
	if !r.cluster {
		return [][]int{places}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(partOf(key(a)), partOf(key(b))) })
	first := 0
	for i := 1; i <= n; i++ {
		if i == n || partOf(key(places[i])) != partOf(key(places[first])) {
			groups = append(groups, places[first:i:i])
			first = i
		}
	}
	return groups
}

func pick[E any](all []E, places []int) []E {
	picked := make([]E, len(places))
	for i, place := range places {
		picked[i] = all[place]
	}
	return picked
}

// spread puts the decisions on some of the charges to their places.
func spread(decisions []limit.Decision, charges []store.Charge, places []int, each [][]limit.Decision) {
	for _, i := range places {
		n := len(charges[i].Limits)
		each[i], decisions = decisions[:n:n], decisions[n:]
	}
}
