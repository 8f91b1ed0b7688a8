package event_test

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/llm"
)

// printer is an observer: a limiter calls it for each event, before the call goes on.
type printer struct{}

func (printer) Observe(_ context.Context, e event.Event) {
	switch e.Kind {
	case event.Denied:
		fmt.Println(e.Model, "denied by", e.Limit)
	case event.Settled:
		fmt.Println(e.Model, "reserved", e.Estimated, "and used", e.Used.Input+e.Used.Output)
	default:
		fmt.Println(e.Model, e.Kind)
	}
}

// A limiter has an observer in its Config, and calls it for each event:
//
//	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Observer: observers})
func Example() {
	observers := event.Observers{printer{}} // and others, such as those of package telemetry
	for _, e := range []event.Event{        // as of a model with one request a minute
		{Kind: event.Admitted, Model: "gpt-4o", Estimated: 1000},
		{Kind: event.Settled, Model: "gpt-4o", Estimated: 1000, Used: llm.Tokens{Input: 900, Output: 300}},
		{Kind: event.Denied, Model: "gpt-4o", Limit: "max_rpm"},
	} {
		observers.Observe(context.Background(), e)
	}
	// Output:
	// gpt-4o admitted
	// gpt-4o reserved 1000 and used 1200
	// gpt-4o denied by max_rpm
}
