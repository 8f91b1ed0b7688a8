package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// benchFlags says which load a benchmark makes.
type benchFlags struct {
	base, project, keyEnv string
	length                time.Duration
	callers, calls        int
	output                int
}

// The bounds of a benchmark.
const (
	longestBench = 10 * time.Minute
	mostCallers  = 10_000
)

func newBench() *cobra.Command {
	a := &adminFlags{}
	var b benchFlags
	c := &cobra.Command{
		Use:   "bench MODEL",
		Short: "Put load on a gateway, and measure it",
		Long: `Put load on a gateway, and measure it: how many calls pass a second, how long they take, how
many are denied, and whether more has passed than the limits allow. The calls are real: use a
gateway in front of ` + "`ratelimit mock`" + `, or they cost money.

Overshoot is what has passed beyond the limits of the model or of the project in some minute,
for certain: only calls that were both sent and answered within the minute count. The limits
come from the admin API. If there is overshoot, the exit code is 3.`,
		Example: `  ratelimit bench gpt-6-luna
  ratelimit bench gpt-6-luna --project search --callers 64 --for 70s
  RATELIMIT_KEY=rl-… ratelimit bench gpt-6-luna --calls 1000 --json`,
		Args: arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			if err := b.check(); err != nil {
				return usageError{err}
			}
			limits, unknown := limitsFor(c.Context(), client, args[0], b.project)
			r, err := b.run(c, args[0])
			if err != nil {
				return err
			}
			r.judge(limits, unknown)
			err = show(c, r, r.lines)
			switch {
			case err == nil && r.overshoots():
				return errNo
			case err == nil && r.Statuses["401"] > 0 && r.Passed+r.Denied == 0:
				return fmt.Errorf("no call has a valid key: make one with `ratelimit key create PROJECT`, and put it into the variable %s", b.keyEnv)
			}
			return err
		}),
		ValidArgsFunction: a.complete(modelNames),
	}
	a.flags(c)
	f := c.Flags()
	f.StringVar(&b.base, "url", "http://127.0.0.1:8080/openai/v1", "the base `URL` of the gateway for OpenAI's SDKs")
	f.StringVar(&b.project, "project", "", "the project of the calls, with keys: off")
	f.StringVar(&b.keyEnv, "key-env", "RATELIMIT_KEY", "read the virtual key of the calls from the variable `NAME`")
	f.DurationVar(&b.length, "for", 10*time.Second, "how long calls are made, up to 10m")
	f.IntVar(&b.callers, "callers", 16, "how many calls are made at a time, up to 10000")
	f.IntVar(&b.calls, "calls", 0, "how many calls are made at most; 0 is any number")
	f.IntVar(&b.output, "output", 16, "max_tokens of the calls")
	jsonFlag(c)
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	return c
}

func (b *benchFlags) check() error {
	u, err := url.Parse(b.base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("--url is %q: it must be one such as http://127.0.0.1:8080/openai/v1", b.base)
	case b.length <= 0 || b.length > longestBench:
		return fmt.Errorf("--for is %v: it must be more than 0, and %v at most", b.length, longestBench)
	case b.callers < 1 || b.callers > mostCallers:
		return fmt.Errorf("--callers is %d: it must be from 1 to %d", b.callers, mostCallers)
	case b.calls < 0 || b.output < 1:
		return errors.New("--calls must be 0 or more, and --output 1 or more")
	}
	return nil
}

// key returns the key of the calls. A gateway with keys: off passes any on.
func (b *benchFlags) key() string {
	if key := os.Getenv(b.keyEnv); key != "" {
		return key
	}
	return "bench"
}
