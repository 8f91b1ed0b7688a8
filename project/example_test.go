package project_test

import (
	"context"
	"fmt"
	"log"

	"dappco.re/go/core/go-ratelimit/project"
)

func ExampleNew() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 2, RequestsPerDay: 100})
	defer limiter.Close()
	ctx := context.Background()
	for _, id := range []string{"project-123", "project-123", "project-123", "project-456"} {
		fmt.Println(limiter.Allow(ctx, id))
	}
	// Output:
	// true <nil>
	// true <nil>
	// false ratelimit: rate limit exceeded: 2 requests/minute
	// true <nil>
}

// A denial says which limit it was, and where the project stands in each.
func ExampleLimiter_Spend() {
	limiter := project.New(&project.Limit{RequestsPerMinute: 10, RequestsPerHour: 12})
	defer limiter.Close()
	ctx := context.Background()
	for range 3 {
		d, err := limiter.Spend(ctx, project.Call{Project: "p", Requests: 5})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("allowed: %t, exceeded: %q\n", d.Allowed, d.Limit)
		for _, s := range d.Windows() {
			fmt.Printf("  %d of %d left in any %v\n", s.Remaining, s.Window.Count, s.Window.Period)
		}
	}
	// Output:
	// allowed: true, exceeded: ""
	//   5 of 10 left in any 1m0s
	//   7 of 12 left in any 1h0m0s
	// allowed: true, exceeded: ""
	//   0 of 10 left in any 1m0s
	//   2 of 12 left in any 1h0m0s
	// allowed: false, exceeded: "requests_per_hour"
	//   0 of 10 left in any 1m0s
	//   2 of 12 left in any 1h0m0s
}

// A call takes what it is thought to use, and gives back what it has not used.
func ExampleNewWithConfig() {
	limiter, err := project.NewWithConfig(project.Config{
		Default: &project.Limit{TokensPerMinute: 10_000},
		Limits:  map[string]project.Limit{"team-a": {TokensPerMinute: 20_000, Weight: 3}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()

	ctx := context.Background()
	call := project.Call{Project: "team-a", Estimated: 15_000}
	res, d, err := limiter.Take(ctx, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("allowed:", d.Allowed, d.Windows()[0].Remaining)
	_, d, _ = limiter.Take(ctx, call)
	fmt.Println("allowed:", d.Allowed, d.Limit)

	res.Commit(900, 300) // is what it came to
	_, d, _ = limiter.Take(ctx, call)
	fmt.Println("allowed:", d.Allowed, d.Windows()[0].Remaining)
	// Output:
	// allowed: true 5000
	// allowed: false tokens_per_minute
	// allowed: true 3800
}

// A limit that is raised lets calls that wait go on, at once.
func ExampleLimiter_Acquire() {
	limiter := project.New(&project.Limit{RequestsPerDay: 1})
	defer limiter.Close()
	ctx := context.Background()
	call := project.Call{Project: "p"}
	if _, err := limiter.Spend(ctx, call); err != nil {
		log.Fatal(err)
	}
	passed := make(chan error)
	go func() {
		_, _, err := limiter.Acquire(ctx, call) // waits for a day
		passed <- err
	}()
	if err := limiter.SetLimit("p", project.Limit{RequestsPerDay: 2}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-passed)

	call.Requests = 3
	_, _, err := limiter.Acquire(ctx, call)
	fmt.Println(err)
	// Output:
	// <nil>
	// ratelimit: it can never pass: more than project "p" may use 2 requests a day
}
