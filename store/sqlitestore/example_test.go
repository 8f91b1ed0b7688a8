package sqlitestore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// Two processes would do the same: each opens the file, and both share its limits.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	charges := []store.Charge{{Key: "model", Limits: []limit.Limit{limit.PerDay(1000)}, N: 400}}
	for range 3 {
		s, err := sqlitestore.Open(filepath.Join(dir, "limits.db"))
		if err != nil {
			log.Fatal(err)
		}
		receipt, decisions, err := s.Take(ctx, charges)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(store.Allowed(decisions), store.Deciding(decisions).Remaining)
		if err := s.Settle(ctx, receipt, []int64{350}); err != nil { // less was used
			log.Fatal(err)
		}
		s.Close()
	}
	// Output:
	// true 600
	// true 250
	// false 300
}
