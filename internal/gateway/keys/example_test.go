package keys_test

import (
	"context"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

func Example() {
	ctx := context.Background()
	ring, err := keys.Open(nil, nil) // in memory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()

	secret, key, err := ring.Create(ctx, "search", "the crawler", 90*24*time.Hour)
	if err != nil {
		fmt.Println(err)
		return
	}
	found, ok := ring.Find(secret)
	fmt.Println(found.Project, ok)

	ring.Revoke(ctx, key.ID)
	_, ok = ring.Find(secret)
	fmt.Println(ok)
	// Output:
	// search true
	// false
}
