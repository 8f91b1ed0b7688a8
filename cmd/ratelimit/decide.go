package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

func newDecide() *cobra.Command {
	a := &adminFlags{}
	var q admin.Question
	c := &cobra.Command{
		Use:   "decide MODEL TOKENS",
		Short: "Say whether a call would pass now, and if not, when",
		Long: `Say whether a call of a model with so many tokens, prompt and output together, would pass now;
if not, which limit denies it, and when it would pass. Nothing is charged. The exit code is 0
if it would pass, and 3 if not.`,
		Example: `  ratelimit decide gpt-6-luna 1200
  ratelimit decide gpt-6-luna 1_200 --project acme/search && ./run-the-batch
  ratelimit decide gpt-6-luna 900 --output 300 --key ID --json`,
		Args: arguments,
		RunE: a.run(func(c *cobra.Command, client *admin.Client, args []string) error {
			if err := readQuestion(&q, args); err != nil {
				return usageError{err}
			}
			answer, err := client.Decide(c.Context(), q)
			if err != nil {
				err = suggestModel(c.Context(), client, q.Model, err)
				if _, unknown := errors.AsType[unknownModel](err); unknown && q.Provider == "" {
					err = fmt.Errorf("%w (--provider NAME says whose model it is)", err)
				}
				return err
			}
			err = show(c, answer, func(width int) []string { return answerLines(answer, time.Now(), width) })
			if err == nil && !answer.Allowed {
				return errNo
			}
			return err
		}),
		ValidArgsFunction: a.complete(modelNames),
	}
	a.flags(c)
	f := c.Flags()
	f.StringVar(&q.Project, "project", "", "the `PATH` of the call's project (default: the key's, or that of calls without one)")
	f.StringVar(&q.Key, "key", "", "the `ID` of the virtual key that the call has")
	f.StringVar(&q.User, "user", "", "the user of the call")
	f.StringVar(&q.Run, "run", "", "the run that the call belongs to")
	f.StringVar(&q.Provider, "provider", "", "the `NAME` of the provider, if several have the model, or none has a quota for it")
	f.IntVar(&q.Output, "output", 0, "how many of the `TOKENS` are output; the others are the prompt")
	jsonFlag(c)
	c.RegisterFlagCompletionFunc("project", a.completeFlag(projectNames))
	c.RegisterFlagCompletionFunc("key", a.completeFlag(keyNames))
	return c
}

// readQuestion reads the model and the tokens.
func readQuestion(q *admin.Question, args []string) error {
	tokens, err := strconv.Atoi(strings.ReplaceAll(args[1], "_", ""))
	if err != nil || tokens < 0 {
		return fmt.Errorf("TOKENS is %s: it must be a number from 0 on, such as 1_200", message.Quote(args[1]))
	}
	if q.Output < 0 || q.Output > tokens {
		return errors.New("--output must be from 0 to TOKENS")
	}
	q.Model = args[0]
	if q.Output > 0 {
		q.Input = tokens - q.Output
	} else {
		q.Tokens = tokens
	}
	return nil
}

// answerLines returns an answer for people.
func answerLines(a admin.Answer, now time.Time, width int) []string {
	verdict := console.Good("yes")
	if !a.Allowed {
		verdict = console.Bad("no")
	}
	lines := console.Sentences(width, a.Reason)
	lines = append([]string{verdict}, lines...)
	byRun := slices.ContainsFunc(a.Limits, func(l admin.AskedLimit) bool { return l.Scope == "run" && !l.Enough })
	switch wait := time.Duration(a.RetryAfter * 1e9); {
	case a.Never:
		lines = append(lines, console.Sentences(width, "However long it waits, it does not pass.")...)
	case !a.Allowed && byRun:
		lines = append(lines, console.Sentences(width, fmt.Sprintf("The run's budget does not reset; the run is forgotten in %v.", inSeconds(wait)))...)
	case !a.Allowed && wait > 0:
		lines = append(lines, console.Sentences(width, fmt.Sprintf("It would pass in %v, at %s, if nothing else is used; it would wait for %v at most.",
			inSeconds(wait), moment(now, now.Add(wait)), time.Duration(a.MaxWait*1e9)))...)
	}
	return append(lines, limitLines(a.Limits, now, width)...)
}

// limitLines returns the limits that were asked as a table: first those that deny.
func limitLines(limits []admin.AskedLimit, now time.Time, width int) []string {
	if len(limits) == 0 {
		return nil
	}
	t := console.NewTable(console.Text("limit of").ShortenedAtStart(14), console.Text("limit"), console.Number("left"), console.Number("needed"), console.Number("max"),
		console.Text("enough"), console.Text("in"), console.Text("").Below())
	for _, denies := range []bool{true, false} {
		for _, l := range limits {
			if l.Enough == denies {
				continue
			}
			enough, style, in := "yes", styleOf(0, false), ""
			if !l.Enough {
				enough, style = "no", console.Bad
				in = comesBack(l)
			}
			left := amountOf(l.Unit, l.Remaining)
			if l.Unknown {
				left = "not known"
			}
			t.AddStyled(style, l.Owner, admin.LimitInWords(l.Limit), left, amountOf(l.Unit, l.Needed), amountOf(l.Unit, l.Max), enough, in, aboutAsked(l))
		}
	}
	return append([]string{""}, t.Lines(width)...)
}

// comesBack returns when a limit that denies has enough left. Nobody knows when a call ends that holds a
// slot, and its lease would only say when it ends at the latest.
func comesBack(l admin.AskedLimit) string {
	switch {
	case l.Never:
		return "never"
	case l.Unit == "calls":
		return "when one ends"
	}
	return inSeconds(time.Duration(l.RetryAfter * 1e9)).String()
}

// moment returns a time, with its date if it is not today.
func moment(now, at time.Time) string {
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// inSeconds returns a wait rounded up to whole seconds, or to milliseconds if it is shorter than a second.
func inSeconds(d time.Duration) time.Duration {
	if d < time.Second {
		return message.Wait(d)
	}
	return (d + time.Second - 1).Truncate(time.Second)
}

// aboutAsked says what more is to be known of a limit: how much of what was used is only reserved, and the share of it
// that has denied the call.
func aboutAsked(l admin.AskedLimit) string {
	switch {
	case l.Share == nil && l.Reserved > 0:
		return fmt.Sprintf("calls under way have reserved %s of what is used", amountOf(l.Unit, l.Reserved))
	case l.Share == nil:
		return ""
	}
	return fmt.Sprintf("its share is %s, of which %s are used; %d projects share", amountOf(l.Unit, l.Share.Max), amountOf(l.Unit, l.Share.Used), l.Share.Projects)
}

// amountOf returns an amount of a unit that the admin API names.
func amountOf(unit string, n int64) string {
	if unit == "nanodollars" {
		return price.Amount(n).Floor().String()
	}
	return numeral.Grouped(n)
}
