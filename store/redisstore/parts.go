package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// takeParts takes charges in a cluster: those of one part of the keyspace after another, in one order
// for all nodes. If a limit denies, what was taken from earlier parts is given back, and the decisions
// are those that the limits of all parts make without it.
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
		spread(t.each, part, each)
		if !t.taken {
			if err := r.retreat(ctx, charges, groups, at, takes, each); err != nil {
				return nil, nil, r.timeoutError(parent, err)
			}
			return nil, slices.Concat(each...), nil
		}
		for k, take := range t.takes {
			takes[part[k]] = take
		}
	}
	return r.receipt(takes), slices.Concat(each...), nil
}

// retreat gives back what was taken from the groups before the one that denied, and asks all groups except that one what
// they say to the denied take.
func (r *remote) retreat(ctx context.Context, charges []store.Charge, groups [][]int, deniedBy int, takes []*chargeReceipt, each [][]limit.Decision) (err error) {
	for _, part := range groups[:deniedBy] {
		taken := pick(takes, part)
		done, failed := r.correct(ctx, refund(taken))
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
		t := &task{kind: taskRefuse, charges: pick(charges, part)}
		o := r.opOf(t)
		o.dropLate = true
		if err := r.do(ctx, o); err != nil {
			return err
		}
		spread(t.each, part, each)
	}
	return nil
}

// byPart groups the indexes of keys that may share a script call: by the parts of the keyspace in a
// cluster, in their order, and otherwise all in one.
func (r *remote) byPart(n int, key func(i int) string) (groups [][]int) {
	indexes := make([]int, n)
	for i := range indexes {
		indexes[i] = i
	}
	if n == 0 {
		return nil
	}
	if !r.cluster {
		return [][]int{indexes}
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return cmp.Compare(partOf(key(a)), partOf(key(b))) })
	first := 0
	for i := 1; i <= n; i++ {
		if i == n || partOf(key(indexes[i])) != partOf(key(indexes[first])) {
			groups = append(groups, indexes[first:i:i])
			first = i
		}
	}
	return groups
}

// pick returns the elements at the given indexes.
func pick[E any](all []E, indexes []int) []E {
	picked := make([]E, len(indexes))
	for i, index := range indexes {
		picked[i] = all[index]
	}
	return picked
}

// spread stores the decisions on some of the charges at the indexes of these charges.
func spread(some [][]limit.Decision, indexes []int, each [][]limit.Decision) {
	for k, i := range indexes {
		each[i] = some[k]
	}
}
