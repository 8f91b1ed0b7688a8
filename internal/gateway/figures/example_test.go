package figures_test

import (
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
)

func Example() {
	f := figures.New(func(figures.Name, bool) bool { return true }) // all names are an operator's
	of := figures.Name{Project: "acme/search", Model: "gpt-4o"}
	f.Count(of, &figures.Call{Input: 900, Output: 300})
	f.Count(of, &figures.Call{Denied: true, Limit: "tpm"})

	var sum figures.Sum
	for _, minute := range f.History(func(n figures.Name) bool { return n.Model == "gpt-4o" }) {
		sum.Add(&minute.Sum)
	}
	fmt.Println(sum.Passed, "passed,", sum.Denied, "denied")
	// Output: 1 passed, 1 denied
}
