package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the command line, and returns its exit code: 0 if all is fine, 1 if
// something failed, 2 if the command line makes no sense.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitFine
	}
	fmt.Fprintln(stderr, withPrefix(err))
	var wrong usageError
	if errors.As(err, &wrong) {
		fmt.Fprintf(stderr, "See `%s --help`.\n", ran.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// withPrefix returns what an error says, in the way of all errors.
func withPrefix(err error) string {
	text := err.Error()
	if strings.HasPrefix(text, "ratelimit: ") {
		return text
	}
	return "ratelimit: " + text
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ratelimit",
		Short: "A gateway that keeps callers of LLM APIs inside their limits, exactly",
		Long: `A gateway that keeps callers of LLM APIs inside their limits, exactly.

Start it, and set the base URL of any SDK to it: requests and tokens are limited for
each model and each project, those who wait are served in turn, and no more passes
than the limit.`,
		Example: `  ratelimit demo                     see it at work, without any key
  ratelimit serve                    http://127.0.0.1:8080/openai/v1 is OpenAI's API now
  ratelimit serve --config gw.yaml   with limits of your own
  ratelimit status                   who uses what`,
		Args:          noSuchCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newDemo(), newCheck(), newStatus(), newKey(), newMigrate(), newVersion())
	return root
}

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// noSuchCommand refuses arguments of a command that has only commands below it.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{errors.New(text)}
}

// arguments lets a command have exactly those of its usage: the words after its name,
// of which those in brackets may be left out.
func arguments(c *cobra.Command, args []string) error {
	names := strings.Fields(c.Use)[1:]
	for i, name := range names {
		if i >= len(args) && !strings.HasPrefix(name, "[") {
			return usageError{fmt.Errorf("%s needs %s", c.CommandPath(), name)}
		}
	}
	if len(args) > len(names) {
		return usageError{fmt.Errorf("%s does not know what to do with %q", c.CommandPath(), args[len(names)])}
	}
	return nil
}
