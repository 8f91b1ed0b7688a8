package redisstore

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store"
)

// Programs of two versions share a server. Each has a library of its own, which keeps the accounts that it has written:
// what the other one writes counts for both.
func TestTwoVersions(t *testing.T) {
	t.Parallel()
	client := dialed(t, redistest.New(t).URL())
	var both [2]*remote
	for i := range both {
		both[i] = newRemote(client, "versions", patient, nil, nil)
		t.Cleanup(func() { both[i].Close() })
	}
	another := both[1].link
	another.name, another.text = library(arithmetic() + "-- of another version\n")
	if another.name == both[0].link.name {
		t.Fatal("both have one library")
	}
	for name, l := range everyKind(1000) {
		t.Run(name, func(t *testing.T) {
			charges, used := one(name, l, 5), int64(0)
			var receipts [2]store.Receipt
			for step := range 40 {
				i := step % 2
				if step%8 < 4 { // two takes of each, then their settlements
					receipt, decisions, err := both[i].Take(t.Context(), charges)
					if err != nil || receipt == nil {
						t.Fatal(decisions, err)
					}
					if step%8 < 2 {
						receipts[i] = receipt
					}
					used += 5
				} else if step%8 < 6 {
					if err := both[i].Settle(t.Context(), receipts[i], []int64{int64(4 + 2*i)}); err != nil {
						t.Fatal(err)
					}
					used += int64(2*i - 1)
				}
				decisions, err := both[1-i].Peek(t.Context(), charges)
				if err != nil || decisions[0].Used != used && !(isBucket(l) && decisions[0].Used == used-1) { // a bucket leaks
					t.Fatalf("step %d: %+v, %v; want %d used", step, decisions, err, used)
				}
			}
		})
	}
}
