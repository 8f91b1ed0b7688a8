package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// docs/commands.md has every command with its example and its flags, as the program has them.
func TestCommandsDocument(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	got := document(newRoot())
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/commands.md is not what the program says (-want +got): run `make docs`\n%s", diff)
	}
}

const documentHead = `# The command line

One program, ` + "`ratelimit`" + `, runs the gateway, asks it, and changes it. This page is made from the program's own help by
` + "`make docs`" + `; ` + "`ratelimit COMMAND --help`" + ` prints the same, and ` + "`ratelimit man DIRECTORY`" + ` writes man pages.

- Commands that ask a gateway speak to its [admin API](admin.md), at ` + "`--admin`" + ` or ` + "`$RATELIMIT_ADMIN`" + `. Those with
  ` + "`--state`" + ` can read a SQLite file or Redis instead, without a gateway.
- ` + "`--json`" + ` prints what the admin API says. Without it, tables fit the terminal: what matters most is first, columns
  without anything in them are left out, and sentences wrap. Into a pipe, lines have any length, or ` + "`$COLUMNS`" + `.
- Fields such as ` + "`requests_per_minute`" + ` have the names of the [configuration](configuration.md). ` + "`FIELD=none`" + ` removes.
- In a terminal, a command that changes something shows what, and asks once; ` + "`--yes`" + ` does not ask. In a script, nobody
  is asked.
- Characters that could command a terminal are shown as escapes, such as ` + "`\\x1b`" + `, wherever they come from.
- ` + "`ratelimit completion bash`" + ` (zsh, fish, powershell) prints a script with which the shell completes commands, flags,
  and the names of projects, models and keys.
`

// document returns the page.
func document(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(documentHead)
	b.WriteString("\n## Exit codes\n\n| code | means |\n|---|---|\n")
	for _, e := range exitStatuses {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.means)
	}
	b.WriteString("\n## Variables\n\n| variable | means |\n|---|---|\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, v.means)
	}
	b.WriteString("\n## Commands\n\n| command | does |\n|---|---|\n")
	for c := range commandsBelow(root) {
		if c != root {
			path := c.CommandPath()
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", strings.TrimPrefix(path, "ratelimit "), strings.ReplaceAll(path, " ", "-"), c.Short)
		}
	}
	for c := range commandsBelow(root) {
		if c != root {
			fmt.Fprintf(&b, "\n### %s\n\n%s", c.CommandPath(), helpOf(c))
		}
	}
	return b.String()
}

// documentWidth is how long the lines of a document are.
const documentWidth = 118

// helpOf returns the help of a command: prose, flags, and examples.
func helpOf(c *cobra.Command) string {
	var b strings.Builder
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	for paragraph := range strings.SplitSeq(long, "\n\n") {
		if strings.HasPrefix(paragraph, "  ") {
			fmt.Fprintf(&b, "```text\n%s\n```\n\n", paragraph)
			continue
		}
		for _, line := range console.Wrap(strings.ReplaceAll(paragraph, "\n", " "), documentWidth, "") {
			fmt.Fprintln(&b, line)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "```text\n%s\n", c.UseLine())
	for _, f := range flagsOf(c) {
		name, usage := flagName(f)
		lines := console.Wrap(usage, documentWidth-29, "")
		fmt.Fprintf(&b, "  %-26s %s\n", name, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&b, "%29s%s\n", "", line)
		}
	}
	fmt.Fprintf(&b, "```\n\n```sh\n")
	for line := range strings.Lines(c.Example + "\n") {
		fmt.Fprint(&b, strings.TrimPrefix(line, "  "))
	}
	return b.String() + "```\n"
}
