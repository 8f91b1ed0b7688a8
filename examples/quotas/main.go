// Command quotas shows quotas per model in the terminal: how many of 300 calls at once pass,
// what settling gives back, when a denied call may come again, and two limiters that share one
// file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

func main() {
	if err := show(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const model = "gpt-4o"

var quotas = map[string]ratelimit.ModelQuota{
	model: {MaxRPM: 10, MaxTPM: 3000, MaxRPD: 1000},
}

func show(w io.Writer) error {
	if err := burst(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := settle(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return share(w)
}

// burst makes 300 calls at once.
func burst(w io.Writer) error {
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Quotas: quotas})
	if err != nil {
		return err
	}
	title(w, "10 requests and 3,000 tokens a minute: 300 calls at once, about 360 tokens each")
	var admitted, tokens atomic.Int64
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			if res, _ := rl.TryAcquire(model, 360); res != nil {
				admitted.Add(1)
				tokens.Add(360)
			}
		})
	}
	wg.Wait()
	fmt.Fprintf(w, "  %d pass, for %d tokens\n", admitted.Load(), tokens.Load())
	return nil
}

// settle corrects reservations to what calls have used.
func settle(w io.Writer) error {
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Quotas: quotas})
	if err != nil {
		return err
	}
	title(w, "An estimate is reserved, and corrected when the call has ended")
	first, _ := rl.TryAcquire(model, 2000)
	report(w, "2000 tokens reserved", rl.Decide(model, 2000))
	first.Commit(700, 150)
	report(w, "850 of them used", rl.Decide(model, 2000))
	second, _ := rl.TryAcquire(model, 2000)
	second.Commit(2000, 900)
	report(w, "2900 where 2000 were reserved", rl.Decide(model, 1))
	report(w, "a call larger than the quota", rl.Decide(model, 3001))

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = rl.Acquire(ctx, model, 100)
	fmt.Fprintf(w, "  %-32s deadline exceeded: %v\n", "a wait of 50ms for 100 tokens", errors.Is(err, context.DeadlineExceeded))
	return nil
}

// share lets two limiters use one file, as two processes could.
func share(w io.Writer) error {
	dir, err := os.MkdirTemp("", "quotas")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	title(w, "Two limiters, one SQLite file, one quota")
	var both [2]*ratelimit.RateLimiter
	for i := range both {
		both[i], err = ratelimit.NewWithSQLiteConfig(filepath.Join(dir, "limits.db"), ratelimit.Config{Quotas: quotas})
		if err != nil {
			return err
		}
		defer both[i].Close()
	}
	var admitted [2]int
	for i := range 20 {
		if res, _ := both[i%2].TryAcquire(model, 100); res != nil {
			admitted[i%2]++
		}
	}
	fmt.Fprintf(w, "  %d pass through one, %d through the other\n", admitted[0], admitted[1])
	return nil
}

func title(w io.Writer, text string) { fmt.Fprintf(w, "%s\n", text) }

func report(w io.Writer, what string, d ratelimit.Decision) {
	answer := "passes"
	switch {
	case d.RetryAfter == ratelimit.Never:
		answer = "never passes: " + string(d.Code)
	case !d.Allowed:
		answer = fmt.Sprintf("%s, come back in %v", d.Code, d.RetryAfter.Round(time.Minute))
	}
	fmt.Fprintf(w, "  %-32s next: %-38s %4d of %d tokens used\n", what, answer, d.Stats.TPM, d.Stats.MaxTPM)
}
