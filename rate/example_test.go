package rate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/rate"
)

func Example() {
	lim := rate.NewLimiter(rate.Every(time.Minute), 2)
	for range 3 {
		fmt.Println(lim.Allow())
	}
	// Output:
	// true
	// true
	// false
}

func ExampleLimiter_ReserveN() {
	lim := rate.NewLimiter(10, 5)
	now := time.Now()
	lim.AllowN(now, 5)
	r := lim.ReserveN(now, 3)
	fmt.Println(r.OK(), r.DelayFrom(now))
	fmt.Println(lim.ReserveN(now, 6).OK(), "for more than the burst")
	// Output:
	// true 300ms
	// false for more than the burst
}

func ExampleLimiter_Wait() {
	lim := rate.NewLimiter(rate.Every(time.Hour), 1)
	lim.Allow()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := lim.Wait(ctx) // says so at once
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// rate: Wait(n=1) would exceed context deadline: context deadline exceeded
	// true
}

func ExampleSometimes() {
	rarely := rate.Sometimes{First: 2, Every: 4}
	for i := range 10 {
		rarely.Do(func() { fmt.Print(i, " ") })
	}
	// Output: 0 1 4 8
}
