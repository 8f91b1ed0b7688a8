package ratelimit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Reserve what a call is expected to use, make the call, and commit what it has used.
func Example() {
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(os.TempDir(), "ratelimits.yaml"), // the file of Load and Persist
		Quotas:   map[string]ratelimit.ModelQuota{"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := rl.Acquire(context.Background(), "gpt-4o", 1200) // waits its turn
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Cancel() // does nothing after Commit

	stats := rl.Stats("gpt-4o")
	fmt.Println("reserved", stats.TPM, "of", stats.MaxTPM)

	// … the call, whose response reports what it has used.
	res.Commit(900, 150)

	stats = rl.Stats("gpt-4o")
	fmt.Println("used", stats.TPM, "in", stats.RPM, "request")
	// Output:
	// reserved 1200 of 30000
	// used 1050 in 1 request
}

func ExampleRateLimiter_TryAcquire() {
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(os.TempDir(), "ratelimits.yaml"),
		Quotas:   map[string]ratelimit.ModelQuota{"claude-sonnet-4": {MaxRPM: 50, MaxTPM: 40_000}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tokens := range []int{30_000, 20_000, 50_000} {
		res, d := rl.TryAcquire("claude-sonnet-4", tokens)
		switch {
		case d.Allowed:
			defer res.Cancel()
			fmt.Println(tokens, "reserved")
		case d.RetryAfter == ratelimit.Never:
			fmt.Println(tokens, "never:", d.Code)
		default:
			fmt.Println(tokens, "in", d.RetryAfter.Round(time.Minute), d.Code)
		}
	}
	// Output:
	// 30000 reserved
	// 20000 in 1m0s tpm_exceeded
	// 50000 never: tpm_exceeded
}

func ExampleRateLimiter_Decide() {
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath:  filepath.Join(os.TempDir(), "ratelimits.yaml"),
		Providers: []ratelimit.Provider{ratelimit.ProviderGemini},
		Quotas:    map[string]ratelimit.ModelQuota{"llama-3": {MaxRPM: 1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rl.RecordUsage("llama-3", 700, 80)
	for _, model := range []string{"gemini-2.5-pro", "gemini-2.0-flash-lite", "mistral", "llama-3"} {
		d := rl.Decide(model, 1000) // takes nothing
		fmt.Println(model, d.Allowed, d.Code)
	}
	// Output:
	// gemini-2.5-pro true ok
	// gemini-2.0-flash-lite true unlimited
	// mistral true unknown_model
	// llama-3 false rpm_exceeded
}

// A provider whose days begin at midnight Pacific counts by the calendar there, also on the
// days on which the clocks change.
func ExampleModelQuota_dayResetsAt() {
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(os.TempDir(), "ratelimits.yaml"),
		Quotas: map[string]ratelimit.ModelQuota{
			"gemini-2.5-pro": {MaxRPD: 1000, DayResetsAt: "00:00 America/Los_Angeles"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		fmt.Println(err)
		return
	}
	rl.RecordUsage("gemini-2.5-pro", 700, 80)
	stats := rl.Stats("gemini-2.5-pro")
	fmt.Println(stats.RPD, "of", stats.MaxRPD, "requests since", stats.DayStart.In(zone).Format("15:04"))
	// Output: 1 of 1000 requests since 00:00
}

// A call is charged to the limits of its project and to the quota of its model, or to neither.
func ExampleRateLimiter_NewProjects() {
	models, err := ratelimit.NewWithStore(store.NewMemory(), ratelimit.Config{
		Quotas: map[string]ratelimit.ModelQuota{"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer models.Close()
	_, err = models.NewProjects(project.Config{
		Default: &project.Limit{TokensPerMinute: 10_000},
		Limits:  map[string]project.Limit{"team-a": {TokensPerMinute: 20_000, Weight: 3}},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	call := ratelimit.Call{Project: "team-a", Model: "gpt-4o", Estimated: 15_000}
	res, d, err := models.TryAcquireCall(ctx, call)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("allowed:", d.Allowed, d.Windows()[0].Remaining)
	_, d, _ = models.TryAcquireCall(ctx, call)
	fmt.Println("allowed:", d.Allowed, d.Limit)

	res.Commit(900, 300) // what the call has used
	_, d, _ = models.TryAcquireCall(ctx, call)
	fmt.Println("allowed:", d.Allowed, d.Windows()[0].Remaining)
	fmt.Println("tokens of the model:", models.Stats("gpt-4o").TPM)
	// Output:
	// allowed: true 5000
	// allowed: false tokens_per_minute
	// allowed: true 3800
	// tokens of the model: 16200
}
