package store_test

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// A call is charged to a team and to a model, all or nothing, for what it may
// use, and corrected to what it used.
func Example() {
	ctx := context.Background()
	counters := store.NewMemory()
	defer counters.Close()

	call := func(estimate int64) []store.Charge {
		return []store.Charge{
			{Key: "team/red", Limits: []limit.Limit{limit.PerDay(5000)}, N: estimate},
			{Key: "model/large", Limits: []limit.Limit{limit.PerMinute(1000).Using(limit.SlidingLog)}, N: estimate},
		}
	}
	receipt, decisions, err := counters.Take(ctx, call(800))
	fmt.Println(store.Allowed(decisions), err)

	_, decisions, err = counters.Take(ctx, call(400))
	denied := store.Deciding(decisions)
	fmt.Println(denied.Allowed, err, denied.Limit, "has", denied.Remaining)

	counters.Settle(ctx, receipt, []int64{500, 500}) // it used less
	_, decisions, err = counters.Take(ctx, call(400))
	fmt.Println(store.Allowed(decisions), err)

	// Output:
	// true <nil>
	// false <nil> 1000/min log has 200
	// true <nil>
}
