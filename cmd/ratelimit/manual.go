package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man [DIRECTORY]",
		Short: "Write the man pages",
		Long: `Write the man pages of all commands into a directory, which is made if it is not there; or
print that of the program.`,
		Example: "  ratelimit man /usr/local/share/man/man1\n  ratelimit man | man -l -",
		Args:    arguments,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprint(c.OutOrStdout(), manPage(c.Root()))
				return err
			}
			return writePages(c, args[0])
		},
	}
}

// writePages writes a page for each command.
func writePages(c *cobra.Command, directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	pages := 0
	for of := range commandsBelow(c.Root()) {
		name := strings.ReplaceAll(of.CommandPath(), " ", "-") + ".1"
		if err := os.WriteFile(filepath.Join(directory, name), []byte(manPage(of)), 0o644); err != nil {
			return err
		}
		pages++
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%d pages are in %s\n", pages, directory)
	return err
}

// commandsBelow returns a command and all below it that people use.
func commandsBelow(c *cobra.Command) func(yield func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) {
		if !yield(c) {
			return
		}
		for _, below := range c.Commands() {
			if !below.IsAvailableCommand() || below.Name() == "help" || below.Name() == "completion" {
				continue
			}
			for each := range commandsBelow(below) {
				if !yield(each) {
					return
				}
			}
		}
	}
}

// flagsOf returns the flags of a command, its own and those that it has from above, but --help.
func flagsOf(c *cobra.Command) (all []*pflag.Flag) {
	visit := func(f *pflag.Flag) {
		if f.Name != "help" {
			all = append(all, f)
		}
	}
	c.LocalFlags().VisitAll(visit)
	c.InheritedFlags().VisitAll(visit)
	return all
}

// flagName returns a flag as people write it, such as --config FILE.
func flagName(f *pflag.Flag) (name, usage string) {
	value, usage := pflag.UnquoteUsage(f)
	name = "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if value != "" {
		name += " " + value
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && !strings.Contains(usage, "(default") {
		usage += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	return name, usage
}

// manPage returns the man page of a command.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	section := func(name string) { fmt.Fprintf(&b, ".SH %s\n", name) }
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"User Commands\"\n", strings.ToUpper(name), "ratelimit "+thisBuild().Version)
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(name), roff(c.Short))
	section("SYNOPSIS")
	fmt.Fprintf(&b, ".B %s\n", roff(c.UseLine()))
	section("DESCRIPTION")
	if c.Long == "" {
		fmt.Fprintf(&b, "%s.\n", roff(c.Short))
	} else {
		fmt.Fprintf(&b, "%s\n", roff(c.Long))
	}
	if flags := flagsOf(c); len(flags) > 0 {
		section("OPTIONS")
		for _, f := range flags {
			name, usage := flagName(f)
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
		}
	}
	section("EXAMPLES")
	fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(c.Example))
	section("EXIT STATUS")
	for _, e := range exitStatuses {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", e.code, roff(e.means))
	}
	section("ENVIRONMENT")
	for _, v := range variables {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", v.name, roff(v.means))
	}
	section("SEE ALSO")
	fmt.Fprintf(&b, "%s\n", roff(strings.Join(seeAlso(c), ", ")))
	return b.String()
}

// seeAlso returns the pages of the commands above and below.
func seeAlso(c *cobra.Command) (pages []string) {
	page := func(c *cobra.Command) { pages = append(pages, strings.ReplaceAll(c.CommandPath(), " ", "-")+"(1)") }
	if c.HasParent() {
		page(c.Parent())
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" && below.Name() != "completion" {
			page(below)
		}
	}
	return pages
}

// roff returns a text that means itself in a man page. Empty lines are paragraphs.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n\n", "\n.PP\n").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != ".PP" && (strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")) {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// exitStatuses are what the exit codes mean.
var exitStatuses = []struct {
	code  int
	means string
}{
	{exitFine, "It is done, or the answer is yes."},
	{exitFailed, "It has failed, or the gateway refuses it: stderr says why, and what can be done."},
	{exitUsage, "The command line is wrong: no such command, flag or argument, or a value that is not allowed."},
	{exitNo, "The answer is no: the call would be denied, the gateway is not ready, or a limit was exceeded."},
}

// variables are the variables that commands read.
var variables = []struct{ name, means string }{
	{adminVariable, "The address of the admin API, in place of " + defaultAdmin + "."},
	{tokenVariable, "The token of the admin API, if it needs one; --token-env names another variable."},
	{"RATELIMIT_KEY", "The virtual key of the calls that bench makes; --key-env names another variable."},
	{"NO_COLOR", "If it is set to anything, nothing is coloured. Colours only go to a terminal."},
	{"COLUMNS", "How many columns tables may have if the output is no terminal; if it is not set, any number."},
}
