package limit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

func ExampleLimiter() {
	user := func(name string) string { return name }
	perUser := limit.NewLimiter(user, limit.PerSecond(2), limit.PerDay(1000))

	for range 3 {
		fmt.Println("ann:", perUser.Allow("ann"))
	}
	fmt.Println("bob:", perUser.Allow("bob"))
	// Output:
	// ann: true
	// ann: true
	// ann: false
	// bob: true
}

func ExampleLimiter_take() {
	perUser := limit.NewLimiter(func(name string) string { return name }, limit.PerHour(100), limit.PerDay(500))

	d := perUser.Take("ann", 80)
	fmt.Println(d.Allowed, d.Limit, d.Remaining)

	d = perUser.Take("ann", 30)
	fmt.Println(d.Allowed, d.Limit, d.Remaining, d.RetryAfter.Round(time.Minute))

	d = perUser.Take("ann", 101)
	fmt.Println(d.Allowed, d.Limit, d.RetryAfter == limit.Never)
	// Output:
	// true 100/h 20
	// false 100/h 20 6m0s
	// false 100/h true
}

func ExampleNewLimiterFunc() {
	type request struct{ user, plan string }
	plans := map[string][]limit.Limit{
		"free": {limit.PerDay(2)},
		"paid": {limit.PerDay(1000), limit.PerSecond(50)},
		// "staff" has no limits
	}
	perUser := limit.NewLimiterFunc(
		func(r request) string { return r.user },
		func(r request) []limit.Limit { return plans[r.plan] },
	)
	for _, r := range []request{{"ann", "free"}, {"bob", "paid"}, {"eve", "staff"}} {
		d := perUser.Take(r, 3)
		fmt.Println(r.user, d.Allowed)
	}
	// Output:
	// ann false
	// bob true
	// eve true
}

func ExampleLimiter_WithCost() {
	tokens := limit.NewLimiter(func(string) string { return "all" }, limit.PerMinute(20)).
		WithCost(func(prompt string) int64 { return int64(len(prompt)) })

	fmt.Println(tokens.Allow("how are you?"))
	fmt.Println(tokens.Allow("and who are you?"))
	fmt.Println(tokens.Allow("fine"))
	// Output:
	// true
	// false
	// true
}

func ExampleCombine() {
	type call struct {
		user   string
		tokens int64
	}
	user := func(c call) string { return c.user }
	requests := limit.NewLimiter(user, limit.PerMinute(10))
	tokens := limit.NewLimiter(user, limit.PerMinute(1000)).
		WithCost(func(c call) int64 { return c.tokens })
	both := limit.Combine[call](requests, tokens)

	fmt.Println(both.Allow(call{"ann", 900}))
	fmt.Println(both.Allow(call{"ann", 200})) // too many tokens, so no request is charged either
	fmt.Println(requests.Peek(call{"ann", 0}).Remaining, "requests left")
	// Output:
	// true
	// false
	// 9 requests left
}

func ExampleLimiter_wait() {
	jobs := limit.NewLimiter(func(queue string) string { return queue }, limit.PerHour(1))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	fmt.Println(jobs.Wait(ctx, "mail"))
	err := jobs.Wait(ctx, "mail") // fails at once: it would take an hour
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	err = jobs.WaitN(ctx, "mail", 2)
	fmt.Println(errors.Is(err, limit.ErrNever))
	// Output:
	// <nil>
	// true
	// true
}

func ExampleReservation() {
	tokens := limit.NewLimiter(func(model string) string { return model }, limit.PerHour(10_000))

	r, d := tokens.ReserveN("small", 4000) // what it may cost
	if !d.Allowed {
		fmt.Println("come back in", d.RetryAfter)
		return
	}
	defer r.Cancel() // nothing after Settle
	fmt.Println(tokens.Peek("small").Remaining, "left during the call")

	r.Settle(1500) // what it did cost
	fmt.Println(tokens.Peek("small").Remaining, "left after it")
	// Output:
	// 6000 left during the call
	// 8500 left after it
}

func ExampleQueue() {
	q := limit.NewQueue(limit.New(1, 5*time.Millisecond))
	begin := time.Now()
	for range 4 {
		if err := q.Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("at least 15ms:", time.Since(begin) >= 15*time.Millisecond)
	// Output:
	// at least 15ms: true
}

func ExampleParse() {
	for _, s := range []string{"100/min", "10/s burst 20", "60/1m30s log", "0/h"} {
		l, err := limit.Parse(s)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(l, "|", l.Count(), "every", l.Period(), "by", l.Algorithm(), "burst", l.Burst())
	}
	// Output:
	// 100/min | 100 every 1m0s by gcra burst 100
	// 10/s burst 20 | 10 every 1s by gcra burst 20
	// 60/1m30s log | 60 every 1m30s by log burst 60
	// ratelimit: limit "0/h": count "0": it must be a whole number from 1 to 2^62
}

func ExampleLimit_ResetAt() {
	losAngeles, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		fmt.Println(err)
		return
	}
	daily := limit.PerDay(1000).ResetAt(0, losAngeles) // at midnight Pacific
	fmt.Println(daily)

	l := limit.NewLimiter(func(project string) string { return project }, daily)
	d := l.Take("p1", 10)
	fmt.Println(d.Remaining, d.ResetAfter <= 25*time.Hour) // a day may have 25 hours
	// Output:
	// 1000/day fixed at 00:00 America/Los_Angeles
	// 990 true
}
