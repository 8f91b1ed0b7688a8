// Command limits shows limits in the terminal: which calls pass, which are denied and for how
// long, how calls wait, and what settling a reservation gives back.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

func main() { show(os.Stdout) }

// call is a request to a model.
type call struct {
	user   string
	tokens int64
}

func user(c call) string  { return c.user }
func team(call) string    { return "the team" }
func tokens(c call) int64 { return c.tokens }

func show(w io.Writer) {
	allow(w)
	combine(w)
	wait(w)
	settle(w)
	pace(w)
}

func allow(w io.Writer) {
	perUser := limit.NewLimiter(user, limit.PerSecond(2).WithBurst(3))
	title(w, "A limit of 2/s, burst 3, for each user: a denial says when the call passes")
	for i := range 5 {
		report(w, fmt.Sprintf("ann's call %d", i+1), perUser.Take(call{user: "ann"}, 1))
	}
	report(w, "bob's call 1", perUser.Take(call{user: "bob"}, 1))
	time.Sleep(500 * time.Millisecond)
	report(w, "ann's, 500ms later", perUser.Take(call{user: "ann"}, 1))
}

func combine(w io.Writer) {
	perUser := limit.NewLimiter(user, limit.PerMinute(3))
	perTeam := limit.NewLimiter(team, limit.PerMinute(1000)).WithCost(tokens)
	both := limit.Combine(perUser, perTeam)
	title(w, "3/min for each user and 1000 tokens/min for the team, as one: all or nothing")
	for _, c := range []call{{"ann", 600}, {"bob", 600}, {"bob", 400}} {
		name := fmt.Sprintf("%s, %d tokens", c.user, c.tokens)
		if both.Allow(c) {
			fmt.Fprintf(w, "  %-22s passes\n", name)
			continue
		}
		fmt.Fprintf(w, "  %-22s denied; bob still has %d calls\n", name, perUser.Peek(call{user: "bob"}).Remaining)
	}
}

func wait(w io.Writer) {
	perUser := limit.NewLimiter(user, limit.PerSecond(4).WithBurst(1))
	title(w, "Waiting for 4/s: first come, first served, and a cancelled wait takes nothing")
	start := time.Now()
	var out sync.Mutex
	var all sync.WaitGroup
	for i := range 4 {
		ctx, cancel := context.WithCancel(context.Background())
		all.Go(func() {
			err := perUser.Wait(ctx, call{user: "ann"})
			out.Lock()
			defer out.Unlock()
			fmt.Fprintf(w, "  waiter %d after %4dms: %s\n", i+1, time.Since(start).Milliseconds(), outcome(err))
		})
		time.Sleep(10 * time.Millisecond) // the waiters come one after another
		if i == 2 {
			cancel()
		}
		defer cancel()
	}
	all.Wait()
}

func settle(w io.Writer) {
	perModel := limit.NewLimiter(func(model string) string { return model }, limit.PerMinute(1000).Using(limit.SlidingLog))
	title(w, "1000 tokens/min: reserve an estimate, call, then settle what it cost")
	r, d := perModel.ReserveN("gpt", 800)
	fmt.Fprintf(w, "  reserved 800, %d left\n", d.Remaining)
	r.Settle(150)
	fmt.Fprintf(w, "  settled at 150, %d left\n", perModel.Peek("gpt").Remaining)
}

func pace(w io.Writer) {
	queue := limit.NewQueue(limit.PerSecond(10).WithBurst(3))
	title(w, "A queue of 3 that drains at 10/s, and five at once")
	start := time.Now()
	var out sync.Mutex
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			err := queue.Wait(context.Background())
			out.Lock()
			defer out.Unlock()
			fmt.Fprintf(w, "  after %3dms: %s\n", time.Since(start).Milliseconds(), outcome(err))
		})
	}
	all.Wait()
}

func title(w io.Writer, text string) { fmt.Fprintf(w, "\n%s\n", text) }

func report(w io.Writer, who string, d limit.Decision) {
	if d.Allowed {
		fmt.Fprintf(w, "  %-22s passes, %d left\n", who, d.Remaining)
		return
	}
	fmt.Fprintf(w, "  %-22s denied by %v, passes in %v\n", who, d.Limit, d.RetryAfter.Round(time.Millisecond))
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "passes"
}
