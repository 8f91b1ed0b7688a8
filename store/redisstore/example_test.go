package redisstore_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// Two machines share a limit of a hundred tokens an hour. The first reserves the possible cost of a
// call, and settles its real cost; the second has the rest.
func Example() {
	server, err := redistest.Start(redistest.Options{}) // yours is at redis://…
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	machine := func() *redisstore.Store {
		s, err := redisstore.New(redisstore.Config{URL: server.URL(), Timeout: 10 * time.Second, OnStoreLoss: redisstore.Share})
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	one, two := machine(), machine()
	defer one.Close()
	defer two.Close()

	ctx := context.Background()
	tokens := func(n int64) []store.Charge {
		return []store.Charge{{Key: "team/tokens", Limits: []limit.Limit{limit.PerHour(100).Using(limit.SlidingLog)}, N: n}}
	}
	receipt, decisions, err := one.Take(ctx, tokens(80))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("one takes 80:", store.Allowed(decisions))
	_, decisions, err = two.Take(ctx, tokens(50))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("two takes 50:", store.Allowed(decisions), "of", store.Deciding(decisions).Remaining)
	if err := one.Settle(ctx, receipt, []int64{30}); err != nil {
		log.Fatal(err)
	}
	_, decisions, err = two.Take(ctx, tokens(50))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("after one has settled for 30, two takes 50:", store.Allowed(decisions))

	// Output:
	// one takes 80: true
	// two takes 50: false of 20
	// after one has settled for 30, two takes 50: true
}
