package project_test

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// A stream reserves 20 tokens for its answer at first, and more as it comes. It ends when the project has no more.
func ExampleReservation_Extend() {
	l := project.New(&project.Limit{TokensPerMinute: 300, OnOverrun: project.OverrunCut})
	defer l.Close()
	ctx := context.Background()
	r, d, err := l.Take(ctx, project.Call{
		Project: "search", Tokens: llm.Tokens{Input: 8, Output: 20},
		Most: llm.Tokens{Input: 16, Output: 1000}, First: llm.Tokens{Input: 16, Output: 20},
	})
	if err != nil || !d.Allowed {
		fmt.Println(d.Reason(), err)
		return
	}
	reserved := 20
	for slice := 64; ; slice *= 2 {
		more, err := r.Extend(ctx, llm.Tokens{Output: slice}, 0)
		if err != nil || !more {
			break
		}
		reserved += slice
	}
	fmt.Println("the stream is cut off after", reserved, "tokens")
	r.Commit(8, reserved)
	// Output:
	// the stream is cut off after 212 tokens
}
