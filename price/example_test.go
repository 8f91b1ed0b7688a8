package price_test

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

func Example() {
	p, err := price.New(price.Terms{
		Rates: price.Rates{Input: 5 * price.Dollar / 2, CachedInput: price.Dollar / 4, Output: 10 * price.Dollar},
		Batch: price.Service{Percent: 50},
	})
	if err != nil {
		panic(err)
	}
	now := time.Now()
	fmt.Println("reserve", p.Most(1200, 500, "", now))
	cost, lines := p.Cost(llm.Usage{Input: 1200, Cached: 1000, Output: 300}, now)
	for _, l := range lines {
		fmt.Printf("%d tokens of %s at %v a million: %v\n", l.Tokens, l.Part, l.Rate, l.Cost)
	}
	fmt.Println("settle", cost)
	// Output:
	// reserve $0.008
	// 200 tokens of input at $2.50 a million: $0.0005
	// 1000 tokens of cached_input at $0.25 a million: $0.00025
	// 300 tokens of output at $10.00 a million: $0.003
	// settle $0.00375
}
