package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// The exit codes. docs/commands.md explains them.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
	exitNo     = 3
)

// errNo is the error of a command whose answer is no, and which it has already printed: a call would be
// denied, the gateway is not ready, a limit was exceeded.
var errNo = errors.New("no")

// Main runs a command line and returns its exit code: 0 if it succeeded, 1 if it failed,
// 2 if the command line itself is wrong, 3 if the answer is no.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	stdout, stderr = console.NewWriter(stdout), console.NewWriter(stderr)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addCompletion(root)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitFine
	}
	if errors.Is(err, errNo) {
		return exitNo
	}
	fmt.Fprintln(stderr, "ratelimit: "+message.Plain(err))
	if wrongUsage(err) {
		fmt.Fprintf(stderr, "See `%s --help`.\n", ran.CommandPath())
		return exitUsage
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "ratelimit",
		Short: "A gateway that keeps callers of LLM APIs inside their limits, exactly",
		Long: `A gateway that keeps callers of LLM APIs inside their limits, exactly.

Start the gateway, and set the base URL of any SDK to it. It limits requests and tokens
for each model and each project. Calls beyond a limit wait their turn or are denied: no
more than the limit ever passes.`,
		Example: `  ratelimit demo                     shows the gateway at work, without any key
  ratelimit serve                    serves OpenAI's API at http://127.0.0.1:8080/openai/v1
  ratelimit serve --config gw.yaml   enforces limits of your own
  ratelimit status                   shows what models and projects use`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if version {
				_, err := fmt.Fprintln(c.OutOrStdout(), thisBuild())
				return err
			}
			return c.Help()
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Flags().BoolVar(&version, "version", false, "print which build this is") // cobra's own would link its templates
	root.SetFlagErrorFunc(wrongFlag)
	addGroup(root, "Run:", newServe(), newDemo(), newMock(), newBench())
	addGroup(root, "See:", newTop(), newStatus(), newUsage(), newDecide(), newExplain(), newTail(), newWaiting(), newAudit(), newHealth(), newReconcile())
	addGroup(root, "Act:", newProject(), newModel(), newKey(), newToken(), newMode(), newReload())
	addGroup(root, "Prepare:", newCheck(), newPrices(), newMigrate(), newConvert(), newMan(), newVersion())
	root.SetCompletionCommandGroupID("Prepare:")
	root.SetHelpCommandGroupID("Prepare:")
	return root
}

// addGroup adds commands that stand under one title in the help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}

// addCompletion adds cobra's completion command, and has it refuse unknown arguments. The
// command writes to the output that the root has at this moment, so call SetOut before.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE = noSuchCommand, root.RunE
	for _, shell := range completion.Commands() {
		shell.Args = arguments
	}
}

// usageError is the error of a command line that is wrong in itself.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// wrongUsage reports whether the command line is wrong, and not a file. A fault of the
// configuration without a line number comes from a flag.
func wrongUsage(err error) bool {
	_, wrong := errors.AsType[usageError](err)
	first, ok := errors.AsType[config.Fault](err) // faults are in the order of their lines
	return wrong || ok && first.Line == 0
}

// wrongFlag returns the error of a flag that is not known or has a wrong value, with the flag that was
// probably meant.
func wrongFlag(c *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usageError{err}
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := message.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		err = fmt.Errorf("%w: did you mean --%s?", err, near)
	} else if strings.Contains(c.Use, "FIELD=VALUE") {
		err = fmt.Errorf("%w: a field is written without dashes, as in %s=100", err, strings.ReplaceAll(unknown.GetSpecifiedName(), "-", "_"))
	}
	return usageError{err}
}

// noEmptyFlags refuses a flag that is set to an empty value, such as the value of an unset
// variable: the user would hardly mean the default.
func noEmptyFlags(c *cobra.Command, _ []string) error {
	for _, name := range []string{"config", "listen", "admin", "state"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return usageError{fmt.Errorf("--%s is empty: it must have a value, or be left out", name)}
		}
	}
	return nil
}

// noSuchCommand refuses all arguments, for commands that only have subcommands.
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

// someArguments checks that a command has the arguments that its usage line names; of the last, there may
// be any number.
func someArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{fmt.Errorf("%s needs %s", c.CommandPath(), strings.Fields(c.Use)[1])}
	}
	for _, arg := range args {
		if arg == "" {
			return usageError{fmt.Errorf("%s: an argument is empty", c.CommandPath())}
		}
	}
	return nil
}

// arguments checks that a command has exactly the arguments that its usage line names;
// those in brackets may be left out.
func arguments(c *cobra.Command, args []string) error {
	names := strings.Fields(c.Use)[1:]
	for i, name := range names {
		if i >= len(args) && !strings.HasPrefix(name, "[") {
			return usageError{fmt.Errorf("%s needs %s", c.CommandPath(), name)}
		}
		if i < len(args) && args[i] == "" {
			return usageError{fmt.Errorf("%s: %s is empty", c.CommandPath(), strings.Trim(name, "[]"))}
		}
	}
	if len(args) > len(names) {
		return usageError{fmt.Errorf("%s does not know what to do with %q", c.CommandPath(), args[len(names)])}
	}
	return nil
}
